"""The quality of a JPEG, told from its quantisation tables and sampling factors.

libjpeg scales the two example tables of ITU-T T.81 annex K by a percentage that the quality, 1 to
100, stands for; every table made like that is recognised, and of another the nearest is told.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache, lru_cache

from cvcli.codecs._base import Coding

# T.81 K.1 and K.2, row by row.
_LUMA = (
    *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55),
    *(14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62),
    *(18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92),
    *(49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMA = (
    *(17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99),
    *(24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99),
    *(99,) * 32,
)
_SAMPLINGS = {(1, 1): "444", (2, 1): "422", (2, 2): "420", (4, 1): "411", (1, 2): "440"}
# Bytes of the example code tables of annex K, for gray and for colour; none stands for them too.
_USUAL_CODES = (0, 208, 416)
Table = tuple[int, ...]


def _zigzag() -> tuple[int, ...]:
    """Place, row by row, of each value in the order of a file."""
    places = [(y, x) for y in range(8) for x in range(8)]
    places.sort(key=lambda p: (sum(p), p[0] if sum(p) % 2 else p[1]))
    return tuple(8 * y + x for y, x in places)


@lru_cache(maxsize=64)
def tables(body: bytes) -> Mapping[int, Table]:
    """Tables of a DQT segment by their number, row by row; a short one is left out."""
    found, at = dict[int, Table](), 0
    while at < len(body):
        wide, number = body[at] >> 4, body[at] & 15
        size = 128 if wide else 64
        part = body[at + 1 : at + 1 + size]
        at += 1 + size
        if len(part) == size:
            stored = struct.unpack(">64H" if wide else ">64B", part)
            table = [0] * 64
            for place, value in zip(_zigzag_places(), stored, strict=True):
                table[place] = value
            found[number] = tuple(table)
    return found


_zigzag_places = cache(_zigzag)


@cache
def scaled(quality: int) -> tuple[Table, Table]:
    """libjpeg's luma and chroma tables of a quality."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    luma, chroma = (
        tuple(min(max((value * percent + 50) // 100, 1), 255) for value in base)
        for base in (_LUMA, _CHROMA)
    )
    return luma, chroma


def coding(frame: bytes, found: dict[int, Table], codes_nbytes: int) -> Coding:
    """How a file was coded, of its frame header, its tables and the length of its code tables."""
    parts = [frame[at : at + 3] for at in range(6, 6 + 3 * frame[5], 3)]
    if not found or any(len(part) < 3 or part[2] not in found for part in parts):
        return Coding()
    used = tuple(found[part[2]] for part in parts)
    level, exact = _level(used[:1] + used[1:2])
    if any(table != used[1] for table in used[2:3]):
        exact = False
    sampling = _sampling([part[1] for part in parts])
    optimized = codes_nbytes not in _USUAL_CODES
    return Coding(level, () if exact else used[:3], sampling, optimized)


def _sampling(factors: list[int]) -> str | None:
    """Name of the chroma sampling; None for gray and for odd ones."""
    if len(factors) < 3 or any(factor != 0x11 for factor in factors[1:3]):
        return None
    return _SAMPLINGS.get((factors[0] >> 4, factors[0] & 15))


@lru_cache(maxsize=64)
def _level(used: tuple[Table, ...]) -> tuple[int, bool]:
    """The quality of tables, and whether it gives exactly them."""

    def distance(quality: int) -> int:
        pairs = zip(used, scaled(quality), strict=False)
        return sum(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))

    guess = _guess(used[0])
    for quality in range(min(100, guess + 2), max(1, guess - 2) - 1, -1):
        if distance(quality) == 0:
            return quality, True
    best = min(range(100, 0, -1), key=distance)
    return best, distance(best) == 0


def _guess(luma: Table) -> int:
    """The quality by the mean of a table, which is right but for the very good and bad."""
    percent = 100 * sum(luma) / sum(_LUMA)
    return round(5000 / percent if percent > 100 else (200 - percent) / 2)

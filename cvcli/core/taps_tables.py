"""The tables of taps as kernels read them; ``kernels/core/patterns/resample.h`` has the structs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cvcli.core.taps import COARSE, EDGE, PRECISION, Taps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cvcli.core.blocks import Block

    Integers = NDArray[np.int32]
else:
    from cvcli.core.lazy import np

_LOW_BITS = 12


@dataclass(frozen=True, slots=True)
class Tables:
    """Where the tables of one axis are in a block, and how long their rows are."""

    spans: int
    weights: int
    records: int | None
    most: int
    words: int


def add_tables(block: Block, taps: Taps, words: int) -> Tables:
    """Add an axis's tables; with ``words`` the records of 8-bit images too, so many words long."""
    first, weights, records, most = _made(taps, words)
    at = None if records is None else block.add(records)
    exact = taps.weights.dtype == np.float32
    return Tables(block.add(first), block.add(weights), at, most, 0 if exact else words)


# Batches of one run need the same again and again, and making them takes longer than a launch.
@lru_cache(maxsize=64)
def _made(taps: Taps, words: int) -> tuple[bytes, bytes, bytes | None, int]:
    """Return spans, weights and records, and how many weights or pairs of them a result has."""
    spans = np.stack([taps.first, taps.count], axis=1).astype(np.int32).tobytes()
    if taps.weights.dtype == np.float32:
        return spans, np.ascontiguousarray(taps.weights).tobytes(), None, taps.most
    pairs = _pairs(taps)
    records = _records(taps, words).tobytes() if words else None
    return spans, pairs.tobytes(), records, pairs.shape[1]


def add_doubled(block: Block, windows: Integers) -> tuple[int, int, int]:
    """Add the weights of an axis's ends; return where they are, and those of the other results.

    Of each of three results at either end the weights are in signed bytes, from the most
    significant to the least, in a word each, then an empty one. Those of even and of odd results
    are in units of 2**-7, a byte each.
    """
    ends = np.concatenate([windows[:EDGE], windows[-EDGE:]])
    words = np.zeros((2 * EDGE, 4), np.int32)
    for place, digit in enumerate(_digits(ends.astype(np.int64))):
        words[:, place] = digit.astype(np.int8).view("<i4")[:, 0]
    odd, even = (windows[EDGE : EDGE + 2] >> COARSE).astype(np.int8).view("<i4")[:, 0]
    return block.add(words.tobytes()), int(even), int(odd)


def words_of(taps: Taps) -> int:
    """Return how many words of four samples the taps of a result sample touch at most."""
    return int(np.max((taps.first % 4 + taps.count + 3) // 4))


def _pairs(taps: Taps) -> NDArray[np.int16]:
    """Return pairs of taps as the 16-bit halves of their weights."""
    rows, most = taps.weights.shape
    weights = np.zeros((rows, (most + 1) // 2, 2), np.int32)
    weights.reshape(rows, -1)[:, :most] = taps.weights
    low = weights & ((1 << _LOW_BITS) - 1)
    return np.stack([weights >> _LOW_BITS, low], axis=2).astype(np.int16)


def _records(taps: Taps, words: int) -> Integers:
    """Return for each result sample a header and ``words`` times four words.

    The header: the first source index, a multiple of 4; what sums start at; the same for coarse
    weights; whether they are coarse. Then for each four samples from the first one on their
    weights as signed bytes, from the most significant to the least, and coarse ones.
    """
    rows, most = taps.weights.shape
    weights = np.zeros((rows, words * 4), np.int64)
    places = (taps.first % 4)[:, None] + np.arange(most)
    inside = np.arange(most) < taps.count[:, None]
    row = np.broadcast_to(np.arange(rows)[:, None], places.shape)
    weights[row[inside], places[inside]] = taps.weights[inside]
    coarse = weights >> COARSE
    is_coarse = ((coarse << COARSE == weights) & (abs(coarse) < 128)).all(axis=1)
    records = np.zeros((rows, 1 + words, 4), np.int32)
    records[:, 0, 0] = taps.first & ~3
    records[:, 0, 1] = 1 << (PRECISION - 1)
    records[:, 0, 2] = 1 << (PRECISION - COARSE - 1)
    records[:, 0, 3] = is_coarse
    for place, digit in enumerate((*_digits(weights), np.where(is_coarse[:, None], coarse, 0))):
        records[:, 1:, place] = digit.astype(np.int8).view("<i4")
    return records


def _digits(weights: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return three signed digits of base 256, from the most significant on."""
    low = (weights + 128 & 255) - 128
    rest = (weights - low) >> 8
    middle = (rest + 128 & 255) - 128
    return (rest - middle) >> 8, middle, low

"""How the GPU cuts a resampling into tiles, and when it can't."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from cvcli.core.taps import Taps
from cvcli.core.taps_tables import words_of

if TYPE_CHECKING:
    import numpy as np

    from cvcli.core.spec import ImageSpec
else:
    from cvcli.core.lazy import np

_THREADS = 256
_SHARED = 47 << 10
"""Bytes of shared memory a block may have everywhere, less what the compiler may want."""
_SHARED_ALL = 200 << 10
"""About what a large multiprocessor has for all its blocks, and how many of them are enough."""
_TILES = 132
"""Multiprocessors that one image should keep busy."""
_BLOCKS = 6
# Few kernels serve a batch of many sizes, so the numbers that they are made for lie far apart.
_WORDS = (1, 2, 4, 6, 8, 12, 16)
_ROOMS = (16 << 10, 24 << 10, 32 << 10, 40 << 10, _SHARED)
_PIXELS = (24, 44, 80, 144, 224, 320, 480, 720, 1088)
_ROWS = (24, 44, 80, 120, 176)
_TAPS = (2, 4, 8, 12, 20, 32, 64, 128)
_HEIGHTS = (32, 24, 16, 12, 10, 8, 6, 4)
_FEW = 16
_PAD = 32
"""Words between fours of source rows, at most."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The numbers a kernel is compiled for, the tile in pixels, and words in records of an axis.

    No numbers: each thread makes a pixel by itself. One: how often a side gets longer, or shorter
    where it is less than 0.
    """

    template: tuple[int, ...]
    tile: tuple[int, int]
    words: tuple[int, int] = (0, 0)
    span: int = 0
    pitch: int = 0
    batch: int = 0
    """Of byte tiles: words of a source row and of a column of rows made; fours of rows at once."""
    blocks: int = 0
    """Least blocks a multiprocessor should hold, which bounds the registers."""


POINTS, HALVES, PAIRS = Tiling((), (32, 8)), Tiling((-2,), (128, 8)), Tiling((-2,), (64, 8))
DOUBLES = {count: Tiling((2,), (256, 256), blocks=3 if count < 4 else 2) for count in range(1, 5)}


def tiling_of(x: Taps, y: Taps, source: ImageSpec) -> Tiling:
    """Return how to cut up what the taps make of an image of ``source``.

    Where a few of many source pixels are wanted, and where a tile's would not fit, it is by
    points.
    """
    if x.halves and y.halves:
        return HALVES if source.dtype == "uint8" else PAIRS
    if x.doubled is not None and y.doubled is not None:
        return DOUBLES[source.channels]
    taps = x.most * y.most
    area = source.width * source.height / (len(x.first) * len(y.first))
    if taps <= _FEW and area > 2 * taps:
        return POINTS
    tilings = (
        _byte_tilings(x, y, source) if source.dtype == "uint8" else _float_tilings(x, y, source)
    )
    return min(tilings, key=lambda item: item[0], default=(0.0, POINTS))[1]


def is_slow(x: Taps, y: Taps, tiling: Tiling) -> bool:
    """Whether two passes, an axis each, take less time: points read every pixel anew."""
    return not tiling.template and not (x.copies or y.copies) and x.most * y.most > 4 * _FEW


def _byte_tilings(x: Taps, y: Taps, source: ImageSpec) -> list[tuple[float, Tiling]]:
    words = _fitting(_WORDS, words_of(x)), words_of(y)
    found, channels = [], source.channels
    for width, height, part in product((64, 32), _HEIGHTS, (1, 2, 4, 8)):
        batch = _THREADS // width // part
        span, quads = _reach(x, width, 4) // 4, _reach(y, height, 4) // 4
        shared = batch * (16 * channels * span + 4 * _PAD) + 4 * width * channels * (quads | 1)
        shared += 16 * (height * (1 + words[1]) + width * (1 + words[0])) + 4 * sum(words)
        room = _fitting(_ROOMS, shared)
        if not (batch and words[0] and room):
            continue
        rounds = -(-quads // batch) if batch else 0
        # Instructions: to load, to make rows, to make columns of those, and around them.
        work = 4 * quads * span * 27 + rounds * _THREADS * (channels * (16 * words[0] + 17) + 25)
        work += width * height * channels // 4 * (16 * words[1] + 40) + 300 * _THREADS
        template = (width, height, words[0], room)
        blocks = 4 if words[0] <= 6 else 3 if words[0] <= 8 else 2
        tiling = Tiling(template, (width, height), words, span, quads | 1, batch, blocks)
        found += _scored(x, y, tiling, room, work)
    return found


def _float_tilings(x: Taps, y: Taps, source: ImageSpec) -> list[tuple[float, Tiling]]:
    found, channels = [], source.channels
    for width, height, batch in product((32,), _HEIGHTS, (16, 8, 4)):
        span = _fitting(_PIXELS, _reach(x, width, 1))
        rows = _fitting(_ROWS, _reach(y, height, 1))
        taps = _fitting(_TAPS, x.most)
        if not (span and rows and taps):
            continue
        shared = 4 * (batch * span * channels + rows * width * channels + taps * width)
        template = (width, height, span, rows, batch, taps)
        work = rows * (span + width * x.most * (2 if batch < 8 else 1)) + width * height * y.most
        found += _scored(x, y, Tiling(template, (width, height)), shared, work)
    return found


def _scored(
    x: Taps, y: Taps, tiling: Tiling, shared: int, work: float
) -> list[tuple[float, Tiling]]:
    """Return a tiling with its work for the whole image, weighted by how few blocks fit."""
    if shared > _SHARED:
        return []
    tiles = -(-len(x.first) // tiling.tile[0]) * -(-len(y.first) // tiling.tile[1])
    crowd = max(1.0, _BLOCKS * shared / _SHARED_ALL)
    return [(max(tiles, _TILES) * work * crowd, tiling)]


def _fitting(sizes: tuple[int, ...], least: int) -> int:
    """Return the smallest size that is large enough, 0 if none is."""
    return next((size for size in sizes if size >= least), 0)


def _reach(taps: Taps, length: int, align: int) -> int:
    """Return how many source samples ``length`` neighbouring results need, wherever they lie.

    They start at a multiple of ``align``, and are one.
    """
    first, end = taps.first // align * align, taps.end
    last = np.minimum(np.arange(len(first)) + length, len(first)) - 1
    return -(-int((end[last] - first).max()) // align) * align

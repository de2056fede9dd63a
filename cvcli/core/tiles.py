"""Sizes of the tiles that blocks of threads filter; ``kernels/core/tile_cuda.h`` relies on them."""

from __future__ import annotations

from dataclasses import dataclass

from cvcli.core.spec import ITEMSIZE, ImageSpec

UNROLLED = 7
"""The largest radius that kernels are compiled for; larger ones are loops."""

# Rows that a block reads. A round number, so that threads share the work on them evenly.
_ROWS = 64


@dataclass(frozen=True, slots=True)
class Tile:
    """Width and height in pixels of a block's part of the result, and its threads."""

    width: int
    height: int
    threads: int


LONG = Tile(16, 32, 256)
"""The tile of filters along axes whose radius is no longer unrolled."""


def samples_of(image: ImageSpec) -> int:
    """Return how many samples of a row a tile has: whole pixels in whole 16-byte chunks."""
    thirds = image.channels == 3
    if ITEMSIZE[image.dtype] == 1:
        return 96 if thirds else 128
    return 48 if thirds else 64


def tile_of(image: ImageSpec, radius_x: int, radius_y: int) -> Tile:
    """Return the tile of a filter whose window reaches so far on both sides."""
    threads = 192 if image.channels == 3 else 256
    return Tile(samples_of(image) // image.channels, _ROWS - 2 * radius_y, threads)

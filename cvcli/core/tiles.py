"""Sizes of the tiles that blocks of threads filter; ``kernels/core/tile_cuda.h`` relies on them."""

from __future__ import annotations

from dataclasses import dataclass

from cvcli.core.spec import ITEMSIZE, ImageSpec

UNROLLED = 7
"""The largest radius that kernels are compiled for; larger ones are loops."""

# What a block has to find out before its first tile is shared by the next.
_TURNS = 2
# Rows that a block reads at a time. A round number, so that threads share the work on them evenly.
_ROWS = 64


@dataclass(frozen=True, slots=True)
class Tile:
    """Width and height in pixels of what a block makes at a time, its threads, and its turns.

    A block makes a tile below the other in as many turns.
    """

    width: int
    height: int
    threads: int
    turns: int

    @property
    def extent(self) -> tuple[int, int]:
        """Width and height of all that a block makes."""
        return self.width, self.height * self.turns

    @property
    def template(self) -> tuple[int, int, int]:
        """What kernels are compiled for."""
        return self.width, self.height, self.turns


LONG = Tile(16, 32, 256, 1)
"""The tile of filters along axes whose radius is no longer unrolled."""


def samples_of(image: ImageSpec) -> int:
    """Return how many samples of a row a tile has: whole pixels in whole 16-byte chunks."""
    thirds = image.channels == 3
    if ITEMSIZE[image.dtype] == 1:
        return 96 if thirds else 128
    return 48 if thirds else 64


def tile_of(image: ImageSpec, radius_x: int, radius_y: int) -> Tile:
    """Return the tile of a filter along axes, whose window reaches so far on both sides.

    Its rows are shared by 8 or 16 groups of threads.
    """
    groups = 8 if ITEMSIZE[image.dtype] == 1 else 16
    rows = (_ROWS - 2 * radius_y) // groups * groups
    return Tile(samples_of(image) // image.channels, rows, threads_of(image), _TURNS)


def dense_tile_of(image: ImageSpec) -> Tile:
    """Return the tile of a small dense filter; its rows are shared by 16 or 32 groups."""
    return Tile(samples_of(image) // image.channels, _ROWS, threads_of(image), _TURNS)


def threads_of(image: ImageSpec) -> int:
    """Return how many threads make a tile, so that each has as much to do."""
    return 192 if image.channels == 3 else 256

"""Sizes of what blocks of threads filter; ``kernels/core/strip_cuda.h`` relies on them."""

from __future__ import annotations

from dataclasses import dataclass

from cvcli.core.spec import ITEMSIZE, ImageSpec

UNROLLED = 7
"""The largest radius that kernels are compiled for; larger ones are loops."""

# Samples of a row of a strip, of bytes and of others, and the threads of a block.
_WIDE, _NARROW = (480, 128), (240, 64)
# Rows of a half that a block reads at a time, and makes in all.
_ROWS = {1: 8, 2: 8}
_HEIGHTS = {1: 64, 2: 24}

_BLOCKS = ((2, 7), (3, 6), (UNROLLED + 1, 5))


@dataclass(frozen=True, slots=True)
class Tile:
    """Width and height in pixels of what a block makes, and its threads.

    Of ``halves`` parts, each ``height`` rows below the one before, threads make rows together.
    """

    width: int
    height: int
    threads: int
    halves: int = 1
    rows: int = 0
    """Of each half, that a block reads at a time."""
    blocks: int = 0
    """Least blocks a multiprocessor should hold, 0 to leave it to the compiler."""

    @property
    def extent(self) -> tuple[int, int]:
        """Width and height of all that a block makes."""
        return self.width, self.height * self.halves

    @property
    def template(self) -> tuple[int, int, int]:
        """What kernels are compiled for."""
        return self.halves, self.height, self.rows


LONG = Tile(16, 32, 256)
"""The tile of filters along axes whose radius is no longer unrolled."""


def strip_of(image: ImageSpec, radius_y: int, *, halves: int = 1) -> Tile:
    """Return the strip of a filter along axes, whose window reaches so far up and down.

    A block goes down it in steps, the more the more rows it has to read beside its own.
    """
    # The more rows a thread keeps and loads, the more registers it needs.
    blocks = next(blocks for most, blocks in _BLOCKS if radius_y + halves - 1 <= most)
    samples, threads = _WIDE if image.dtype == "uint8" else _NARROW
    width, height = samples // image.channels, _HEIGHTS[halves] if radius_y <= 4 else 136
    return Tile(width, height, threads, halves, _ROWS[halves], blocks * 128 // threads)


def pairs_of(image: ImageSpec) -> int:
    """Return how many halves a strip has if two integers of 16 bits fit a word."""
    return 1 if ITEMSIZE[image.dtype] == 4 else 2


def median_strip_of(image: ImageSpec) -> Tile:
    """Return the strip of a small median, of which a thread has one column of samples."""
    return Tile(_NARROW[0] // image.channels, 48, 256, pairs_of(image), 8, 3)

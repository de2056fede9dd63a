"""Statistics of an image: the first of the passes of an operator that adapts to it."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.spec import ImageSpec
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block

PART_ROWS = 16


def parts(source: ImageSpec) -> int:
    """Return how many parts an image's statistics are made of."""
    return -(-source.height // PART_ROWS)


class SummaryParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/summary.h``."""

    _fields_ = (("frame", params.Frame),)


class Summary(Pattern):
    """The lowest, highest and summed samples of each channel; a row for each 16 of the image.

    A channel's record of 16 bytes is four pixels of four bytes.
    """

    name = "summary"
    record_pixels = 4

    def __init__(self, source: ImageSpec, *, sums: bool = True) -> None:
        width = source.channels * self.record_pixels
        super().__init__(source, ImageSpec(parts(source), width, 4, "uint8"))
        self.sums = sums
        """Whether the sums are wanted too; without them a GPU is faster."""

    @property
    def template(self) -> tuple[int, ...]:
        return (int(self.sums),)

    @property
    def tile(self) -> tuple[int, int]:
        return 1, 1

    @property
    def extent(self) -> tuple[int, int]:
        return 1, self.target.height

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: SummaryParams(self.frame)

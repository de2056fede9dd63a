"""The median of 3x3 or 5x5 samples, by exchanges."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_int32
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec

_WIDTH = {1: 128, 2: 64, 3: 64, 4: 32}
_ROWS = {3: 8, 5: 4}


class MedianSmallParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/median_small.h``."""

    _fields_ = (("frame", params.Frame), ("size", c_int32), ("reserved", c_int32))


class MedianSmall(Pattern):
    """A filter of ``size`` 3 or 5."""

    name = "median_small"
    joins = "nothing"
    leads = False
    windowed = True

    def __init__(self, image: ImageSpec, size: int) -> None:
        super().__init__(image, image)
        self.size = size

    @property
    def template(self) -> tuple[int, ...]:
        return self.size, _WIDTH[self.source.channels], _ROWS[self.size]

    @property
    def tile(self) -> tuple[int, int]:
        # Two rows a word where a key has at most 16 bits.
        halves = 1 if self.source.dtype == "float32" else 2
        return _WIDTH[self.source.channels], _ROWS[self.size] * halves

    @property
    def key(self) -> tuple[object, ...]:
        return (self.size,)

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: MedianSmallParams(self.frame, self.size)

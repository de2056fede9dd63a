"""The median of a square of samples, of any odd size."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_int32
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec

_STRIP_ROWS = 128
_THREADS = 128
# Columns of samples whose histograms fit shared memory.
_COLUMNS = 176


class MedianParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/median.h``."""

    _fields_ = (("frame", params.Frame), ("size", c_int32), ("reserved", c_int32))


class Median(Pattern):
    """A filter of odd ``size``."""

    name = "median"
    threads = _THREADS
    joins = "nothing"
    leads = False
    windowed = True

    def __init__(self, image: ImageSpec, size: int) -> None:
        super().__init__(image, image)
        self.size = size

    @property
    def _rows(self) -> int:
        return _STRIP_ROWS if self.source.dtype == "uint8" else 8

    @property
    def _wide(self) -> int:
        """Columns of samples of a block's results; windows reach as many more on either side."""
        if self.source.dtype != "uint8":
            return _THREADS
        beside = (self.size - 1) * self.source.channels
        return min((_COLUMNS - beside) // 16 * 16, _THREADS)

    @property
    def template(self) -> tuple[int, ...]:
        return self.size, self._rows, self._wide, _THREADS

    @property
    def tile(self) -> tuple[int, int]:
        return self._wide, self._rows

    @property
    def extent(self) -> tuple[int, int]:
        return self.target.width * self.target.channels, self.target.height

    @property
    def key(self) -> tuple[object, ...]:
        return (self.size,)

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: MedianParams(self.frame, self.size)

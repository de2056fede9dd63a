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
# Samples on a side of what a block puts in order, by so many threads, and its shared memory lets
# so many blocks live on a multiprocessor.
_SQUARE, _SQUARE_THREADS, _SQUARE_BLOCKS = 45, 256, 4


class MedianParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/median.h``."""

    _fields_ = (("frame", params.Frame), ("size", c_int32), ("reserved", c_int32))


class Median(Pattern):
    """A filter of odd ``size``."""

    name = "median"
    joins = "nothing"
    leads = False
    windowed = True

    def __init__(self, image: ImageSpec, size: int) -> None:
        super().__init__(image, image)
        self.size = size

    @property
    def _square(self) -> int:
        """Results on a side of a block's square; 0 for strips of columns."""
        return 0 if self.source.dtype == "uint8" else _SQUARE - self.size + 1

    @property
    def _wide(self) -> int:
        """Columns of samples of a strip's results; windows reach as many more on either side."""
        beside = (self.size - 1) * self.source.channels
        return min((_COLUMNS - beside) // 16 * 16, _THREADS)

    @property
    def threads(self) -> int:  # type: ignore[override]
        return _SQUARE_THREADS if self._square else _THREADS

    @property
    def blocks(self) -> int:  # type: ignore[override]
        return _SQUARE_BLOCKS if self._square else 0

    @property
    def template(self) -> tuple[int, ...]:
        return self.size, self._square, self.tile[1], self.tile[0], self.threads

    @property
    def tile(self) -> tuple[int, int]:
        return (self._square, self._square) if self._square else (self._wide, _STRIP_ROWS)

    @property
    def extent(self) -> tuple[int, int]:
        width, channels, square = self.target.width, self.target.channels, self._square
        # Squares of each channel lie side by side.
        wide = -(-width // square) * square if square else width
        return wide * channels, self.target.height

    @property
    def key(self) -> tuple[object, ...]:
        return (self.size,)

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: MedianParams(self.frame, self.size)

"""The median of 3x3 or 5x5 samples, by exchanges."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_int32
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.tiles import Tile, median_strip_of
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec


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
    def _tile(self) -> Tile:
        return median_strip_of(self.source)

    @property
    def template(self) -> tuple[int, ...]:
        return self.size, *self._tile.template

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self._tile.threads

    @property
    def blocks(self) -> int:  # type: ignore[override]
        return self._tile.blocks

    @property
    def tile(self) -> tuple[int, int]:
        return self._tile.extent

    @property
    def key(self) -> tuple[object, ...]:
        return (self.size,)

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: MedianSmallParams(self.frame, self.size)

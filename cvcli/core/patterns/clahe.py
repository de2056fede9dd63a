"""Each sample by the tables of the four tiles around it."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_float, c_int32
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.patterns.clahe_tables import Grid
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block


class ClaheParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/clahe.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("across", c_int32),
        ("down", c_int32),
        ("per_width", c_float),
        ("per_height", c_float),
    )


class ClaheMap(Pattern):
    """The map of which the tiles' tables are the second source."""

    name = "clahe"
    joins = "nothing"

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid.image, grid.image)
        self.grid = grid

    @property
    def tile(self) -> tuple[int, int]:
        return 128, 8

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        (width, height), grid = self.grid.tile, self.grid
        packed = ClaheParams(self.frame, grid.across, grid.down, 1.0 / width, 1.0 / height)
        return lambda base: packed

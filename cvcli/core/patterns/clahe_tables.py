"""Histogram equalization of the tiles of an image: each tile's table, and the map between them."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_float, c_int32
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cvcli.core.passes import Part, Pass, Pattern, first_pass
from cvcli.core.patterns.histogram import LEVELS
from cvcli.core.spec import ImageSpec
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block


@dataclass(frozen=True)
class Grid:
    """Tiles of an image, and how far their histograms may rise above an even one.

    An image that the grid does not divide is continued by reflection, by up to a whole tile.
    """

    image: ImageSpec
    across: int
    down: int
    clip_limit: float

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Width and height of a tile in pixels."""
        width, height = self.image.width, self.image.height
        if width % self.across or height % self.down:
            width += self.across - width % self.across
            height += self.down - height % self.down
        return width // self.across, height // self.down

    @property
    def limit(self) -> int:
        """The count that a level may have in a tile, 0 for any."""
        width, height = self.tile
        if self.clip_limit <= 0:
            return 0
        return max(int(self.clip_limit * (width * height) / LEVELS), 1)


class ClaheTablesParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/clahe_tables.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("across", c_int32),
        ("tile_width", c_int32),
        ("tile_height", c_int32),
        ("limit", c_int32),
        ("scale", c_float),
        ("reserved", c_int32),
    )


class ClaheTables(Pattern):
    """A row for each tile, with a table of 256 bytes a channel."""

    name = "clahe_tables"

    def __init__(self, grid: Grid) -> None:
        image, tiles = grid.image, grid.across * grid.down
        super().__init__(image, ImageSpec(tiles, image.channels * LEVELS, 1, "uint8"))
        self.grid = grid

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
        (width, height), grid = self.grid.tile, self.grid
        scale = (LEVELS - 1) / (width * height)
        packed = ClaheTablesParams(self.frame, grid.across, width, height, grid.limit, scale)
        return lambda base: packed


@dataclass(frozen=True)
class Clahe(Part):
    """The tables of an image's tiles and the map between them: two passes."""

    grid: Grid

    def extend(self, passes: tuple[Pass, ...], label: str) -> tuple[Pass, ...]:
        from cvcli.core.patterns.clahe import ClaheMap

        image = passes[-1].target
        if passes[-1].is_idle:
            passes = passes[:-1]
        at, tables = len(passes), ClaheTables(self.grid)
        first = replace(first_pass(image), reads=at, label=label)
        mapping = replace(first, aux=at + 1, pattern=ClaheMap(self.grid), label=f"{label} map")
        return (*passes, replace(first, pattern=tables, target=tables.target), mapping)

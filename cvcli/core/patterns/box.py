"""The mean of a window of integers, exact."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_float, c_int32, c_uint32
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.stencil import Edges, EdgesParams
from cvcli.core.tiles import LONG, UNROLLED, Tile, strip_of
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec


class BoxParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/box.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("edges", EdgesParams),
        ("radius_x", c_int32),
        ("radius_y", c_int32),
        ("share", c_float),
        ("half", c_uint32),
        ("factor", c_uint32),
        ("shift", c_int32),
    )


class Box(Pattern):
    """The mean of ``2 * radius + 1`` samples an axis, for uint8 and uint16; at most 127 an axis."""

    name = "box"
    windowed = True

    def __init__(self, image: ImageSpec, edges: Edges, radius_x: int, radius_y: int) -> None:
        super().__init__(image, image)
        self._edges, self._radii = edges, (radius_x, radius_y)

    @property
    def _tile(self) -> Tile:
        if not self._unrolled:
            return LONG
        # Sums of bytes fit 16 bits.
        halves = 2 if self.source.dtype == "uint8" else 1
        return strip_of(self.source, self._radii[1], halves=halves)

    @property
    def _unrolled(self) -> bool:
        # Sums of more than 15 x 15 samples of uint16 don't fit the floats of the unrolled kernel.
        return max(self._radii) <= UNROLLED

    @property
    def template(self) -> tuple[int, ...]:
        return *(self._radii if self._unrolled else (-1, -1)), *self._tile.template

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
        return *self._radii, self._edges.key

    def pack(self, block: Block) -> Callable[[int], Structure]:
        radius_x, radius_y = self._radii
        area = (2 * radius_x + 1) * (2 * radius_y + 1)
        shift = (area - 1).bit_length()
        factor = (1 << 31 + shift) // area + 1
        divisor = 1 / area, area // 2, factor, shift
        edges = self._edges.params
        return lambda base: BoxParams(self.frame, edges, radius_x, radius_y, *divisor)

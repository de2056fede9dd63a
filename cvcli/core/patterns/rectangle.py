"""The smallest or the largest sample of a rectangle."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_int32
from itertools import pairwise
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.stencil import Edges, EdgesParams
from cvcli.core.tiles import UNROLLED, Tile, pairs_of, strip_of
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec


class RectangleParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/rectangle.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("edges", EdgesParams),
        ("radius_x", c_int32),
        ("radius_y", c_int32),
        ("largest", c_int32),
        ("reserved", c_int32),
    )


class Rectangle(Pattern):
    """The extreme of ``2 * radius + 1`` samples an axis, a radius being at most `UNROLLED`.

    Floats are ordered with -0 below 0 and NaN, made canonical, above infinity.
    """

    name = "rectangle"
    windowed = True

    def __init__(
        self, image: ImageSpec, edges: Edges, radius_x: int, radius_y: int, *, largest: bool
    ) -> None:
        super().__init__(image, image)
        self._edges, self._radii, self._largest = edges, (radius_x, radius_y), largest

    @property
    def _tile(self) -> Tile:
        return strip_of(self.source, self._radii[1], halves=pairs_of(self.source))

    @property
    def template(self) -> tuple[int, ...]:
        return *self._radii, *self._tile.template, int(self._largest)

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
        return *self._radii, self._largest, self._edges.key

    def pack(self, block: Block) -> Callable[[int], Structure]:
        edges = self._edges.params
        return lambda base: RectangleParams(self.frame, edges, *self._radii, int(self._largest))


def rectangles(
    image: ImageSpec, edges: Edges, radius_x: int, radius_y: int, *, largest: bool
) -> tuple[Rectangle, ...]:
    """Return the passes that find extremes of a rectangle of any size.

    A rectangle is two smaller ones in turn, whatever the border: where the large one leaves the
    image, so does one of the two on a way that stays in it as long as it can.
    """
    passes = max(1, -(-max(radius_x, radius_y) // UNROLLED))
    cuts = [(radius_x * i // passes, radius_y * i // passes) for i in range(passes + 1)]
    steps = [(x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in pairwise(cuts)]
    return tuple(Rectangle(image, edges, x, y, largest=largest) for x, y in steps)

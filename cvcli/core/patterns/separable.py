"""A symmetric filter along rows, then columns: a blur, or an image made sharper with one."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_float, c_int32, c_void_p
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.stencil import Edges, EdgesParams
from cvcli.core.tiles import LONG, UNROLLED, Tile, strip_of
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec
    from cvcli.core.stencil import Floats


# The least radius at which four products at once pay.
_LEAST_WHOLE = 5


class SeparableParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/separable.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("edges", EdgesParams),
        ("radius_x", c_int32),
        ("radius_y", c_int32),
        ("sharpens", c_int32),
        ("amount", c_float),
        ("half_x", c_void_p),
        ("half_y", c_void_p),
    )


class Separable(Pattern):
    """A blur by two halves of weights; with an ``amount`` the image plus what the blur lacks.

    ``half_x`` and ``half_y`` hold float32 weights from the middle on. Rows come first; sums are
    float32, each pair of equally far taps is added before it is weighed, and results are rounded
    once.
    """

    name = "separable"
    windowed = True

    def __init__(
        self,
        image: ImageSpec,
        edges: Edges,
        half_x: Floats,
        half_y: Floats,
        amount: float | None = None,
    ) -> None:
        super().__init__(image, image)
        self._edges, self._half_x, self._half_y, self._amount = edges, half_x, half_y, amount

    @property
    def _radii(self) -> tuple[int, int]:
        return len(self._half_x) - 1, len(self._half_y) - 1

    @property
    def _unrolled(self) -> bool:
        return max(self._radii) <= UNROLLED

    @property
    def _tile(self) -> Tile:
        return strip_of(self.source, self._radii[1]) if self._unrolled else LONG

    @property
    def template(self) -> tuple[int, ...]:
        radii = self._radii if self._unrolled else (-1, -1)
        return *radii, *self._tile.template, int(self._amount is not None), int(self._whole)

    @property
    def _whole(self) -> bool:
        """Whether rows of bytes are weighed four samples at once, by weights of 16 bits."""
        many = _LEAST_WHOLE <= self._radii[0] <= UNROLLED and self._unrolled
        return many and self.source.dtype == "uint8" and float(self._half_x.max()) < 1

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
        halves = self._half_x.tobytes(), self._half_y.tobytes()
        return *halves, self._amount, self._edges.key

    def pack(self, block: Block) -> Callable[[int], Structure]:
        at_x, at_y = block.add(self._half_x.tobytes()), block.add(self._half_y.tobytes())
        tail = int(self._amount is not None), self._amount or 0.0
        edges = self._edges.params
        return lambda base: SeparableParams(
            self.frame, edges, *self._radii, *tail, base + at_x, base + at_y
        )

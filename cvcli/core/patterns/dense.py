"""A filter of any taps: the sum of weighed samples, or a blend with what it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import Structure, c_float, c_int32, c_void_p
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.stencil import Edges, EdgesParams, Tap
from cvcli.core.tiles import Tile, dense_tile_of
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec

_UNROLLED = 2
# The tile of filters of any taps, a thread a pixel.
_PIXELS = Tile(32, 8, 256)


class DenseParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/dense.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("edges", EdgesParams),
        ("radius_x", c_int32),
        ("radius_y", c_int32),
        ("count", c_int32),
        ("blends", c_int32),
        ("taps", c_void_p),
        ("amount", c_float),
        ("reserved", c_int32),
    )


class Dense(Pattern):
    """The correlation with ``rows`` of weights, whose middle is at half their number, rounded down.

    Products are added in the order of the rows in float32, those of weight 0 left out, and the
    sum is rounded once. With an ``amount`` that rounded sum is what the result goes towards, that
    far, from the sample; pixels on the edge of the image then stay as they are.
    """

    name = "dense"
    windowed = True

    def __init__(
        self,
        image: ImageSpec,
        edges: Edges,
        rows: Sequence[Sequence[float]],
        amount: float | None = None,
    ) -> None:
        super().__init__(image, image)
        self._edges, self._amount = edges, amount
        height, width = len(rows), len(rows[0])
        self._radii = width // 2, height // 2
        self._taps = [
            Tap(dy - height // 2, dx - width // 2, weight)
            for dy, row in enumerate(rows)
            for dx, weight in enumerate(row)
            if c_float(weight).value
        ]

    @property
    def _unrolled(self) -> bool:
        return max(self._radii) <= _UNROLLED

    @property
    def _tile(self) -> Tile:
        return dense_tile_of(self.source) if self._unrolled else _PIXELS

    @property
    def _mask(self) -> int:
        """Which taps there are, one bit each, for kernels that know their places."""
        radius_x, radius_y = self._radii
        wide = 2 * radius_x + 1
        return sum(1 << (tap.dy + radius_y) * wide + tap.dx + radius_x for tap in self._taps)

    @property
    def template(self) -> tuple[int, ...]:
        blends = int(self._amount is not None)
        if not self._unrolled:
            return -1, -1, 32, 8, 1, 0, blends
        return *self._radii, self._tile.width, 64, 2, self._mask, blends

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self._tile.threads

    @property
    def tile(self) -> tuple[int, int]:
        return self._tile.extent

    @property
    def key(self) -> tuple[object, ...]:
        return b"".join(map(bytes, self._taps)), self._radii, self._amount, self._edges.key

    def pack(self, block: Block) -> Callable[[int], Structure]:
        at = block.add(b"".join(map(bytes, self._taps)) or bytes(16))
        edges = self._edges.params
        counts = *self._radii, len(self._taps), int(self._amount is not None)
        return lambda base: DenseParams(self.frame, edges, *counts, base + at, self._amount or 0.0)

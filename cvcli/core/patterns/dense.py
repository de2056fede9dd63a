"""A filter of any taps: the sum of weighed samples, or a blend with what it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import Structure, c_float, c_int32, c_void_p
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.stencil import Edges, EdgesParams, Tap
from cvcli.core.tiles import Tile, strip_of
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec

_UNROLLED = 2
# Sums of bytes by whole numbers that add up to this are well within 16 bits, negative ones too.
_MOST = 64
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
        ("share", c_float),
    )


class Dense(Pattern):
    """The correlation with ``rows`` of weights, whose middle is at half their number, rounded down.

    Weights are ``rows`` over ``divisor``. Products are added in the order of the rows in float32,
    those of weight 0 left out, and the sum is rounded once. With an ``amount`` that rounded sum is
    what the result goes towards, that far, from the sample; pixels on the edge of the image then
    stay as they are.

    Sums of few bytes by whole numbers are exact, in whichever arithmetic. So are they over an odd
    ``divisor`` once rounded: the errors of float32 are less than what lies between and halfway.
    """

    name = "dense"
    windowed = True

    def __init__(
        self,
        image: ImageSpec,
        edges: Edges,
        rows: Sequence[Sequence[float]],
        amount: float | None = None,
        divisor: int = 1,
    ) -> None:
        super().__init__(image, image)
        self._edges, self._amount, self._divisor = edges, amount, divisor
        height, width = len(rows), len(rows[0])
        self._radii = width // 2, height // 2
        self._taps = [
            Tap(dy - height // 2, dx - width // 2, weight / divisor, _whole(weight))
            for dy, row in enumerate(rows)
            for dx, weight in enumerate(row)
            if c_float(weight / divisor).value
        ]
        self._pairs = self._unrolled and image.dtype == "uint8" and self._fit_pairs(rows)

    def _fit_pairs(self, rows: Sequence[Sequence[float]]) -> bool:
        """Whether sums of bytes are whole numbers that fit 16 bits."""
        weights = [weight for row in rows for weight in row]
        if not all(weight == _whole(weight) for weight in weights):
            return False
        if self._amount is None:
            return self._divisor == 1 and sum(map(abs, weights)) <= _MOST
        odd = self._divisor % 2 == 1
        return odd and min(weights) >= 0 and sum(weights) == self._divisor <= _MOST

    @property
    def _unrolled(self) -> bool:
        return max(self._radii) <= _UNROLLED

    @property
    def _tile(self) -> Tile:
        if not self._unrolled:
            return _PIXELS
        return strip_of(self.source, self._radii[1], halves=2 if self._pairs else 1)

    @property
    def _mask(self) -> int:
        """Which taps there are, one bit each, for kernels that know their places."""
        radius_x, radius_y = self._radii
        wide = 2 * radius_x + 1
        return sum(1 << (tap.dy + radius_y) * wide + tap.dx + radius_x for tap in self._taps)

    @property
    def template(self) -> tuple[int, ...]:
        flags = int(self._amount is not None), int(self._pairs)
        if not self._unrolled:
            return -1, -1, *self._tile.template, 0, *flags
        return *self._radii, *self._tile.template, self._mask, *flags

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self._tile.threads

    @property
    def blocks(self) -> int:  # type: ignore[override]
        return max(self._tile.blocks - 1, 0)

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
        share = round(2**23 / self._divisor) / 2**23
        return lambda base: DenseParams(
            self.frame, edges, *counts, base + at, self._amount or 0.0, share
        )


def _whole(weight: float) -> int:
    """Return a weight as a small whole number, 0 if it is none."""
    return int(weight) if abs(weight) <= _MOST and weight == int(weight) else 0

"""A mean weighed by how far pixels lie from the middle, and how much their colours differ."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_float, c_int32, c_void_p
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.stencil import Edges, EdgesParams, Tap
from cvcli.devices import params

if TYPE_CHECKING:
    import numpy as np

    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec
    from cvcli.core.stencil import Floats
else:
    from cvcli.core.lazy import np

# Beyond so many sigmas a weight is below the smallest float32.
_REACH = 13.25
_ENTRIES = 4097
_UNROLLED = 4


class BilateralParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/bilateral.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("edges", EdgesParams),
        ("radius", c_int32),
        ("count", c_int32),
        ("taps", c_void_p),
        ("colours", c_void_p),
        ("entries", c_int32),
        ("scale", c_float),
    )


class Bilateral(Pattern):
    """Weights are Gaussians of distance and of the sum of the colour channels' differences.

    They are tables made in float64; for uint8 that of colours has an entry for every sum, for
    other dtypes 4097 between which weights are interpolated. A difference that is no number or
    infinite has no weight. Alpha is left alone.
    """

    name = "bilateral"
    windowed = True

    def __init__(
        self, image: ImageSpec, edges: Edges, radius: int, sigma_color: float, sigma_space: float
    ) -> None:
        super().__init__(image, image)
        self._edges, self._radius = edges, radius
        self._sigmas = sigma_color, sigma_space
        self._taps = _disc(radius, sigma_space)
        self._colours, self._scale = _colours(image, sigma_color)

    @property
    def template(self) -> tuple[int, ...]:
        return (self._radius if self._radius <= _UNROLLED else -1, *self.tile)

    @property
    def tile(self) -> tuple[int, int]:
        return 32, 32

    @property
    def key(self) -> tuple[object, ...]:
        return self._radius, self._sigmas, self._edges.key

    def pack(self, block: Block) -> Callable[[int], Structure]:
        taps = block.add(b"".join(map(bytes, self._taps)) or bytes(16))
        colours = block.add(self._colours.tobytes())
        edges, table = self._edges.params, (len(self._colours), self._scale)
        return lambda base: BilateralParams(
            self.frame, edges, self._radius, len(self._taps), base + taps, base + colours, *table
        )


def _disc(radius: int, sigma: float) -> list[Tap]:
    """Return the taps of a disc but its middle, row by row."""
    span = range(-radius, radius + 1)
    return [
        Tap(dy, dx, float(np.exp(-(dy**2 + dx**2) / (2 * sigma**2))))
        for dy in span
        for dx in span
        if 0 < dy**2 + dx**2 <= radius**2
    ]


def _colours(image: ImageSpec, sigma: float) -> tuple[Floats, float]:
    """Return the weights of differences, and what a difference is multiplied by to find its own."""
    if image.dtype == "uint8":
        difference, scale = np.arange(3 * 255 + 1, dtype=np.float64), 1.0
    else:
        scale = (_ENTRIES - 1) / (_REACH * sigma)
        difference = np.arange(_ENTRIES, dtype=np.float64) / scale
    return np.exp(-(difference**2) / (2 * sigma**2)).astype(np.float32), scale

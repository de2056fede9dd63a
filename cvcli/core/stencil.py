"""What the patterns of neighbourhoods share: the edges of an image, and weights of filters."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, c_float, c_int32
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cvcli.core.spec import ImageSpec

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]
else:
    from cvcli.core.lazy import np

BORDERS = ("constant", "replicate", "reflect", "reflect101", "wrap")
# Weights of uint8 filters are multiples of this: their rows are summed without rounding.
_UNIT = 2.0**-16


class EdgesParams(Structure):
    """Mirrors ``Edges`` of ``kernels/core/stencil.h``."""

    _fields_ = (("border", c_int32), ("reserved", c_int32), ("value", c_float * 4))


class Tap(Structure):
    """Mirrors ``Tap`` of ``kernels/core/stencil.h``: a place from the middle on, and a weight."""

    _fields_ = (
        ("dy", c_int32),
        ("dx", c_int32),
        ("weight", c_float),
        ("whole", c_int32),
    )


class Edges:
    """What lies outside an image: a border rule by name, and the samples of a constant."""

    def __init__(self, border: str, value: Sequence[float], image: ImageSpec) -> None:
        self.border = border
        samples = np.zeros(4, np.float64)
        if border == "constant":
            samples[: len(value)] = value
        if image.dtype != "float32":
            samples = np.clip(np.rint(samples), 0, image.top)
        self.value = tuple(map(float, samples.astype(np.float32)))

    @property
    def key(self) -> tuple[object, ...]:
        return self.border, self.value

    @property
    def params(self) -> EdgesParams:
        return EdgesParams(BORDERS.index(self.border), 0, (c_float * 4)(*self.value))


def gaussian_half(sigma: float, radius: int, dtype: str) -> Floats:
    """Return the weights of a Gaussian from its middle on, ``radius + 1`` of them.

    All of them, those to the left too, sum to 1. OpenCV's `getGaussianKernel` is the same formula.
    """
    distance = np.arange(radius + 1, dtype=np.float64)
    half = np.exp(-(distance**2) / (2 * sigma**2))
    return weights_of(half / (2 * half.sum() - half[0]), dtype)


def box_half(radius: int) -> Floats:
    """Return the weights of a mean from the middle on."""
    return np.full(radius + 1, 1 / (2 * radius + 1), np.float32)


def weights_of(half: Doubles, dtype: str) -> Floats:
    """Return float32 weights; for uint8 multiples of 2^-16 that keep a flat image as it is."""
    if dtype == "uint8":
        half = np.rint(half / _UNIT) * _UNIT
        half[0] = 1 - 2 * half[1:].sum()
    return half.astype(np.float32)

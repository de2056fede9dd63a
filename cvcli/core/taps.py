"""The weights of separable resampling: which source samples make each result sample of one axis.

The filters, their supports and how weights are cut off and normalised at the edges are those of
Pillow's ``Image.resize``, so that 8-bit results are Pillow's. Weights are worked out in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int32]
else:
    from cvcli.core.lazy import np

Span = tuple[float, float]
"""Begin and end on an axis, in samples of the source; they may lie within one."""
PRECISION = 22
"""Bits after the point of the fixed-point weights of 8-bit images."""
COARSE = 15
"""So many of those bits are zero in weights of 2**-7."""
EDGE = 3
"""Results at either end that may have weights of their own where an axis is doubled."""


@dataclass(frozen=True, eq=False)
class Taps:
    """Result ``i`` is the sum of ``weights[i, k] * source[first[i] + k]`` for ``k < count[i]``.

    ``weights`` are ``(n, most)``, 0 from ``count`` on: int32 in units of 2**-22, or float32.
    """

    first: Integers
    count: Integers
    weights: NDArray[np.generic]

    @property
    def most(self) -> int:
        """Taps of the result sample that has most."""
        return int(self.weights.shape[1])

    @property
    def copies(self) -> bool:
        """Whether every result sample is the source sample at its place."""
        return self.most == 1 and bool((self.first == np.arange(len(self.first))).all())

    @property
    def halves(self) -> bool:
        """Whether every two samples make one."""
        one = 1 << PRECISION if self.weights.dtype == np.int32 else 1
        half = self.most == 2 and bool((2 * self.weights == one).all())
        return half and bool((self.first == 2 * np.arange(len(self.first))).all())

    @property
    def doubled(self) -> Integers | None:
        """Weights ``(n, 4)`` if every sample makes two results, each from four; else None.

        Those of result ``i`` begin at sample ``i // 2 - 2 + i % 2``, be it outside. But for the
        first and the last three results all even ones have the same, and all odd ones, and they
        are whole numbers of 2**-7 below 1.
        """
        length = len(self.first)
        if self.weights.dtype != np.int32 or length < 16 or int(self.end.max()) * 2 != length:
            return None
        results = np.arange(length)
        places = (self.first - (results // 2 - 2 + results % 2))[:, None] + np.arange(self.most)
        inside = np.arange(self.most) < self.count[:, None]
        if ((places < 0) | (places > 3))[inside].any():
            return None
        windows = np.zeros((length, 4), np.int32)
        windows[np.nonzero(inside)[0], places[inside]] = self.weights[inside]
        inner = windows[EDGE + 1 : -EDGE - 1].reshape(-1, 2, 4)
        coarse = inner[0] >> COARSE
        same = (inner == coarse << COARSE).all() and (abs(coarse) < 128).all()
        ends = (windows[EDGE] == inner[0, 1]).all() and (windows[-EDGE - 1] == inner[0, 0]).all()
        return windows if same and ends else None

    @property
    def end(self) -> Integers:
        """One past the last source sample of each result sample."""
        return self.first + self.count


@lru_cache(maxsize=64)
def taps_of(
    source: int,
    target: int,
    filter: str,
    antialias: bool,
    fixed: bool,
    span: Span | None = None,
) -> Taps:
    """Return the taps from ``source`` samples to ``target``; equal lengths copy.

    With ``antialias`` the support grows with the factor of a reduction. ``fixed`` asks for
    weights in 22-bit fixed point, rounded half away from zero; else they are float32. The result
    spreads over a ``span`` of the source, by default all of it.
    """
    if source == target and span is None:
        first, count, exact = _copied(source)
    else:
        first, count, exact = _exact(source, target, filter, antialias, span or (0.0, source))
    if fixed:
        scaled = exact * (1 << PRECISION)
        weights = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32)
        return _trimmed(Taps(first, count, weights))
    return _trimmed(Taps(first, count, exact.astype(np.float32)))


def nearest(source: int, target: int) -> Integers:
    """Return the source index of each result index; places add up step by step, as in Pillow."""
    if source == target:
        return np.arange(source, dtype=np.int32)
    step = source / target
    steps = np.full(target, step)
    steps[0] = step * 0.5
    places: Integers = np.minimum(np.cumsum(steps), source - 1).astype(np.int32)
    return places


def _copied(length: int) -> tuple[Integers, Integers, Floats]:
    ones = np.ones((length, 1))
    return np.arange(length, dtype=np.int32), ones[:, 0].astype(np.int32), ones


def _exact(
    source: int, target: int, filter: str, antialias: bool, span: Span
) -> tuple[Integers, Integers, Floats]:
    function, radius = _FILTERS[filter]
    scale = (span[1] - span[0]) / target
    grown = max(scale, 1.0) if antialias else 1.0
    support = radius * grown
    center = span[0] + (np.arange(target) + 0.5) * scale
    first = np.maximum(np.trunc(center - support + 0.5), 0).astype(np.int32)
    end = np.minimum(np.trunc(center + support + 0.5), source).astype(np.int32)
    count = end - first
    places = np.arange(count.max(), dtype=np.int32)
    inside = places < count[:, None]
    distance = (places + first[:, None] - center[:, None] + 0.5) * (1.0 / grown)
    weights = np.where(inside, function(distance), 0.0)
    # One after the other, as in a loop: a pairwise sum may differ in the last bit.
    total = np.cumsum(weights, axis=1)[:, -1:]
    return first, count, weights / np.where(total == 0, 1.0, total)


def _trimmed(taps: Taps) -> Taps:
    """Leave out weights of zero at both ends: what they stand before is not read at all."""
    weights = taps.weights
    used = weights != 0
    some = used.any(axis=1)
    lead = np.where(some, used.argmax(axis=1), 0)
    stop = np.where(some, taps.most - used[:, ::-1].argmax(axis=1), 1)
    first, count = (taps.first + lead).astype(np.int32), (stop - lead).astype(np.int32)
    if (np.diff(first) < 0).any() or (np.diff(first + count) < 0).any():
        return taps  # kernels go through the source in one direction only
    at = np.arange(count.max())
    taken = np.take_along_axis(weights, np.minimum(lead[:, None] + at, taps.most - 1), 1)
    return Taps(first, count, np.where(at < count[:, None], taken, weights.dtype.type(0)))


def _box(x: Floats) -> Floats:
    return np.where((x > -0.5) & (x <= 0.5), 1.0, 0.0)


def _bilinear(x: Floats) -> Floats:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _hamming(x: Floats) -> Floats:
    """A sinc of radius 1 under a Hamming window, whose numbers are float32 in Pillow."""
    base, swing = float(np.float32(0.54)), float(np.float32(0.46))
    at = np.abs(x) * np.pi
    with np.errstate(invalid="ignore", divide="ignore"):
        inner = np.sin(at) / at * (base + swing * np.cos(at))
    return np.where(x == 0, 1.0, np.where(np.abs(x) < 1, inner, 0.0))


def _bicubic(x: Floats) -> Floats:
    """Keys' cubic convolution with a = -0.5."""
    a, x = -0.5, np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _lanczos(x: Floats) -> Floats:
    """A sinc under the central lobe of one three times as wide."""
    return np.where((x >= -3) & (x < 3), _sinc(x) * _sinc(x / 3), 0.0)


def _sinc(x: Floats) -> Floats:
    at = x * np.pi
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(x == 0, 1.0, np.sin(at) / at)


_FILTERS: dict[str, tuple[Callable[[Floats], Floats], float]] = {
    "box": (_box, 0.5),
    "bilinear": (_bilinear, 1.0),
    "hamming": (_hamming, 1.0),
    "bicubic": (_bicubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}

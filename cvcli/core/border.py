"""Border rules as index maps, with OpenCV's names and meanings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cvcli.core.move import IndexMap

    Wide = NDArray[np.int64]
else:
    from cvcli.core.lazy import np


def extend(length: int, before: int, after: int, border: str) -> IndexMap:
    """Return source indices of an axis of ``length`` made longer on both sides.

    The new ones follow the border rule; for ``constant`` they are -1. A border may be any number
    of times longer than the axis.
    """
    index = np.arange(-before, length + after, dtype=np.int64)
    return _RULES[border](index, length).astype(np.int32)


def _constant(index: Wide, length: int) -> Wide:
    return np.where((index >= 0) & (index < length), index, -1)


def _replicate(index: Wide, length: int) -> Wide:
    return np.clip(index, 0, length - 1)


def _reflect(index: Wide, length: int) -> Wide:
    phase = index % (2 * length)
    return np.minimum(phase, 2 * length - 1 - phase)


def _reflect101(index: Wide, length: int) -> Wide:
    period = max(1, 2 * length - 2)
    phase = index % period
    return np.minimum(phase, period - phase) if length > 1 else phase


def _wrap(index: Wide, length: int) -> Wide:
    return index % length


_RULES = {
    "constant": _constant,
    "replicate": _replicate,
    "reflect": _reflect,
    "reflect101": _reflect101,
    "wrap": _wrap,
}

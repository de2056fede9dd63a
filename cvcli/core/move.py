"""Gathers by one index map an axis: flip, quarter turn, crop, pad and whatever they compose to.

A map holds, for each destination index of its axis, the source index, or ``~k`` for constant
number ``k``. Where both axes name a constant the larger number wins, so that the border of a
later pad covers that of an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cvcli.core.spec import ImageSpec

    IndexMap = NDArray[np.int32]
else:
    from cvcli.core.lazy import np


class Run(NamedTuple):
    """Destination indices ``begin`` to ``end`` read from ``source`` on, in steps of 1 or -1."""

    begin: int
    end: int
    source: int
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A gather: ``dst[y, x] = src[map_y[y], map_x[x]]``, or with ``transpose`` the two swapped.

    ``constants`` is ``(k, channels)`` in the image's dtype.
    """

    y: IndexMap
    x: IndexMap
    transpose: bool
    constants: NDArray[np.generic]

    def then(self, later: Move) -> Move:
        """Return the one gather that equals this one followed by another."""
        shift = len(self.constants)
        from_y, from_x = (self.x, self.y) if later.transpose else (self.y, self.x)
        return Move(
            y=_compose(from_y, later.y, shift),
            x=_compose(from_x, later.x, shift),
            transpose=self.transpose != later.transpose,
            constants=np.concatenate([self.constants, later.constants]),
        )


def identity(spec: ImageSpec) -> Move:
    """Return the gather that changes nothing."""
    return gather(spec)


def gather(
    spec: ImageSpec,
    *,
    y: IndexMap | None = None,
    x: IndexMap | None = None,
    transpose: bool = False,
    fill: Sequence[float] = (),
) -> Move:
    """Return a gather from an image of ``spec``; a map left out keeps its axis.

    Without ``transpose`` ``y`` holds source rows and ``x`` source columns; with it the
    destination's rows are the source's columns. ``fill`` is the pixel that ``-1`` stands for.
    """
    rows, columns = indices(spec.height), indices(spec.width)
    default_y, default_x = (columns, rows) if transpose else (rows, columns)
    constants = pixels([fill], spec) if fill else np.empty((0, spec.channels), spec.dtype)
    return Move(default_y if y is None else y, default_x if x is None else x, transpose, constants)


def indices(length: int) -> IndexMap:
    """Return ``0, 1, ... length - 1``."""
    return np.arange(length, dtype=np.int32)


def reversed_indices(length: int) -> IndexMap:
    """Return ``length - 1, ... 1, 0``."""
    return indices(length)[::-1]


def pixels(values: Sequence[Sequence[float]], spec: ImageSpec) -> NDArray[np.generic]:
    """Return pixel values in an image's dtype: round half to even, then saturate."""
    array = np.asarray(values, dtype=np.float64)
    if spec.dtype != "float32":
        array = np.clip(np.rint(array), 0, spec.top)
    return array.astype(spec.dtype)


def longest_run(index: IndexMap) -> Run:
    """Return the longest stretch of source indices in steps of 1 or -1; it may be empty."""
    best = Run(0, 0, 0, 1)
    for step in (1, -1):
        joined = (np.diff(index) == step) & (index[:-1] >= 0) & (index[1:] >= 0)
        begin, length = _longest_true(joined)
        if length + 1 > best.end - best.begin and index[begin] >= 0:
            best = Run(begin, begin + length + 1, int(index[begin]), step)
    return best


def _longest_true(flags: NDArray[np.bool_]) -> tuple[int, int]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    best = int(np.argmax(lengths))
    return int(edges[2 * best]), int(lengths[best])


def _compose(earlier: IndexMap, later: IndexMap, shift: int) -> IndexMap:
    inside = later >= 0
    taken = earlier[np.where(inside, later, 0)]
    return np.where(inside, taken, later - shift).astype(np.int32)

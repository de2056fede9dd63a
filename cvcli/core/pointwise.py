"""Pointwise operators: one formula a sample, folded into tables for integer images."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cvcli.devices.cpu import float_samples, integer_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.unsignedinteger]
else:
    from cvcli.core.lazy import np


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A functor of ``kernels/<functor>.h`` and its parameters, all numbers.

    It applies to every sample but alpha, which is the last of 2 or 4 channels.
    """

    functor: str
    params: tuple[float, ...]

    def block(self) -> bytes:
        """Return the parameters as the float32 block that the kernels read."""
        return bytes((ctypes.c_float * len(self.params))(*self.params))


@lru_cache(maxsize=256)
def table_of(step: Pointwise, dtype: str) -> Table:
    """Return a step's values over a whole integer dtype: 256 or 65,536 entries."""
    levels = 1 << 8 * np.dtype(dtype).itemsize
    table = np.frombuffer(integer_table(step.functor, step.params, levels), dtype=dtype)
    table.flags.writeable = False
    return table


def fold_tables(steps: Sequence[Pointwise], dtype: str) -> Table:
    """Return the one table that equals the steps in turn."""
    table = table_of(steps[0], dtype)
    for step in steps[1:]:
        table = table_of(step, dtype)[table]
    return table


def apply_to_pixels(step: Pointwise, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return ``(k, channels)`` pixels after a step, with the kernels' own arithmetic."""
    if not values.size:
        return values
    if values.dtype != np.float32:
        mapped: NDArray[np.generic] = table_of(step, values.dtype.name)[values]
        if has_alpha(values.shape[1]):
            mapped[:, -1] = values[:, -1]
        return mapped
    raw = float_samples(step.functor, step.block(), values.tobytes(), values.shape[1])
    return np.frombuffer(raw, np.float32).reshape(values.shape)


def has_alpha(channels: int) -> bool:
    """Return whether the last channel is alpha: gray with alpha, RGB with alpha."""
    return channels in (2, 4)

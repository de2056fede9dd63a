"""Operators that make each destination pixel from the one source pixel at its place."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from cvcli.core.pointwise import Pointwise, apply_to_pixels, fold_tables
from cvcli.core.spec import ImageSpec
from cvcli.devices import Functor
from cvcli.devices.cpu import pixel_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cvcli.core.lazy import np


@dataclass(frozen=True, slots=True)
class Pixelwise:
    """A functor over whole pixels, its parameters, and the kind of pixel it gives.

    ``functor`` is a header of ``kernels/``, or ``header.Type`` for one of several in it. Its
    struct holds ``params`` as float32 and, if there is ``data``, a pointer to that at the end.
    """

    functor: str
    params: tuple[float, ...]
    channels: int
    dtype: str
    data: bytes = b""

    def block(self, address: int = 0) -> bytes:
        """Return the struct; ``address`` is where the kernel finds ``data``."""
        raw = bytes((ctypes.c_float * len(self.params))(*self.params))
        if not self.data:
            return raw
        return raw + b"\0" * (-len(raw) % 8) + address.to_bytes(8, "little")


Sample = Pointwise | Pixelwise
TABLE = "table"


def result_spec(sample: Sample, spec: ImageSpec) -> ImageSpec:
    """Return what an image of ``spec`` is after a step."""
    if isinstance(sample, Pointwise):
        return spec
    return replace(spec, channels=sample.channels, dtype=sample.dtype)


def typed(steps: Sequence[Sample], spec: ImageSpec) -> list[tuple[Sample, ImageSpec]]:
    """Return each step with the kind of image that it meets."""
    met = []
    for step in steps:
        met.append((step, spec))
        spec = result_spec(step, spec)
    return met


def fold_samples(steps: Sequence[Sample], spec: ImageSpec) -> tuple[Sample, ...]:
    """Return the same steps on an image of ``spec``, each run of integer ones as one table."""
    folded: list[Sample] = []
    for is_table, group in groupby(typed(steps, spec), key=_is_table):
        run = list(group)
        if is_table:
            folded.append(_table(run))
        else:
            folded.extend(step for step, _ in run)
    return tuple(folded)


def _is_table(met: tuple[Sample, ImageSpec]) -> bool:
    step, spec = met
    return isinstance(step, Pointwise) and spec.dtype != "float32"


def _table(run: Sequence[tuple[Sample, ImageSpec]]) -> Pixelwise:
    spec = run[0][1]
    steps = [step for step, _ in run if isinstance(step, Pointwise)]
    table = fold_tables(steps, spec.dtype)
    return Pixelwise(TABLE, (), spec.channels, spec.dtype, table.tobytes())


def through(sample: Sample, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return ``(k, channels)`` pixels after a step, with the kernels' own arithmetic."""
    if isinstance(sample, Pointwise):
        return apply_to_pixels(sample, values)
    count, channels = values.shape
    shape, dtype = (count, sample.channels), np.dtype(sample.dtype)
    if not count:
        return np.empty(shape, dtype)
    data = ctypes.create_string_buffer(sample.data, max(1, len(sample.data)))
    block = sample.block(ctypes.addressof(data))
    nbytes = sample.channels * dtype.itemsize
    functor = Functor(sample.functor, values.dtype.name, channels, nbytes)
    raw = pixel_values(functor, block, values.tobytes(), count)
    return np.frombuffer(raw, dtype).reshape(shape)

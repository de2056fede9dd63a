"""What all ways in have in common: the checks of foreign memory and the tensor made of it."""

from __future__ import annotations

from functools import lru_cache

from cvcli.core.engine import Engine
from cvcli.core.tensor import Tensor, form_of
from cvcli.errors import TensorError

_LAYOUTS = {2: "HW", 3: "HWC", 4: "NHWC"}


@lru_cache(maxsize=256)
def number_named(typestr: str) -> str:
    """Return the name of a native bool, integer or float dtype; raise `TensorError`."""
    import numpy as np

    try:
        dtype = np.dtype(typestr)
    except TypeError:
        raise TensorError(f"as_tensor: dtype must be a number, got {typestr!r}") from None
    if dtype.kind not in "buif" or not dtype.isnative:
        raise TensorError(f"as_tensor: dtype must be a native number, got {dtype}")
    return dtype.name


def wrap(
    engine: Engine,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: str,
    layout: str | None,
    owner: object,
) -> Tensor:
    """Return a tensor on foreign memory; ``strides`` are bytes, by default packed.

    Any strides will do here, reversed and permuted ones too; an operator then says what it needs.
    """
    named = _LAYOUTS.get(len(shape)) if layout is None else layout
    form = form_of(shape, dtype, named, strides)
    itemsize = form.itemsize
    if pointer % itemsize or (strides is not None and any(step % itemsize for step in strides)):
        raise TensorError(
            f"as_tensor: elements must be aligned to their {itemsize} bytes, "
            f"got address {pointer:#x} and strides {form.strides}",
            tip="make a contiguous copy first",
        )
    nbytes = form.nbytes
    if nbytes and not form.packed:
        reach = sum((n - 1) * abs(step) for n, step in zip(shape, form.strides, strict=True))
        nbytes = reach + itemsize
    return Tensor(engine.adopt(pointer, nbytes, owner), form)

"""Run a chain on a tensor."""

from __future__ import annotations

from cvcli.core.chain import Chain
from cvcli.core.engine import engine_of
from cvcli.core.launch import run_plans
from cvcli.core.spec import ImageSpec
from cvcli.core.stream import Stream, stream_for
from cvcli.core.tensor import Tensor
from cvcli.errors import TensorError


def apply(
    chain: Chain, src: Tensor, *, stream: Stream | None = None, out: Tensor | None = None
) -> Tensor:
    """Queue a chain on ``stream`` (default: the current one) and return its output.

    ``src`` is ``HWC``, ``NHWC``, ``HW`` or ``NHW``; the output has the same layout and dtype.
    With ``out`` the result is written there: it must fit in shape, dtype, layout and device and
    must not overlap ``src``.
    """
    images = src.images()
    plan = chain.plan(images.first.spec)
    on = stream_for(src.device, stream)
    shape = _shape(src, plan.target)
    if out is None:
        out = Tensor.empty(shape, plan.target.dtype, src.layout, src.device)
    else:
        _check_out(out, src, shape, plan.target.dtype)
    run_plans(engine_of(src.buffer.device), images, out.images(), [plan], on)
    return out


def _shape(src: Tensor, target: ImageSpec) -> tuple[int, ...]:
    sizes = {"H": target.height, "W": target.width, "C": target.channels}
    layout = src.layout or ""
    return tuple(sizes.get(axis, size) for axis, size in zip(layout, src.shape, strict=True))


def _check_out(out: Tensor, src: Tensor, shape: tuple[int, ...], dtype: str) -> None:
    wanted = {"shape": shape, "dtype": dtype, "layout": src.layout, "device": src.device}
    for name, value in wanted.items():
        got = getattr(out, name)
        if got != value:
            raise TensorError(f"out: {name} must be {value}, got {got}")
    if out.buffer.read_only:
        raise TensorError("out: must be writable, got read-only memory")
    if _span(out)[0] < _span(src)[1] and _span(src)[0] < _span(out)[1]:
        raise TensorError("out: must not overlap the input")


def _span(tensor: Tensor) -> tuple[int, int]:
    """Return the first and one past the last address of a tensor with positive strides."""
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True))
    return tensor.pointer, tensor.pointer + last + tensor.dtype.itemsize

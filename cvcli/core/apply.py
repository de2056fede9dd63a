"""Run a chain on a tensor."""

from __future__ import annotations

from cvcli.core.chain import Chain
from cvcli.core.engine import engine_of
from cvcli.core.launch import Bound, BoundPass, bind
from cvcli.core.passes import Plan
from cvcli.core.stream import Stream, stream_for
from cvcli.core.tensor import Form, Tensor, form_of
from cvcli.devices import Device
from cvcli.errors import TensorError, UsageError

_Key = tuple[Device, Form, Form | None]
_BOUND_KEPT = 256


def apply(
    chain: Chain, src: Tensor, *, stream: Stream | None = None, out: Tensor | None = None
) -> Tensor:
    """Queue a chain on ``stream`` (default: the current one) and return its output.

    ``src`` is ``HWC``, ``NHWC``, ``HW`` or ``NHW``; the output has the same layout and dtype.
    With ``out`` the result is written there: it must fit in shape, dtype, layout and device and
    must not overlap ``src``.
    """
    if not isinstance(src, Tensor):
        raise _no_tensor("operand", src)
    if out is not None and not isinstance(out, Tensor):
        raise _no_tensor("out", out)
    if not isinstance(chain, Chain):
        raise UsageError(
            f"chain: must be a chain of operators, got {type(chain).__name__}",
            tip="make one with cvcli.parse_chain",
        )
    buffer = src.buffer
    device = buffer.device
    on = stream_for(device, stream)
    key = device, src.form, None if out is None else out.form
    form, bound = chain.bound.get(key) or _bind(chain, src, key, on)
    if out is None:
        out = Tensor(bound.engine.allocate(form.nbytes), form)
    else:
        _check_memory(out, src)
    target = out.buffer
    bound.run(buffer, target, buffer.pointer + src.offset, target.pointer + out.offset, on)
    return out


def _no_tensor(name: str, value: object) -> TensorError:
    return TensorError(
        f"{name}: must be a cvcli.Tensor, got {type(value).__name__}",
        tip="wrap an array with cvcli.as_tensor",
    )


def _bind(chain: Chain, src: Tensor, key: _Key, stream: Stream) -> tuple[Form, Bound | BoundPass]:
    plan = chain.plan(src.spec())
    form = _output_form(src, plan)
    if key[2] is not None:
        _check_form(key[2], form)
        form = key[2]
    # Only its geometry counts here, so any tensor of that form would do.
    target = Tensor(src.buffer, form)
    bound = bind(engine_of(src.buffer.device), plan, src.images(), target.images(), stream)
    if len(chain.bound) >= _BOUND_KEPT:
        chain.bound.clear()
    chain.bound[key] = form, bound
    return form, bound


def _output_form(src: Tensor, plan: Plan) -> Form:
    """Return the layout of the source with the axes that the result needs, and its sizes."""
    target, layout = plan.target, src.layout or ""
    sizes = {"H": target.height, "W": target.width, "C": target.channels}
    sizes["N"] = src.shape[layout.find("N")]
    has_channels = "C" in layout or target.channels > 1 or target.planar
    image = target.layout if has_channels else "HW"
    layout = ("N" if "N" in layout else "") + image
    return form_of(tuple(sizes[axis] for axis in layout), target.dtype, layout)


def _check_form(out: Form, wanted: Form) -> None:
    for name in ("shape", "dtype", "layout"):
        if getattr(out, name) != getattr(wanted, name):
            value, got = getattr(wanted, name), getattr(out, name)
            raise TensorError(f"out: {name} must be {value}, got {got}")


def _check_memory(out: Tensor, src: Tensor) -> None:
    buffer = out.buffer
    if buffer.device is not src.buffer.device:
        raise TensorError(f"out: device must be {src.device}, got {out.device}")
    if buffer.read_only:
        raise TensorError("out: must be writable, got read-only memory")
    if buffer is not src.buffer and buffer.owner is src.buffer.owner is None:
        return
    if _span(out)[0] < _span(src)[1] and _span(src)[0] < _span(out)[1]:
        raise TensorError("out: must not overlap the input")


def _span(tensor: Tensor) -> tuple[int, int]:
    """Return the first and one past the last address of a tensor with positive strides."""
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True))
    return tensor.pointer, tensor.pointer + last + tensor.form.itemsize

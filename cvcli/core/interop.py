"""Zero-copy exchange of arrays and streams with other libraries.

What the producer says decides the barrier, and it is taken down when its array is wrapped: a real
stream handle becomes an event on that stream; a default stream or none named can mean anything,
so the first use waits for the whole device; ``None`` and ``-1`` promise that nothing is pending.
"""

from __future__ import annotations

from math import prod
from typing import Any

from cvcli.core.engine import engine_of
from cvcli.core.memory import Buffer
from cvcli.core.stream import Stream
from cvcli.core.tensor import Tensor, form_of, packed_strides
from cvcli.devices import open_device
from cvcli.errors import TensorError

_LEGACY, _PER_THREAD = 1, 2
_POINTER_DEVICE = 9


class CudaView:
    """A view of a CUDA tensor for consumers of the CUDA Array Interface."""

    def __init__(self, tensor: Tensor) -> None:
        if tensor.buffer.device.kind != "cuda":
            raise TensorError(f"cuda: the tensor must be on a CUDA device, got {tensor.device}")
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        tensor = self.tensor
        return {
            "version": 3,
            "shape": tensor.shape,
            "typestr": tensor.dtype.str,
            "data": (tensor.pointer if tensor.nbytes else 0, tensor.buffer.read_only),
            "strides": None if tensor.is_packed else tensor.strides,
            "stream": _writer_handle(tensor.buffer),
        }


def _writer_handle(buffer: Buffer) -> int | None:
    """Return the stream a consumer must follow: the last writer's, or None if there is none."""
    mark = buffer.marks.writer
    if mark is None:
        return buffer.producer.handle if buffer.producer is not None else None
    return mark.stream.handle or _LEGACY


def as_tensor(obj: Any, layout: str | None = None) -> Tensor:
    """Wrap an array of another library without copying it; the wrapper keeps it alive.

    Takes the CUDA Array Interface (version 2 and 3), NumPy arrays and whatever offers their array
    interface. ``layout`` names each axis, such as ``NHWC``; by default it is ``HW``, ``HWC`` or
    ``NHWC`` by the number of axes. Raises `TensorError`.
    """
    if isinstance(obj, Tensor):
        return obj if layout in (None, obj.layout) else _relabel(obj, str(layout))
    if hasattr(obj, "__cuda_array_interface__"):
        return _from_cuda(obj, layout)
    return _from_numpy(obj, layout)


def _relabel(tensor: Tensor, layout: str) -> Tensor:
    form = form_of(tensor.shape, tensor.form.dtype, layout, tensor.strides)
    return Tensor(tensor.buffer, form, tensor.offset)


def _default_layout(ndim: int) -> str | None:
    return {2: "HW", 3: "HWC", 4: "NHWC"}.get(ndim)


def _from_numpy(obj: Any, layout: str | None) -> Tensor:
    import numpy as np

    array = np.asarray(obj)
    if array.dtype.kind not in "buif" or not array.dtype.isnative:
        raise TensorError(f"as_tensor: dtype must be a native number, got {array.dtype}")
    _check_aligned(array.ctypes.data, array.strides, array.itemsize)
    nbytes = sum((n - 1) * abs(s) for n, s in zip(array.shape, array.strides, strict=True))
    buffer = engine_of("cpu").adopt(array.ctypes.data, nbytes + array.itemsize, array)
    buffer.read_only = not array.flags.writeable
    layout = layout or _default_layout(array.ndim)
    return Tensor(buffer, form_of(array.shape, array.dtype.name, layout, array.strides))


def _check_aligned(pointer: int, strides: tuple[int, ...], itemsize: int) -> None:
    """Refuse elements that straddle their own size, which a GPU can't load."""
    if any(place % itemsize for place in (pointer, *strides)):
        raise TensorError(
            f"as_tensor: elements must be aligned to their {itemsize} bytes, got strides {strides}",
            tip="make a contiguous copy first",
        )


def _from_cuda(obj: Any, layout: str | None) -> Tensor:
    import numpy as np

    interface = obj.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise TensorError("as_tensor: masked arrays can't be wrapped")
    dtype = np.dtype(interface["typestr"])
    if dtype.kind not in "buif":
        raise TensorError(f"as_tensor: dtype must be a number, got {dtype}")
    shape, (pointer, read_only) = tuple(interface["shape"]), interface["data"]
    strides = interface.get("strides") or packed_strides(shape, dtype.itemsize)
    _check_aligned(pointer, strides, dtype.itemsize)
    device = open_device(f"cuda:{_device_of(pointer)}")
    buffer = engine_of(device).adopt(pointer, prod(shape) * dtype.itemsize, obj)
    buffer.read_only = bool(read_only)
    _capture(buffer, interface)
    layout = layout or _default_layout(len(shape))
    return Tensor(buffer, form_of(shape, dtype.name, layout, tuple(strides)))


def _device_of(pointer: int) -> int:
    """Return the index of the GPU that holds a pointer."""
    import ctypes

    from cvcli.devices.find import driver

    library, index = driver(), ctypes.c_int()
    if library is None or not pointer:
        return 0
    library.cuPointerGetAttribute(ctypes.byref(index), _POINTER_DEVICE, ctypes.c_uint64(pointer))
    return index.value


def _capture(buffer: Buffer, interface: dict[str, Any]) -> None:
    """Take down what the producer says of its pending work."""
    handle = interface.get("stream", _LEGACY)
    if handle is None or handle == -1:
        return
    known = isinstance(handle, int) and handle > 0
    buffer.producer = Stream._wrap(buffer.device, handle if known else _LEGACY)
    if known and handle > _PER_THREAD:
        buffer.marks.writer = engine_of(buffer.device).mark(buffer.producer)
    else:
        buffer.unordered = True

"""Zero-copy import of arrays of other libraries.

What the producer says decides the barrier, and it is taken down when its array is wrapped: a real
stream handle becomes an event on that stream; a default stream or none named can mean anything,
so the first use waits for the whole device; ``None`` and ``-1`` promise that nothing is pending.
By DLPack the producer orders its current stream, which need not be the one that wrote, so that the
first use waits for the device too. Who knows the writing stream can name it and spare the wait.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache
from typing import Any

from cvcli.core.dlpack import from_dlpack
from cvcli.core.engine import Engine, engine_of
from cvcli.core.lend import CudaView
from cvcli.core.memory import Buffer
from cvcli.core.stream import Stream, as_stream
from cvcli.core.tensor import Tensor, form_of
from cvcli.core.wrap import number_named, wrap
from cvcli.devices.find import driver, gpu_count
from cvcli.errors import TensorError

# No stream at all, the legacy default stream, and each thread's own.
_LAST_SENTINEL = 2
_POINTER_DEVICE, _NO_DEVICE = 9, -2
_PAGE_BITS = 21  # GPU memory is mapped by 2 MiB
_PICTURES = ("L", "LA", "RGB", "RGBA", "I;16", "I", "F")
_NEEDED = {"shape", "typestr", "data", "version"}


def as_tensor(obj: Any, layout: str | None = None, *, stream: Any = None) -> Tensor:
    """Wrap an array of another library without copying it; the wrapper keeps it alive.

    Takes the CUDA Array Interface (version 2 and 3), DLPack, NumPy arrays and whatever offers
    their array interface, and Pillow images, whose interface gives a read-only copy. Any bool,
    integer or float dtype and any strides are wrapped; operators say which they take. ``layout``
    is ``HW``, ``HWC``, ``CHW``, ``NHW``, ``NHWC`` or ``NCHW``, a letter an axis; by default it is
    ``HW``, ``HWC`` or ``NHWC`` by the number of axes, and none for other numbers. ``stream``,
    anything that `as_stream` takes, is the one that the array is written on: work on it is waited
    for, whatever the array says, and nothing else. Raises `TensorError`.
    """
    tensor = _taken(obj, layout)
    if stream is not None:
        _state(tensor.buffer, as_stream(stream, tensor.device))
    return tensor


def _state(buffer: Buffer, writer: Stream) -> None:
    """Take down which stream a foreign array is written on."""
    if writer.device != buffer.device.name:
        raise TensorError(
            f"as_tensor: stream must be on {buffer.device.name} like the array, got {writer.device}"
        )
    buffer.producer, buffer.unordered = writer, False
    buffer.marks.writer = engine_of(buffer.device).mark(writer)


def _taken(obj: Any, layout: str | None) -> Tensor:
    if isinstance(obj, CudaView):
        obj = obj.tensor
    if isinstance(obj, Tensor):
        return obj if layout in (None, obj.layout) else _relabel(obj, layout)
    interface, problem = _cuda_interface(obj)
    if interface is not None and ("stream" in interface or not hasattr(obj, "__dlpack__")):
        return _from_cuda(obj, interface, layout)
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_interface__"):
        try:
            return from_dlpack(obj, layout)
        except TensorError:
            if interface is None:
                raise
    if interface is not None:
        return _from_cuda(obj, interface, layout)
    if problem is not None:
        raise TensorError(problem)
    return _from_numpy(obj, layout)


def _relabel(tensor: Tensor, layout: str | None) -> Tensor:
    form = form_of(tensor.shape, tensor.form.dtype, layout, tensor.strides)
    return Tensor(tensor.buffer, form, tensor.offset)


def _from_numpy(obj: Any, layout: str | None) -> Tensor:
    import numpy as np

    _check_picture(obj)
    if isinstance(obj, np.ma.MaskedArray):
        raise TensorError(
            "as_tensor: masked arrays can't be wrapped", tip="fill it first: array.filled(value)"
        )
    array = np.asarray(obj)
    interface = array.__array_interface__
    pointer, read_only = interface["data"]
    name, strides = number_named(interface["typestr"]), interface["strides"]
    tensor = wrap(engine_of("cpu"), pointer, array.shape, strides, name, layout, array)
    tensor.buffer.read_only = read_only
    return tensor


def _check_picture(obj: Any) -> None:
    """Refuse a Pillow image whose samples are no gray, colour or alpha."""
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(obj, pillow.Image) and obj.mode not in _PICTURES:
        known = ", ".join(_PICTURES)
        raise TensorError(
            f"as_tensor: the image's mode must be one of {known}, got {obj.mode}",
            tip="convert it first: image.convert('RGB')",
        )


def _cuda_interface(obj: Any) -> tuple[dict[str, Any] | None, str | None]:
    """Return an object's CUDA Array Interface, or None and what is wrong with it, if anything."""
    try:
        interface = obj.__cuda_array_interface__
    except AttributeError:
        return None, None
    except Exception as error:
        return None, f"as_tensor: the array can't be shared ({error})"
    if not interface.keys() >= _NEEDED or interface["version"] < 2:
        return None, "as_tensor: the CUDA Array Interface must be complete and of version 2 or 3"
    return interface, None


def _from_cuda(obj: Any, interface: dict[str, Any], layout: str | None) -> Tensor:
    if interface.get("mask") is not None:
        raise TensorError("as_tensor: masked arrays can't be wrapped")
    name = number_named(interface["typestr"])
    shape, (pointer, read_only) = interface["shape"], interface["data"]
    strides = interface.get("strides")
    if strides is not None:
        strides = tuple(strides)
    engine = _engine_at(_device_of(pointer))
    tensor = wrap(engine, pointer or 0, tuple(shape), strides, name, layout, obj)
    buffer = tensor.buffer
    buffer.read_only = bool(read_only)
    _capture(engine, buffer, interface.get("stream", _LAST_SENTINEL))
    return tensor


@cache
def _engine_at(index: int) -> Engine:
    return engine_of(f"cuda:{index}")


@cache
def _pointer_attribute() -> Any:
    """Return the driver's function that tells of a pointer, if there is a driver."""
    library = driver()
    if library is None:
        return None
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_uint64
    )
    return prototype(("cuPointerGetAttribute", library))


@cache
def _known_pages() -> set[int] | None:
    """Return where memory has been found, if there is but one GPU that it can be of."""
    return set() if gpu_count() == 1 else None


def _device_of(pointer: int) -> int:
    """Return the index of the GPU that holds a pointer; 0 for the null one of an empty array."""
    pages = _known_pages()
    if pages is not None and pointer >> _PAGE_BITS in pages:
        return 0
    query, index = _pointer_attribute(), ctypes.c_int()
    if query is None or not pointer:
        return 0
    if query(index, _POINTER_DEVICE, pointer) or index.value == _NO_DEVICE:
        raise TensorError(f"as_tensor: the driver knows no memory at address {pointer:#x}")
    if pages is not None:
        pages.add(pointer >> _PAGE_BITS)
    return max(index.value, 0)


def _capture(engine: Engine, buffer: Buffer, handle: Any) -> None:
    """Take down what the producer says of its pending work."""
    if handle is None or handle == -1:
        return
    if isinstance(handle, int) and handle > _LAST_SENTINEL:
        buffer.producer = Stream._wrap(buffer.device, handle, _current(handle))
        buffer.marks.writer = engine.mark(buffer.producer)
    else:
        # A thread's own default stream waits for the legacy one too, whichever thread asks.
        buffer.producer, buffer.unordered = engine.default, True


def _current(handle: int) -> object:
    """Return CuPy's current stream if it is this one, to keep it from being destroyed."""
    cupy = sys.modules.get("cupy")
    # Without a GPU there is none.
    with suppress(AttributeError, RuntimeError):
        stream = cupy.cuda.get_current_stream() if cupy is not None else None
        return stream if stream is not None and stream.ptr == handle else None
    return None

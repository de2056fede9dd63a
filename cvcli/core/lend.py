"""Memory for other libraries: DLPack and the CUDA Array Interface.

A consumer's stream waits for all that we have queued on the memory, reads too, as it may write.
What it queues later is out of our sight, as both specifications leave it: before cvcli uses the
tensor again, wrap the consumer's array, or let a stream wait for the consumer's. Only reuse of
the memory after the consumer has dropped it is safe without that.
"""

from __future__ import annotations

import atexit
import ctypes
from ctypes import PYFUNCTYPE, c_char_p, c_int64, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

from cvcli.core import dlpack
from cvcli.core.dlpack import DLDataType, DLDevice, DLTensor, Managed, Versioned
from cvcli.core.engine import engine_of
from cvcli.core.marks import Captured
from cvcli.core.stream import Stream, stream_for
from cvcli.errors import ParameterError, TensorError

if TYPE_CHECKING:
    from cvcli.core.memory import Buffer
    from cvcli.core.tensor import Tensor

_CODES = {kind: code for code, kind in dlpack.CODES.items()}
_COPIED = 2
_lent: dict[int, _Loan] = {}


class CudaView:
    """A view of a CUDA tensor for consumers of the CUDA Array Interface."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        if tensor.buffer.device.kind != "cuda":
            raise TensorError(
                f"cuda: the tensor must be on a CUDA device, got {tensor.device}",
                tip="copy it there with .to('cuda:0')",
            )
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        tensor = self.tensor
        form, buffer = tensor.form, tensor.buffer
        return {
            "version": 3,
            "shape": form.shape,
            "typestr": form.typestr,
            "data": (buffer.pointer + tensor.offset if form.nbytes else 0, buffer.read_only),
            "strides": None if form.packed else form.strides,
            "stream": _stream_to_follow(buffer),
        }


def _stream_to_follow(buffer: Buffer) -> int | None:
    """Return a stream that is behind every use of a buffer so far, or None if there was none."""
    buffer.lent = True
    marks = buffer.marks
    writer = marks.writer
    stream = None if writer is None or buffer.unordered else writer.stream
    if stream is None:
        return _stream_behind_all(buffer)
    for mark in marks.readers.values():
        if mark.stream is not stream:
            return _stream_behind_all(buffer)
    return stream._handle or dlpack.LEGACY


def _stream_behind_all(buffer: Buffer) -> int | None:
    """The same where there is no one stream yet."""
    engine, stream = engine_of(buffer.device), buffer.producer
    if buffer.unordered and stream is not None:
        engine.hand_over(buffer, stream)
    marks = buffer.marks.all()
    if marks and isinstance(marks[0], Captured):
        marks[0].synchronize()
    if marks:
        stream = marks[0].stream
        if any(mark.stream is not stream for mark in marks):
            engine.hand_over(buffer, stream)
    return None if stream is None else stream.handle or dlpack.LEGACY


class _Loan:
    """One export: what its capsule points to, and the tensor that it keeps."""

    def __init__(self, tensor: Tensor, versioned: bool, flags: int) -> None:
        form = tensor.form
        numbers = c_int64 * max(1, len(form.shape))
        self._shape = numbers(*form.shape)
        self._strides = numbers(*(step // form.itemsize for step in form.strides))
        self._tensor = tensor
        kind = form.typestr[1]
        array = DLTensor(
            data=tensor.pointer,
            device=DLDevice(*device_of(tensor)),
            ndim=len(form.shape),
            dtype=DLDataType(_CODES[kind], 8 * form.itemsize, 1),
            shape=self._shape,
            strides=self._strides,
        )
        deleter = ctypes.cast(_library().cvcli_dlpack_deleter, c_void_p).value
        if versioned:
            self.managed: Managed | Versioned = Versioned(
                major=1, minor=0, deleter=deleter, flags=flags, tensor=array
            )
        else:
            self.managed = Managed(tensor=array, deleter=deleter)
        self.name = dlpack.NAMES[0 if versioned else 1]

    def capsule(self) -> object:
        """Return the capsule; the loan ends with it, or with its consumer's call of the deleter."""
        address = ctypes.addressof(self.managed)
        _lent[address] = self
        try:
            return _capsule_new(address, self.name, _library().cvcli_dlpack_capsule_gone)
        except BaseException:
            _end(address)
            raise


def device_of(tensor: Tensor) -> tuple[int, int]:
    """Return a tensor's device as DLPack names it."""
    device = tensor.buffer.device
    return (dlpack.CUDA, device.index) if device.kind == "cuda" else (dlpack.CPU, 0)


def to_dlpack(
    tensor: Tensor,
    stream: int | None,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> object:
    """Return a capsule, as the array API's ``__dlpack__`` says; raise `BufferError`."""
    source = tensor
    if dl_device is not None and tuple(map(int, dl_device)) != device_of(tensor):
        tensor = _on_host(tensor, dl_device, copy)
        stream = None
    elif copy:
        tensor = _copied(tensor)
    versioned = max_version is not None and max_version[0] >= 1
    if tensor.buffer.read_only and not versioned:
        raise BufferError("dlpack: read-only memory needs a consumer of DLPack 1.0 or later")
    _hand_over(tensor, stream)
    flags = dlpack.READ_ONLY if tensor.buffer.read_only else 0
    flags |= _COPIED if tensor is not source else 0
    return _Loan(tensor, versioned, flags).capsule()


def _on_host(tensor: Tensor, dl_device: tuple[int, int], copy: bool | None) -> Tensor:
    if int(dl_device[0]) != dlpack.CPU or copy is False:
        raise BufferError(f"dlpack: the tensor can't be put on device {tuple(dl_device)}")
    return tensor.to("cpu")


def _copied(tensor: Tensor) -> Tensor:
    if not tensor.is_packed:
        raise BufferError("dlpack: only a packed tensor can be copied")
    out = type(tensor).empty(tensor.shape, tensor.form.dtype, tensor.layout, tensor.device)
    engine = engine_of(tensor.buffer.device)
    on = stream_for(tensor.buffer.device, None)
    engine.copy(out.buffer, tensor.buffer, tensor.nbytes, on, of=tensor.offset)
    return out


def _hand_over(tensor: Tensor, stream: int | None) -> None:
    """Make the consumer's stream wait; on the CPU consumers read at once, so the host waits."""
    buffer = tensor.buffer
    if buffer.device.kind != "cuda":
        if stream not in (None, -1):
            raise BufferError(f"dlpack: stream must be None for a tensor on the CPU, got {stream}")
        buffer.synchronize()
        return
    buffer.lent = True
    if stream == -1:
        return
    if stream is not None and (not isinstance(stream, int) or stream < 1):
        raise ParameterError(f"dlpack: stream must be None, -1 or a handle > 0, got {stream}")
    handle = dlpack.LEGACY if stream is None else stream
    engine_of(buffer.device).hand_over(buffer, Stream._wrap(buffer.device, handle))


_PYTHON = (
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_Fetch",
    "PyErr_Restore",
    "PyCapsule_IsValid",
    "PyCapsule_GetPointer",
)
_capsule_new = PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def _end(address: int) -> None:
    """End a loan; a second call does nothing."""
    _lent.pop(address, None)


_drop = PYFUNCTYPE(None, c_void_p)(_end)


@cache
def _library() -> ctypes.CDLL:
    """Return the library whose deleter everything lent has."""
    from cvcli.devices.cpu import native

    library = native()
    # In the order of the structure in kernels/dlpack.cpp.
    functions = [getattr(ctypes.pythonapi, name) for name in _PYTHON]
    addresses = [ctypes.cast(function, c_void_p) for function in (*functions, _drop)]
    library.cvcli_dlpack_start((c_void_p * len(addresses))(*addresses))
    atexit.register(library.cvcli_dlpack_start, None)
    # What is out when Python ends is read by its consumers after this module's names have gone.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_lent))
    return library

"""DLPack in, with the structures of its versions 0.8 and 1.0.

The producer makes our current stream wait, and its deleter is called once, when our last use of
the memory is over.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, PYFUNCTYPE, Structure, c_int, c_int32, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

from cvcli.core.engine import Engine, engine_of
from cvcli.core.stream import Stream, stream_for
from cvcli.core.wrap import number_named, wrap
from cvcli.devices import open_device
from cvcli.errors import TensorError

if TYPE_CHECKING:
    from cvcli.core.tensor import Tensor

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
READ_ONLY = 1
LEGACY = 1
_MAJOR = 1
CODES = {0: "i", 1: "u", 2: "f", 6: "b"}
_CODE_NAMES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}
NAMES = (b"dltensor_versioned", b"dltensor")
_USED = (b"used_dltensor_versioned", b"used_dltensor")


class DLDevice(Structure):
    """Kind and index of a device."""

    _fields_ = (("kind", c_int32), ("index", c_int32))


class DLDataType(Structure):
    """Kind, bits and vector length of an element."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(Structure):
    """An array; strides are in elements, null for packed ones."""

    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(Structure):
    """What a ``dltensor`` capsule holds."""

    _fields_ = (("tensor", DLTensor), ("context", c_void_p), ("deleter", c_void_p))
    flags, major, minor = 0, 0, 8


class Versioned(Structure):
    """What a ``dltensor_versioned`` capsule holds."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_python = ctypes.pythonapi
_capsule_is_valid = PYFUNCTYPE(c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
_capsule_get_pointer = PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)
_capsule_set_name = PYFUNCTYPE(c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _python)
)
# With Python's lock held: a deleter may be careless about it.
_call_deleter = PYFUNCTYPE(None, c_void_p)


class _Owner:
    """Keeps a producer's memory; dropped when our last use is over."""

    __slots__ = ("_managed", "_source")

    def __init__(self, source: object) -> None:
        self._source = source
        self._managed: Managed | Versioned | None = None

    def take(self, managed: Managed | Versioned) -> None:
        """Be the one who calls the deleter."""
        self._managed = managed

    def __del__(self) -> None:
        managed, self._managed = self._managed, None
        if managed is not None and managed.deleter and not sys.is_finalizing():
            _call_deleter(managed.deleter)(ctypes.addressof(managed))


def from_dlpack(obj: Any, layout: str | None = None) -> Tensor:
    """Wrap an array that offers ``__dlpack__``; raise `TensorError`.

    The producer of a GPU's array makes our current stream wait for its own current one. That need
    not be the one that wrote the array, so the first use waits for the device.
    """
    kind, index = (int(part) for part in obj.__dlpack_device__())
    if kind in (CUDA, CUDA_MANAGED):
        engine = engine_of(f"cuda:{index}")
        stream = stream_for(engine.device, None)
        tensor = _take(engine, _ask(obj, stream.handle or LEGACY), obj, layout)
        tensor.buffer.marks.writer = engine.mark(stream)
        tensor.buffer.producer, tensor.buffer.unordered = _producer(obj, engine), True
        return tensor
    if kind not in (CPU, CUDA_HOST):
        raise TensorError(
            f"as_tensor: the array must be on the CPU or a CUDA GPU, got DLPack device type {kind}"
        )
    if kind == CUDA_HOST:
        # A copy from the GPU into it may be under way, which the producer can't order for a host.
        open_device(f"cuda:{index}").synchronize()
    return _take(engine_of("cpu"), _ask(obj, None), obj, layout)


def _producer(obj: Any, engine: Engine) -> Stream:
    """Return the stream that must wait for our use: PyTorch's current one, else the default."""
    torch = sys.modules.get("torch")
    handle = LEGACY
    if torch is not None and isinstance(obj, torch.Tensor):
        handle = torch.cuda.current_stream(engine.device.index).cuda_stream
    return Stream._wrap(engine.device, handle)


def _ask(obj: Any, stream: int | None) -> object:
    """Return the producer's capsule, of the newest version that it knows."""
    try:
        try:
            return obj.__dlpack__(stream=stream, max_version=(_MAJOR, 0))
        except TypeError:
            # Producers before version 1.0 do not know the argument.
            return obj.__dlpack__(stream=stream)
    except BufferError as error:
        raise TensorError(f"as_tensor: the array can't be shared ({error})") from error


def _take(engine: Engine, capsule: object, source: object, layout: str | None) -> Tensor:
    """Consume a capsule; one that is refused stays its producer's."""
    for name, used in zip(NAMES, _USED, strict=True):
        if _capsule_is_valid(capsule, name):
            address = _capsule_get_pointer(capsule, name)
            managed = _managed_at(address, versioned=name is NAMES[0])
            tensor = _wrapped(engine, managed, source, layout)
            _capsule_set_name(capsule, used)
            tensor.buffer.owner.take(managed)  # type: ignore[attr-defined]
            return tensor
    raise TensorError(f"as_tensor: __dlpack__ must return an unused capsule, got {capsule!r}")


def _managed_at(address: int, *, versioned: bool) -> Managed | Versioned:
    return Versioned.from_address(address) if versioned else Managed.from_address(address)


def _wrapped(
    engine: Engine, managed: Managed | Versioned, source: object, layout: str | None
) -> Tensor:
    if managed.major > _MAJOR:
        raise TensorError(f"as_tensor: DLPack must be of version 1 or older, got {managed.major}")
    array = managed.tensor
    dtype = _dtype_name(array.dtype)
    shape, strides = tuple(array.shape[: array.ndim]), None
    if array.strides:
        itemsize = array.dtype.bits // 8
        strides = tuple(step * itemsize for step in array.strides[: array.ndim])
    pointer = (array.data or 0) + array.byte_offset
    tensor = wrap(engine, pointer, shape, strides, dtype, layout, _Owner(source))
    tensor.buffer.read_only = bool(managed.flags & READ_ONLY)
    return tensor


def _dtype_name(dtype: DLDataType) -> str:
    kind, bits = CODES.get(dtype.code), dtype.bits
    if kind is None or dtype.lanes != 1 or bits % 8:
        name = _CODE_NAMES.get(dtype.code, f"code {dtype.code}, ")
        lanes = f" in vectors of {dtype.lanes}" if dtype.lanes != 1 else ""
        raise TensorError(f"as_tensor: dtype must be a native number, got {name}{bits}{lanes}")
    return number_named(f"{kind}{bits // 8}")

"""Calls into the compiled kernels: a launch as a function of a band of rows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from cvcli.devices.base import Functor, Kernel, Launch
from cvcli.errors import OutOfMemoryError

_SUFFIX = {"uint8": "u8", "uint16": "u16", "float32": "f32"}
_ITEMSIZE = {"uint8": 1, "uint16": 2, "float32": 4}

Call = Callable[[int, int], None]


class RowFn(ctypes.Structure):
    """A pointwise operator bound to its parameters, applied to one row of float32 samples."""

    _fields_ = (("apply", ctypes.c_void_p), ("params", ctypes.c_void_p))


class PixelFn(ctypes.Structure):
    """A step bound to its parameters, from a row of pixels to one of ``nbytes`` a pixel."""

    _fields_ = (
        ("apply", ctypes.c_void_p),
        ("params", ctypes.c_void_p),
        ("nbytes", ctypes.c_int64),
    )


class RowsIn(ctypes.Structure):
    """How rows are read: ``read`` gathers one, null where rows are read as they lie."""

    _fields_ = (
        ("read", ctypes.c_void_p),
        ("fns", ctypes.c_void_p),
        ("count", ctypes.c_int32),
        ("nbytes", ctypes.c_int32),
    )


class RowsOut(ctypes.Structure):
    """How rows are written; ``planar`` is the size of a sample that goes to its own plane, or 0."""

    _fields_ = (
        ("fns", ctypes.c_void_p),
        ("count", ctypes.c_int32),
        ("planar", ctypes.c_int32),
    )


def pixel_symbol(functor: Functor) -> str:
    """Return the export that takes a row of pixels through a step."""
    kind = f"{_SUFFIX[functor.dtype]}_{functor.channels}"
    if functor.samples:
        return f"cvcli_samples_{functor.name}_{functor.channels}"
    return f"cvcli_pixels_{functor.name.replace('.', '_')}_{kind}"


def call_of(library: ctypes.CDLL, launch: Launch, block: ctypes.Structure) -> Call:
    """Return what runs a launch on the rows from one number to another."""
    return (_map_call if launch.kernel.tile is None else _pattern_call)(library, launch, block)


def _map_call(library: ctypes.CDLL, launch: Launch, block: ctypes.Structure) -> Call:
    kernel = launch.kernel
    function = getattr(library, f"cvcli_map_{_SUFFIX[kernel.dtype]}_{kernel.channels}")
    names = [name for name in kernel.functors if name != "table"]
    fns = (RowFn * len(names))()
    for fn, name, params in zip(fns, names, launch.params, strict=False):
        fn.apply = _address(library, f"cvcli_row_{name}")
        fn.params = _pointer(params)
    args = (ctypes.byref(block), fns, ctypes.c_int32(len(fns)))

    def call(begin: int, end: int) -> None:
        function(*args, ctypes.c_int64(begin), ctypes.c_int64(end))

    return call


def _pattern_call(library: ctypes.CDLL, launch: Launch, block: ctypes.Structure) -> Call:
    kernel, (each, *blocks) = launch.kernel, launch.params
    kind = f"{_SUFFIX[kernel.dtype]}_{kernel.channels}"
    function = getattr(library, f"cvcli_{kernel.pattern}_{kind}")
    cut = len(kernel.before)
    before = _fns(library, kernel.before, blocks[:cut])
    after = _fns(library, kernel.after, blocks[cut:])
    dtype, channels = kernel.source
    rows_in = RowsIn(_reader(library, kernel), ctypes.addressof(before), len(before))
    rows_in.nbytes = _ITEMSIZE[dtype] * channels
    planar = _ITEMSIZE[kernel.result] if kernel.planar[1] else 0
    rows_out = RowsOut(ctypes.addressof(after), len(after), planar)
    args = (ctypes.byref(block), each, ctypes.byref(rows_in), ctypes.byref(rows_out))

    def call(begin: int, end: int, keep: object = (before, after)) -> None:
        if function(*args, ctypes.c_int64(begin), ctypes.c_int64(end)):
            raise OutOfMemoryError(f"cpu: no room for the rows of {kernel.pattern}")

    return call


def _fns(
    library: ctypes.CDLL, functors: Sequence[Functor], blocks: Sequence[bytes]
) -> ctypes.Array[PixelFn]:
    fns = (PixelFn * len(functors))()
    for fn, functor, params in zip(fns, functors, blocks, strict=True):
        fn.apply = _address(library, pixel_symbol(functor))
        fn.params = _pointer(params)
        fn.nbytes = functor.nbytes
    return fns


def _reader(library: ctypes.CDLL, kernel: Kernel) -> int | None:
    """Return what gathers a row of the source; rows that lie ready need nothing."""
    dtype, channels = kernel.source
    if kernel.planar[0]:
        return _address(library, f"cvcli_planes_{_SUFFIX[dtype]}_{channels}")
    if kernel.moved:
        return _address(library, f"cvcli_gather_{_SUFFIX[dtype]}_{channels}")
    return None


def _address(library: ctypes.CDLL, symbol: str) -> int | None:
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value


def _pointer(params: bytes) -> int | None:
    """Return the address of a block that the launch keeps alive."""
    return ctypes.cast(ctypes.c_char_p(params), ctypes.c_void_p).value

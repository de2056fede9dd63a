"""The CUDA device, over CuPy's thin bindings of the runtime, and the driver's own launch.

Only ``cupy_backends`` is imported, which starts in milliseconds where CuPy itself takes a while.
Its driver bindings import CuPy after all, so kernels are loaded and launched through the driver
library, which was found before.
"""

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import byref, c_uint, c_void_p
from typing import Any

from cupy_backends.cuda.api import runtime

from cvcli.devices import find, nvrtc
from cvcli.devices.base import Copy, Device, Kernel, Launch
from cvcli.devices.geometry import grid_of, lasting_grid, with_room
from cvcli.errors import DeviceError, OutOfMemoryError

_OUT_OF_MEMORY = 2
_NO_CONTEXT = 201
_MAX_DYNAMIC_SHARED = 8


class _Config(ctypes.Structure):
    """The driver's ``CUlaunchConfig``: grid, block, shared memory, stream, no attributes."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_nbytes", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


class _Native:
    """A launch as the driver takes it; only the stream is left to fill in."""

    __slots__ = ("_keep", "arguments", "config")

    def __init__(
        self, launch: Launch, kernel: Kernel, grid: tuple[int, int, int], function: int
    ) -> None:
        blocks = [ctypes.create_string_buffer(block, len(block)) for block in launch.params]
        addresses = [ctypes.addressof(launch.args), *map(ctypes.addressof, blocks)]
        pointers = (c_void_p * len(addresses))(*addresses)
        self.config = _Config(grid=grid, block=(kernel.threads, 1, 1), shared_nbytes=kernel.room)
        self.arguments = (byref(self.config), c_void_p(function), pointers, None)
        self._keep = blocks


class CudaDevice(Device):
    """One NVIDIA GPU."""

    kind = "cuda"
    marks_late = True

    def __init__(self, index: int) -> None:
        self.name, self.index = f"cuda:{index}", index
        self._functions: dict[Kernel, int] = {}
        self._lock = threading.Lock()
        self._alone = find.gpu_count() == 1
        self._entered = threading.local()
        self._leave(self._enter())
        self.compute = find.describe_gpu(index).compute
        limit, count = (
            runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin,
            runtime.cudaDevAttrMultiProcessorCount,
        )
        self._shared_nbytes = int(self._call(runtime.deviceGetAttribute, limit, index))
        self._multiprocessors = int(self._call(runtime.deviceGetAttribute, count, index))
        library = find.driver()
        if library is None:
            raise DeviceError(f"{self.name}: there is no NVIDIA driver on this machine")
        self._driver, self._launch = library, library.cuLaunchKernelEx

    def _enter(self) -> int | None:
        """Make this device current for the calling thread; return the one to go back to, if any.

        Where there are several, other libraries go by the current one.
        """
        if self._alone:
            # The only one stays current in a thread that has entered it once.
            if not hasattr(self._entered, "yes"):
                runtime.setDevice(self.index)
                self._entered.yes = True
            return None
        before: int = runtime.getDevice()
        # Even so a thread may have no context yet.
        runtime.setDevice(self.index)
        return None if before == self.index else before

    @staticmethod
    def _leave(before: int | None) -> None:
        if before is not None:
            runtime.setDevice(before)

    def _call(self, function: Callable[..., Any], *args: object) -> Any:
        before = self._enter()
        try:
            return function(*args)
        except runtime.CUDARuntimeError as error:
            if error.status == _OUT_OF_MEMORY:
                raise OutOfMemoryError(f"{self.name}: out of memory") from None
            raise DeviceError(f"{self.name}: {error}") from None
        finally:
            self._leave(before)

    def allocate(self, nbytes: int) -> int:
        return int(self._call(runtime.malloc, nbytes))

    def free(self, pointer: int) -> None:
        self._call(runtime.free, pointer)

    def allocate_staging(self, nbytes: int) -> int:
        return int(self._call(runtime.hostAlloc, nbytes, runtime.hostAllocPortable))

    def free_staging(self, pointer: int) -> None:
        self._call(runtime.freeHost, pointer)

    def create_stream(self) -> int:
        return int(self._call(runtime.streamCreateWithFlags, runtime.streamNonBlocking))

    def destroy_stream(self, stream: int) -> None:
        self._call(runtime.streamDestroy, stream)

    def synchronize_stream(self, stream: int) -> None:
        self._call(runtime.streamSynchronize, stream)

    def query_stream(self, stream: int) -> bool:
        return bool(self._call(runtime.streamQuery, stream) == 0)

    def create_event(self, timing: bool) -> int:
        if timing:
            return int(self._call(runtime.eventCreate))
        return int(self._call(runtime.eventCreateWithFlags, runtime.eventDisableTiming))

    def destroy_event(self, event: int) -> None:
        self._call(runtime.eventDestroy, event)

    def record_event(self, event: int, stream: int) -> None:
        self._call(runtime.eventRecord, event, stream)

    def wait_event(self, stream: int, event: int, *, order_only: bool = False) -> None:
        self._call(runtime.streamWaitEvent, stream, event)

    def synchronize_event(self, event: int) -> None:
        self._call(runtime.eventSynchronize, event)

    def query_event(self, event: int) -> bool:
        return bool(self._call(runtime.eventQuery, event) == 0)

    def elapsed_ms(self, start: int, end: int) -> float:
        return float(self._call(runtime.eventElapsedTime, start, end))

    def synchronize(self) -> None:
        self._call(runtime.deviceSynchronize)

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self._call(runtime.memcpyAsync, dst, src, nbytes, runtime.memcpyDefault, stream)

    def memory_info(self) -> tuple[int, int]:
        free, total = self._call(runtime.memGetInfo)
        return int(free), int(total)

    def launch(self, launch: Launch, stream: int) -> None:
        native = launch.native or self._prepare(launch)
        native.config.stream = stream
        before = self._enter()
        status = self._launch(*native.arguments)
        if status == _NO_CONTEXT and self._alone:
            # Another library has taken it away.
            runtime.setDevice(self.index)
            status = self._launch(*native.arguments)
        if before is not None:
            self._leave(before)
        if status:
            raise DeviceError(f"{self.name}: a kernel can't be launched ({_named(status)})")

    def create_graph(self, work: Sequence[Launch | Copy]) -> int:
        # Loading a kernel may synchronise, which a stream that is being captured forbids.
        for piece in work:
            if isinstance(piece, Launch):
                self._prepare(piece)
        stream = self.create_stream()
        try:
            graph = self._captured(work, stream)
        finally:
            self.destroy_stream(stream)
        try:
            return int(self._call(runtime.graphInstantiate, graph))
        finally:
            self._call(runtime.graphDestroy, graph)

    def _captured(self, work: Sequence[Launch | Copy], stream: int) -> int:
        # Other threads may allocate meanwhile, which the stricter modes forbid.
        self._call(runtime.streamBeginCapture, stream, runtime.streamCaptureModeRelaxed)
        try:
            for piece in work:
                if isinstance(piece, Launch):
                    self.launch(piece, stream)
                else:
                    self.copy(piece.dst, piece.src, piece.nbytes, stream)
        except BaseException:
            with suppress(DeviceError):
                self._call(runtime.graphDestroy, self._call(runtime.streamEndCapture, stream))
            raise
        return int(self._call(runtime.streamEndCapture, stream))

    def launch_graph(self, graph: int, stream: int) -> None:
        self._call(runtime.graphLaunch, graph, stream)

    def destroy_graph(self, graph: int) -> None:
        self._call(runtime.graphExecDestroy, graph)

    def _prepare(self, launch: Launch) -> _Native:
        kernel = with_room(launch.kernel, self._shared_nbytes)
        grid = lasting_grid(launch, self._multiprocessors) if kernel.room else grid_of(launch)
        native = launch.native = _Native(launch, kernel, grid, self._function(kernel))
        return native

    def _function(self, kernel: Kernel) -> int:
        return self._functions.get(kernel) or self._load(kernel)

    def _load(self, kernel: Kernel) -> int:
        with self._lock:
            if kernel not in self._functions:
                self._functions[kernel] = self._module(kernel)
            return self._functions[kernel]

    def _module(self, kernel: Kernel) -> int:
        return int(self._call(self._loaded, kernel))

    def _loaded(self, kernel: Kernel) -> int:
        code, module, function = nvrtc.cubin(kernel, self.compute), c_void_p(), c_void_p()
        status = self._driver.cuModuleLoadData(byref(module), code)
        if not status:
            name = nvrtc.ENTRY.encode()
            status = self._driver.cuModuleGetFunction(byref(function), module, name)
        if not status and kernel.room:
            status = self._driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, kernel.room)
        if status or function.value is None:
            raise DeviceError(f"{self.name}: a kernel can't be loaded ({_named(status)})")
        return function.value


def _named(status: int) -> str:
    """Return the driver's name of an error, such as ``CUDA_ERROR_INVALID_IMAGE``."""
    name, library = ctypes.c_char_p(), find.driver()
    if library is None or library.cuGetErrorName(status, byref(name)) or name.value is None:
        return f"error {status}"
    return name.value.decode()


def array_library() -> Any:
    """Return CuPy itself, whose arrays others hand us and take from us."""
    import cupy

    return cupy

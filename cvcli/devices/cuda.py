"""The CUDA device, over CuPy's thin bindings of the runtime and the driver.

Only ``cupy_backends`` is imported: it starts in milliseconds where CuPy itself takes a while.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from cupy_backends.cuda.api import driver, runtime

from cvcli.devices import nvrtc
from cvcli.devices.base import Device, Kernel, Launch
from cvcli.devices.find import describe_gpu
from cvcli.devices.geometry import grid_of, parts_of
from cvcli.errors import DeviceError, OutOfMemoryError

_OUT_OF_MEMORY = 2


class _Native:
    """What the driver is given for a launch: function, grid, addresses of the arguments."""

    __slots__ = ("_keep", "function", "grid", "pointers")

    def __init__(self, launch: Launch, function: int, processors: int) -> None:
        args: Any = launch.args
        args.parts = parts_of(launch)
        blocks = [ctypes.create_string_buffer(block, len(block)) for block in launch.params]
        addresses = [ctypes.addressof(args), *map(ctypes.addressof, blocks)]
        array = (ctypes.c_void_p * len(addresses))(*addresses)
        self._keep = blocks, array
        self.function, self.grid = function, grid_of(launch, processors)
        self.pointers = ctypes.addressof(array)


class CudaDevice(Device):
    """One NVIDIA GPU."""

    kind = "cuda"

    def __init__(self, index: int) -> None:
        self.name, self.index = f"cuda:{index}", index
        self._thread = threading.local()
        self._functions: dict[Kernel, int] = {}
        self._lock = threading.Lock()
        self._use()
        self.compute = describe_gpu(index).compute
        self.processors = int(
            self._call(runtime.deviceGetAttribute, runtime.cudaDevAttrMultiProcessorCount, index)
        )

    def _use(self) -> None:
        """Make this device current for the calling thread."""
        runtime.setDevice(self.index)

    def _call(self, function: Callable[..., Any], *args: object) -> Any:
        self._use()
        try:
            return function(*args)
        except runtime.CUDARuntimeError as error:
            if error.status == _OUT_OF_MEMORY:
                raise OutOfMemoryError(f"{self.name}: out of memory") from None
            raise DeviceError(f"{self.name}: {error}") from None
        except driver.CUDADriverError as error:
            raise DeviceError(f"{self.name}: {error}") from None

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
        runtime.setDevice(self.index)
        runtime.eventRecord(event, stream)

    def wait_event(self, stream: int, event: int) -> None:
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
        runtime.setDevice(self.index)
        native = launch.native
        if native is None:
            function = self._function(launch.kernel)
            native = launch.native = _Native(launch, function, self.processors)
        try:
            driver.launchKernel(
                *(native.function, native.grid, 1, 1, nvrtc.THREADS, 1, 1, 0),
                *(stream, native.pointers, 0),
            )
        except driver.CUDADriverError as error:
            raise DeviceError(f"{self.name}: {error}") from None

    def _function(self, kernel: Kernel) -> int:
        return self._functions.get(kernel) or self._load(kernel)

    def _load(self, kernel: Kernel) -> int:
        with self._lock:
            if kernel not in self._functions:
                self._functions[kernel] = self._module(kernel)
            return self._functions[kernel]

    def _module(self, kernel: Kernel) -> int:
        module = self._call(driver.moduleLoadData, nvrtc.cubin(kernel, self.compute))
        return int(self._call(driver.moduleGetFunction, module, nvrtc.ENTRY))

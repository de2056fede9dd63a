"""The CPU device: compiled kernels, and streams that are in-order queues."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from pathlib import Path

from cvcli.devices import cgroup
from cvcli.devices.base import Copy, Device, Functor, Launch
from cvcli.devices.numbers import Numbers
from cvcli.devices.queues import DrivenQueue, Point, Queue
from cvcli.devices.rows import call_of, pixel_symbol
from cvcli.errors import DeviceError, OutOfMemoryError

SIMD_LEVELS = ("baseline", "avx2", "avx512")
_ALIGNMENT = 64
# What one thread moves in about a millisecond; for less, a second one costs more than it saves.
_BAND_NBYTES = 8 << 20


def library_path(level: str) -> Path:
    """Return the compiled library of one SIMD level; raise `DeviceError` where it is missing."""
    import cvcli

    for folder in cvcli.__path__:
        for path in sorted((Path(folder) / "lib").glob(f"*cvcli_cpu_{level}.*")):
            return path
    raise DeviceError(
        f"the compiled kernels (cvcli_cpu_{level}) are missing from the installation",
        tip="reinstall cvcli with a C++ compiler on the PATH",
    )


@cache
def load_library(level: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(library_path(level)))


@cache
def simd_level() -> str:
    """Return the best build this processor runs, or the one ``CVCLI_SIMD`` names."""
    best = load_library("baseline").cvcli_simd_level()
    asked = os.environ.get("CVCLI_SIMD")
    if asked is not None:
        if asked not in SIMD_LEVELS[: best + 1]:
            raise DeviceError(
                f"CVCLI_SIMD must be one of {', '.join(SIMD_LEVELS[: best + 1])}, got {asked!r}"
            )
        return asked
    for level in reversed(SIMD_LEVELS[1 : best + 1]):
        try:
            library_path(level)
        except DeviceError:
            continue
        return level
    return "baseline"


def native() -> ctypes.CDLL:
    """Return the kernels compiled for this processor."""
    return load_library(simd_level())


def cpu_threads() -> int:
    """Return the processors this process may use: affinity and cgroup quota respected."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:
        usable = os.cpu_count() or 1
    return max(1, min(usable, cgroup.processors() or usable))


def integer_table(functor: str, params: tuple[float, ...], levels: int) -> bytes:
    """Return an operator's table over every value of an integer dtype (256 or 65536 levels)."""
    out = ctypes.create_string_buffer(levels * (1 if levels == 256 else 2))
    block = (ctypes.c_double * len(params))(*params)
    getattr(native(), f"cvcli_table_{functor}")(block, ctypes.c_int32(levels), out)
    return out.raw


def float_samples(functor: str, params: bytes, samples: bytes, channels: int) -> bytes:
    """Return packed float32 pixels after one pointwise operator."""
    row = ctypes.create_string_buffer(samples, len(samples))
    width = ctypes.c_int64(len(samples) // 4 // channels)
    apply = getattr(native(), f"cvcli_row_{functor}")
    apply(ctypes.c_char_p(params), row, width, ctypes.c_int32(channels))
    return row.raw


def pixel_values(functor: Functor, params: bytes, pixels: bytes, count: int) -> bytes:
    """Return ``count`` packed pixels after a step on whole pixels."""
    out = ctypes.create_string_buffer(count * functor.nbytes)
    apply = getattr(native(), pixel_symbol(functor))
    apply(ctypes.c_char_p(params), ctypes.c_char_p(pixels), out, ctypes.c_int64(count))
    return out.raw


class CpuDevice(Device):
    """Host memory, and kernels compiled for this processor."""

    name, kind, index = "cpu", "cpu", 0

    def __init__(self) -> None:
        self._library = native()
        self._handles = Numbers()
        self._streams: dict[int, Queue | DrivenQueue] = {0: Queue("cvcli-stream-0")}
        self._events: dict[int, Point] = {}
        self._memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._graphs: dict[int, list[Callable[[], None]]] = {}
        self.threads = cpu_threads()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="cvcli-band")

    def allocate(self, nbytes: int) -> int:
        try:
            block = (ctypes.c_char * (nbytes + _ALIGNMENT))()
        except (MemoryError, ValueError) as error:
            raise OutOfMemoryError(f"cpu: no room for {nbytes} bytes") from error
        pointer = -(-ctypes.addressof(block) // _ALIGNMENT) * _ALIGNMENT
        self._memory[pointer] = block
        return pointer

    def free(self, pointer: int) -> None:
        del self._memory[pointer]

    allocate_staging, free_staging = allocate, free

    def create_stream(self) -> int:
        handle = self._handles.take()
        self._streams[handle] = Queue(f"cvcli-stream-{handle}")
        return handle

    def create_driven_stream(self) -> int:
        """Return a stream whose work runs in the thread that synchronises with it.

        For a thread that would only wait: the work stays on its processor, with what is in its
        cache. Only that thread may use the stream, and it must wait for it in the end.
        """
        handle = self._handles.take()
        self._streams[handle] = DrivenQueue()
        return handle

    def destroy_stream(self, stream: int) -> None:
        self._streams.pop(stream).put(None)

    def synchronize_stream(self, stream: int) -> None:
        self._streams[stream].join()

    def query_stream(self, stream: int) -> bool:
        return self._streams[stream].idle()

    def create_event(self, timing: bool) -> int:
        handle = self._handles.take()
        self._events[handle] = point = Point()
        point.complete()
        return handle

    def destroy_event(self, event: int) -> None:
        del self._events[event]

    def record_event(self, event: int, stream: int) -> None:
        # What waits for an earlier recording has that point, and keeps it.
        queue = self._streams[stream]
        self._events[event] = point = Point(queue)
        queue.put(point.complete)

    def wait_event(self, stream: int, event: int, *, order_only: bool = False) -> None:
        point = self._events[event]
        self._streams[stream].put(point.pass_by if order_only else point.wait)

    def synchronize_event(self, event: int) -> None:
        self._events[event].reach()

    def query_event(self, event: int) -> bool:
        return self._events[event].is_done()

    def elapsed_ms(self, start: int, end: int) -> float:
        return (self._events[end].time - self._events[start].time) * 1e3

    def synchronize(self) -> None:
        for queue in list(self._streams.values()):
            # A driven stream runs in its own thread only.
            if isinstance(queue, Queue):
                queue.join()

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self._streams[stream].put(partial(_memmove, dst, src, nbytes))

    def launch(self, launch: Launch, stream: int) -> None:
        self._streams[stream].put(self._task(launch))

    def create_graph(self, work: Sequence[Launch | Copy]) -> int:
        handle = self._handles.take()
        self._graphs[handle] = [self._task(piece) for piece in work]
        return handle

    def launch_graph(self, graph: int, stream: int) -> None:
        for task in self._graphs[graph]:
            self._streams[stream].put(task)

    def destroy_graph(self, graph: int) -> None:
        del self._graphs[graph]

    def _task(self, work: Launch | Copy) -> Callable[[], None]:
        if isinstance(work, Copy):
            return partial(_memmove, work.dst, work.src, work.nbytes)
        return partial(self._run, work, type(work.args).from_buffer_copy(work.args))

    def memory_info(self) -> tuple[int, int]:
        try:
            page = os.sysconf("SC_PAGE_SIZE")
            free, total = (os.sysconf(f"SC_{name}PHYS_PAGES") * page for name in ("AV", ""))
        except (AttributeError, ValueError, OSError):
            # Not every system tells; then only an allocation can.
            return sys.maxsize, sys.maxsize
        limit = cgroup.memory()
        return min(free, limit or free), min(total, limit or total)

    def _run(self, launch: Launch, block: ctypes.Structure) -> None:
        function = call_of(self._library, launch, block)
        bands = max(1, min(self.threads, launch.rows, launch.nbytes // _BAND_NBYTES))
        cuts = [launch.rows * i // bands for i in range(bands + 1)]

        waiting = [self._pool.submit(function, cuts[i], cuts[i + 1]) for i in range(1, bands)]
        try:
            function(cuts[0], cuts[1])
        finally:
            wait(waiting)
        for future in waiting:
            future.result()


def _memmove(dst: int, src: int, nbytes: int) -> None:
    ctypes.memmove(dst, src, nbytes)


def describe() -> dict[str, str]:
    """Return what `cvcli doctor` shows of the CPU device."""
    return {
        "processor": platform.processor() or platform.machine(),
        "threads": str(cpu_threads()),
        "simd": simd_level(),
    }

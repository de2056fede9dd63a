"""A device that runs kernels in the emulator, each launch before it returns."""

from __future__ import annotations

import ctypes
import os
import threading
from bisect import insort
from collections.abc import Sequence
from itertools import count

from cvcli.core import engine as engines
from cvcli.core.marks import Marks
from cvcli.core.memory import Buffer, Pool
from cvcli.devices import find
from cvcli.devices.base import Copy, Device, Launch
from cvcli.devices.geometry import grid_of
from cvcli.errors import DeviceError
from emulator.compile import compiled, place_of, runtime

NAME = "cuda:99"
_ALIGNMENT = 256


class EmulationError(DeviceError):
    """A kernel did what it must not."""


class _Launch(ctypes.Structure):
    """Mirrors ``EmuLaunch``."""

    _fields_ = (
        ("call", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("image", ctypes.c_void_p),
        ("shared", ctypes.c_void_p),
        ("shared_end", ctypes.c_void_p),
        ("ranges", ctypes.c_void_p),
        ("ranges_count", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("grid", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint),
    )


class EmulatedDevice(Device):
    """A GPU as the kernels see it. ``launches`` counts them."""

    kind, index = "cuda", 99

    def __init__(self, name: str = NAME) -> None:
        self.name = name
        self.seed = int(os.environ.get("CVCLI_EMULATOR_SEED", "0"))
        self.launches = 0
        self._handles = count(1)
        self._memory: dict[int, tuple[int, object]] = {}
        self._ranges: list[tuple[int, int]] = []
        self._graphs: dict[int, list[Launch | Copy]] = {}
        self._lock = threading.Lock()

    def allocate(self, nbytes: int) -> int:
        pointer = self.allocate_staging(nbytes)
        ctypes.memset(pointer, 0xA5, nbytes)
        with self._lock:
            insort(self._ranges, (pointer, pointer + nbytes))
        return pointer

    def free(self, pointer: int) -> None:
        nbytes, _ = self._memory[pointer]
        with self._lock:
            self._ranges.remove((pointer, pointer + nbytes))
        self.free_staging(pointer)

    def allocate_staging(self, nbytes: int) -> int:
        room = (ctypes.c_char * (nbytes + 2 * _ALIGNMENT))()
        pointer = -(-ctypes.addressof(room) // _ALIGNMENT) * _ALIGNMENT
        self._memory[pointer] = nbytes, room
        return pointer

    def free_staging(self, pointer: int) -> None:
        del self._memory[pointer]

    def create_stream(self) -> int:
        return next(self._handles)

    def destroy_stream(self, stream: int) -> None: ...

    def synchronize_stream(self, stream: int) -> None: ...

    def query_stream(self, stream: int) -> bool:
        return True

    def create_event(self, timing: bool) -> int:
        return next(self._handles)

    def destroy_event(self, event: int) -> None: ...

    def record_event(self, event: int, stream: int) -> None: ...

    def wait_event(self, stream: int, event: int, *, order_only: bool = False) -> None: ...

    def synchronize_event(self, event: int) -> None: ...

    def query_event(self, event: int) -> bool:
        return True

    def elapsed_ms(self, start: int, end: int) -> float:
        return 0.0

    def synchronize(self) -> None: ...

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        ctypes.memmove(dst, src, nbytes)

    def memory_info(self) -> tuple[int, int]:
        return 1 << 32, 1 << 32

    def create_graph(self, work: Sequence[Launch | Copy]) -> int:
        handle = next(self._handles)
        self._graphs[handle] = list(work)
        return handle

    def launch_graph(self, graph: int, stream: int) -> None:
        for piece in self._graphs[graph]:
            if isinstance(piece, Copy):
                self.copy(piece.dst, piece.src, piece.nbytes, stream)
            else:
                self.launch(piece, stream)

    def destroy_graph(self, graph: int) -> None:
        del self._graphs[graph]

    def launch(self, launch: Launch, stream: int) -> None:
        code = compiled(launch.kernel)
        blocks = [bytes(launch.args), *launch.params]
        rooms = [ctypes.create_string_buffer(block, len(block)) for block in blocks]
        arguments = (ctypes.c_void_p * len(rooms))(*map(ctypes.addressof, rooms))
        with self._lock:
            self.launches += 1
            flat = [at for pair in self._ranges for at in pair]
            ranges = (ctypes.c_uint64 * len(flat))(*flat)
            what = _Launch(
                call=code.call,
                arguments=ctypes.addressof(arguments),
                image=code.image,
                shared=code.shared,
                shared_end=code.end,
                ranges=ctypes.addressof(ranges),
                ranges_count=len(self._ranges),
                seed=self.seed + self.launches,
                grid=grid_of(launch),
                threads=launch.kernel.threads,
            )
            where = ctypes.c_void_p()
            error = runtime().emu_run(ctypes.byref(what), ctypes.byref(where))
        if error:
            place = place_of(code, where.value or 0)
            raise EmulationError(f"{launch.kernel.pattern}: {error.decode()} ({place})")


class _ExactPool(Pool):
    """Memory to the byte, freed at once: what is read past its end is seen."""

    def take(self, nbytes: int, *, idle: bool = False) -> Buffer:
        allocate = self._device.allocate_staging if self._staging else self._device.allocate
        return Buffer(self._device, allocate(nbytes), nbytes, Marks(None, {}), self._give)

    def _give(self, buffer: Buffer) -> None:
        self._free_raw(buffer.pointer)


def install(name: str = NAME) -> EmulatedDevice:
    """Put an emulated GPU in a device's place, once; return it."""
    known = find._DEVICES.get(name)
    if isinstance(known, EmulatedDevice):
        return known
    device = EmulatedDevice(name)
    find._DEVICES[name] = device
    engine = engines.Engine(device)
    engine.memory = _ExactPool(device, staging=False, limit=0)
    engine.staging = _ExactPool(device, staging=True, limit=0)
    engines._ENGINES[name] = engine
    return device

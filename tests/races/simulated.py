"""A GPU simulated on the CPU, so that the interop of CUDA arrays is tested without one.

`SimulatedGpu` has the CPU device's threads, to be held by gates. `Adversary` has no threads: it
runs each stream as early or as late as it is told, so that a missing wait shows every time.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress

import pytest

from cvcli.core import engine, interop, stream
from cvcli.devices import find
from cvcli.devices.cpu import CpuDevice
from cvcli.devices.numbers import Numbers
from cvcli.errors import DeviceError

POISON = 0xDB
LEGACY, PER_THREAD = 1, 2


class SimulatedGpu(CpuDevice):
    """The CPU device under a GPU's name, its memory poisoned when it is freed."""

    name, kind = "cuda:0", "cuda"
    # As on a GPU, an event is recorded when somebody needs it.
    marks_late = True

    def __init__(self):
        super().__init__()
        # Handles 0 to 2 have a meaning of their own to CUDA.
        self._handles = Numbers(1000)
        self._streams[LEGACY] = self._streams[0]
        self._streams[PER_THREAD] = self._streams[self.create_stream()]
        self._freed = []

    def put(self, handle, task):
        """Queue work of another library on a stream."""
        self._streams[int(handle)].put(task)

    def free(self, pointer):
        block = self._memory[pointer]
        ctypes.memset(block, POISON, len(block))
        self._freed.append(block)
        super().free(pointer)

    free_staging = free

    def close(self):
        """End the threads of the streams that are left, when their work is done."""
        with suppress(DeviceError):
            self.synchronize()
        for queue in set(self._streams.values()):
            queue.put(None)


@contextmanager
def installed(device):
    """Let ``cuda:0`` be a simulated device, with an engine of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(find._DEVICES, device.name, device)
        made = engine.Engine(device)
        patch.setitem(engine._ENGINES, device.name, made)
        patch.setitem(stream._DEFAULTS, device.name, stream.Stream._wrap(device, 0))
        patch.setattr(interop, "_device_of", lambda pointer: 0)
        patch.setattr(interop, "_engine_at", lambda index: made, raising=False)
        yield device


@contextmanager
def gated(device, *streams):
    """Hold streams until the block ends or the event it gives is set."""
    gate = threading.Event()

    def wait():
        assert gate.wait(10), "a test waits for what it holds itself"

    for handle in streams:
        device._streams[int(handle)].put(wait)
    try:
        yield gate
    finally:
        gate.set()


def stays_busy(device, handle):
    """Whether a stream waits; one that doesn't is idle, and has done its harm, by then."""
    until = time.monotonic() + 0.03
    while time.monotonic() < until:
        if device.query_stream(int(handle)):
            return False
        time.sleep(0.001)
    return True


@contextmanager
def opened_late(gate):
    """Open a gate a while after the block has begun, for what must block the host meanwhile."""
    timer = threading.Timer(0.05, gate.set)
    timer.start()
    try:
        yield
    finally:
        timer.join()


class _Point:
    """A recording of an event on a lane."""

    def __init__(self, lane=None):
        self.lane, self.done, self.time = lane, lane is None, 0.0

    def complete(self):
        self.done, self.time = True, time.perf_counter()


class _Wait:
    def __init__(self, point):
        self.point = point

    def __call__(self):
        assert self.point.done


class _Lane:
    """A stream that runs as early as its waits allow if it is ``eager``, else as late."""

    def __init__(self, device):
        self.device, self.tasks, self.eager = device, deque(), True

    def put(self, task):
        self.tasks.append(task)
        self.device.advance()

    def idle(self):
        return not self.tasks

    def blocked_at(self):
        head = self.tasks[0]
        return head.point if isinstance(head, _Wait) and not head.point.done else None


class Adversary(SimulatedGpu):
    """A simulated GPU whose streams run at the worst moment, in the thread that uses it."""

    def __init__(self):
        self._running, self._lanes = False, []
        super().__init__()
        self._streams[0].put(None)
        self._streams[0] = self._streams[LEGACY] = self._lane()

    def _lane(self):
        self._lanes.append(_Lane(self))
        return self._lanes[-1]

    def pace(self, handle, *, eager):
        """Make a stream run early or late from now on."""
        self._streams[int(handle)].eager = eager
        self.advance()

    def advance(self):
        """Run the eager streams as far as their waits allow."""
        if self._running:
            return
        self._running = True
        try:
            while any(self._step(lane) for lane in self._lanes if lane.eager):
                pass
        finally:
            self._running = False

    def _step(self, lane):
        if not lane.tasks or lane.blocked_at() is not None:
            return False
        lane.tasks.popleft()()
        return True

    def _finish(self, lane, point=None):
        """Run a stream to a point or its end, and of the others no more than it waits for."""
        while lane.tasks and not (point is not None and point.done):
            blocker = lane.blocked_at()
            if blocker is not None:
                self._finish(blocker.lane, blocker)
            else:
                self._step(lane)
                self.advance()

    def create_stream(self):
        handle = self._handles.take()
        self._streams[handle] = self._lane()
        return handle

    def destroy_stream(self, stream):
        del self._streams[stream]

    def synchronize_stream(self, stream):
        self._finish(self._streams[stream])

    def create_event(self, timing):
        handle = self._handles.take()
        self._events[handle] = _Point()
        return handle

    def record_event(self, event, stream):
        lane = self._streams[stream]
        self._events[event] = point = _Point(lane)
        lane.put(point.complete)

    def wait_event(self, stream, event, *, order_only=False):
        self._streams[stream].put(_Wait(self._events[event]))

    def synchronize_event(self, event):
        point = self._events[event]
        if not point.done:
            self._finish(point.lane, point)

    def query_event(self, event):
        return self._events[event].done

    def synchronize(self):
        for lane in list(self._lanes):
            self._finish(lane)

    def close(self):
        self.synchronize()

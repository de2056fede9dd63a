"""The CPU device's streams: in-order queues, and the points in them that events stand for.

A queue has a worker thread of its own, or is driven by the thread that waits for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from cvcli.errors import DeviceError


class Point:
    """One recording of an event; it carries the failure of the work before it."""

    def __init__(self, queue: Queue | DrivenQueue | None = None) -> None:
        self._queue, self._error = queue, None if queue is None else queue.error
        self._done = threading.Event()
        self.time = 0.0

    def complete(self) -> None:
        self._error = None if self._queue is None else self._queue.error
        self.time = time.perf_counter()
        self._done.set()

    def is_done(self) -> bool:
        return self._done.is_set()

    def reach(self) -> None:
        """Block until the point is reached, running its stream if that waits for this thread."""
        if isinstance(self._queue, DrivenQueue) and self._queue.is_mine():
            self._queue.drain()
        self.wait()

    def wait(self) -> None:
        self._done.wait()
        _raise(self._error)

    def pass_by(self) -> None:
        self._done.wait()


def _raise(error: BaseException | None) -> None:
    if isinstance(error, DeviceError):
        raise error
    if error is not None:
        raise DeviceError(f"cpu: a kernel failed ({error})") from error


class Queue:
    """One stream: a thread that runs tasks in the order they were put.

    ``error`` is the first failure since the stream was last waited for.
    """

    def __init__(self, name: str) -> None:
        self._tasks: deque[Callable[[], None] | None] = deque()
        self._change = threading.Condition()
        self._busy = False
        self.error: BaseException | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def put(self, task: Callable[[], None] | None) -> None:
        with self._change:
            self._tasks.append(task)
            self._change.notify_all()

    def idle(self) -> bool:
        with self._change:
            return not self._tasks and not self._busy

    def join(self) -> None:
        with self._change:
            self._change.wait_for(lambda: not self._tasks and not self._busy)
            error, self.error = self.error, None
        _raise(error)

    def _run(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except BaseException as error:
                self.error = self.error or error
            # The task holds buffers; they must go back to the pool before the stream is idle.
            del task

    def _next(self) -> Callable[[], None] | None:
        with self._change:
            self._busy = False
            if not self._tasks:
                self._change.notify_all()
            self._change.wait_for(lambda: bool(self._tasks))
            self._busy = True
            return self._tasks.popleft()


class DrivenQueue:
    """A stream without a thread: its tasks run, in order, in the thread that made it.

    They run when that thread waits for the stream. All of them do, whatever fails: others may
    wait for what comes later.
    """

    def __init__(self) -> None:
        self._tasks: deque[Callable[[], None]] = deque()
        self._owner = threading.get_ident()
        self.error: BaseException | None = None

    def is_mine(self) -> bool:
        return self._owner == threading.get_ident()

    def put(self, task: Callable[[], None] | None) -> None:
        if task is not None:
            self._tasks.append(task)

    def idle(self) -> bool:
        return not self._tasks

    def drain(self) -> None:
        while self._tasks:
            try:
                self._tasks.popleft()()
            except BaseException as error:
                self.error = self.error or error

    def join(self) -> None:
        self.drain()
        error, self.error = self.error, None
        _raise(error)

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
        if isinstance(self._queue, Queue):
            self._queue.help(self._done.is_set)
        elif self._queue is not None and self._queue.is_mine():
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

    Who waits for the stream runs tasks too: to wake a thread may take longer than the task.
    ``error`` is the first failure since the stream was last waited for.
    """

    def __init__(self, name: str) -> None:
        self._tasks: deque[Callable[[], None] | None] = deque()
        self._change = threading.Condition()
        self._busy = False
        self._waiting = 0
        self.error: BaseException | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def put(self, task: Callable[[], None] | None) -> None:
        with self._change:
            self._tasks.append(task)
            self._change.notify_all()

    def idle(self) -> bool:
        with self._change:
            return self._is_idle()

    def help(self, enough: Callable[[], bool]) -> None:
        """Run tasks in this thread until it is enough or another thread is at one."""
        while not enough() and self._take(wait=False):
            self._step(helping=True)

    def join(self) -> None:
        self.help(self.idle)
        with self._change:
            self._waiting += 1
            try:
                self._change.wait_for(self._is_idle)
            finally:
                self._waiting -= 1
            error, self.error = self.error, None
        _raise(error)

    def _is_idle(self) -> bool:
        return not self._tasks and not self._busy

    def _run(self) -> None:
        while self._take(wait=True):
            self._step(helping=False)

    def _take(self, *, wait: bool) -> bool:
        """Make the first task this thread's; it stays in the queue until it is done."""
        with self._change:
            if wait:
                self._change.wait_for(lambda: bool(self._tasks) and not self._busy)
            if self._busy or not self._tasks or self._tasks[0] is None:
                return False
            self._busy = True
            return True

    def _step(self, *, helping: bool) -> None:
        task = self._tasks[0]
        assert task is not None
        stopped = False
        try:
            task()
        except BaseException as error:
            # Ctrl-C ends the wait and not the work, which never changes what it reads and is begun
            # anew by the next to take it.
            stopped = helping and not isinstance(error, Exception)
            if stopped:
                raise
            self.error = self.error or error
        finally:
            # The task holds buffers; they must go back to the pool before the stream is idle.
            del task
            if not stopped:
                self._tasks.popleft()
            with self._change:
                self._busy = False
                if self._tasks or self._waiting:
                    self._change.notify_all()


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

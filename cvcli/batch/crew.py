"""The workers of a run: as many as there are cores, and more while those wait for files.

A store that is far away, or a disk that is busy, keeps all workers waiting while the processor is
idle. That is looked for by what is measured: how long the threads ran or wanted to, and how many
workers are reading or writing. More of them are then tried, and stay if the run becomes faster:
what looks like waiting for a file may be waiting for the interpreter's lock. They leave when the
processor is busy, as more than it has cores only get into each other's way.
"""

# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

# Workers there may be on however few cores, and for each core where there are many.
_MOST, _MOST_A_CORE = 16, 2
# Shares of the cores' time: below one the processor is idle, from the other on it is busy.
_IDLE, _BUSY = 0.6, 0.9
# Looks that are taken together, at least, and images for each worker: the system tells of a
# thread's time only when it stops.
_LOOKS, _IMAGES = 5, 2
# Seconds that a worker waits for an image before more of them are worth their memory.
_WORTH_S = 0.004
# How much faster a run must be with more workers, and for how many looks they aren't tried again
# if it isn't: each time twice as many.
_GAIN, _REST = 1.2, 20
_TASKS = "/proc/self/task"


class Demand:
    """Seconds that this process ran on any core or, where that is known, waited for one.

    A machine that others keep busy is no idle one, though little of its time is ours.
    """

    def __init__(self) -> None:
        self._sum, self._known = 0.0, dict[str, float]()

    def __call__(self) -> float:
        """Return the seconds since some time before the first call."""
        try:
            found = {name: _asked(name) for name in os.listdir(_TASKS)}
        except (OSError, ValueError, IndexError):
            return time.process_time()
        # A thread that has ended is counted as it was last seen.
        threads = {name: now for name, now in found.items() if now is not None}
        self._sum += sum(now - self._known.get(name, 0.0) for name, now in threads.items())
        self._known = threads
        return self._sum


def _asked(thread: str) -> float | None:
    try:
        with open(f"{_TASKS}/{thread}/schedstat", encoding="ascii") as file:
            ran, waited, _ = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        if not os.path.exists(f"{_TASKS}/{thread}"):  # noqa: PTH110
            return None
        raise
    return (int(ran) + int(waited)) / 1e9


class Crew:
    """Threads that ``work`` until it returns, of which there are ``count`` at first.

    With ``steered`` their number changes as `look` is called. ``clock`` and ``processor`` give
    seconds that have passed, and that the threads ran or wanted to.
    """

    def __init__(
        self,
        work: Callable[[], None],
        count: int,
        cores: int,
        *,
        steered: bool,
        clock: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] | None = None,
    ) -> None:
        self._work, self._least, self._cores = work, count, cores
        self._most = max(_MOST, _MOST_A_CORE * cores) if steered else count
        self._clock, self._processor = clock, processor or Demand()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.count = self.wanted = count
        self.waiting: set[int] = set()
        """The threads that read or write a file just now."""
        self._since: tuple[float, float, int] | None = None
        self._looks, self._waits = 0, 0.0
        self._trial: tuple[int, float] | None = None
        self._rest, self._next_rest = 0, _REST

    def start(self) -> None:
        """Start the first workers."""
        for _ in range(self.count):
            self._add()

    def join(self) -> None:
        """Wait until all have ended."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _add(self) -> None:
        name = f"cvcli-worker-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def leaves(self) -> bool:
        """Return whether the calling worker is to end, as there are too many."""
        if self.count <= self.wanted:
            return False
        with self._lock:
            surplus = self.count > self.wanted
            self.count -= surplus
            return surplus

    def look(self, left: int) -> None:
        """Add or dismiss workers by what happened lately; ``left`` images are not yet started.

        Those that are through would come in bursts, as they go in batches.
        """
        if self._most == self._least:
            return
        now = self._clock(), self._processor(), -left
        if self._since is None:
            self._since, self._looks, self._waits = now, 0, 0.0
            return
        passed, ran, count = (b - a for a, b in zip(self._since, now, strict=True))
        self._looks += 1
        self._rest -= 1
        self._waits += len(self.waiting) / self.count
        if self._looks >= _LOOKS and count >= _IMAGES * self.count and passed > 0:
            waits = self._waits / self._looks
            each = waits * self.count * passed / count
            self._since = None
            worth = waits >= 0.5 and each >= _WORTH_S
            self._judge(ran / passed / self._cores, count / passed, left if worth else 0)

    def _judge(self, share: float, rate: float, left: int) -> None:
        """Decide by the cores' share that was wanted and the images a second."""
        trial, self._trial = self._trial, None
        if trial is not None and rate < _GAIN * trial[1]:
            self.wanted = trial[0]
            self._rest, self._next_rest = self._next_rest, 2 * self._next_rest
        elif share >= _BUSY:
            self.wanted = max(self._least, self.count - max(1, (self.count - self._least) // 2))
        elif share < _IDLE and self._rest <= 0 and self.count < self._most and left > 0:
            self._trial = self.count, rate
            self._grow(min(self.count, self._most - self.count, left))

    def _grow(self, more: int) -> None:
        try:
            for _ in range(more):
                with self._lock:
                    self.count += 1
                    self.wanted = self.count
                self._add()
        except RuntimeError:
            # The system gives no more threads, and those there are do the work.
            self._threads.pop()
            self.count -= 1
            self.wanted = self._most = self.count

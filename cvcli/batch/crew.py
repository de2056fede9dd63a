"""The workers of a run: as many as there are cores, and more while those wait for files.

A store that is far away, or a disk that is busy, keeps all workers waiting while the processor is
idle. That is looked for now and then, by what is measured: the processor time of the process, and
how many workers are reading or writing. More of them then hide the waiting; they leave when the
processor is busy, as more than it has cores only get into each other's way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Workers there may be on however few cores, and for each core where there are many.
_MOST, _MOST_A_CORE = 16, 2
# Shares of the cores' time: below one the processor is idle, from the other on it is busy.
_IDLE, _BUSY = 0.8, 0.9
# Looks in a row that must find the same before anything is done.
_LOOKS = 3


class Crew:
    """Threads that ``work`` until it returns, of which there are ``count`` at first.

    With ``steered`` their number changes as `look` is called. ``clock`` and ``processor`` give
    seconds that have passed, and that the process has run.
    """

    def __init__(
        self,
        work: Callable[[], None],
        count: int,
        cores: int,
        *,
        steered: bool,
        clock: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        self._work, self._least, self._cores = work, count, cores
        self._most = max(_MOST, _MOST_A_CORE * cores) if steered else count
        self._clock, self._processor = clock, processor
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.count = self.wanted = count
        self.waiting: set[int] = set()
        """The threads that read or write a file just now."""
        self._last = clock(), processor()
        self._looks = 0

    def start(self) -> None:
        """Start the first workers."""
        self._last = self._clock(), self._processor()
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
        """Add or dismiss workers by what happened since the last look; ``left`` are unstarted."""
        before, self._last = self._last, (self._clock(), self._processor())
        passed, ran = (now - then for now, then in zip(self._last, before, strict=True))
        if passed <= 0 or self._most == self._least:
            return
        share = ran / passed / self._cores
        starves = share < _IDLE and 2 * len(self.waiting) >= self.count and left > 0
        crowded = share >= _BUSY and self.count > self._least
        self._looks = self._looks + 1 if starves else 0
        if crowded:
            self.wanted = max(self._least, self.count - 1)
        elif self._looks >= _LOOKS:
            self._grow(left)

    def _grow(self, left: int) -> None:
        more = min(max(1, self.count // 2), self._most - self.count, left)
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

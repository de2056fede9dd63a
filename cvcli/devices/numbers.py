"""Numbers for what must be told apart, whichever thread makes it."""

from __future__ import annotations

import threading


class Numbers:
    """The numbers after ``last``: each is given once.

    `itertools.count` gives some twice on Python 3.13t.
    """

    def __init__(self, last: int = 0) -> None:
        self._last = last
        self._lock = threading.Lock()

    def take(self) -> int:
        """Return the next number."""
        with self._lock:
            self._last += 1
            return self._last

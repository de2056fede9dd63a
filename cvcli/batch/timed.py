"""How long a block of a run takes, and that its thread waits meanwhile."""

from __future__ import annotations

import threading
import time

from cvcli.batch.report import Report


class Timed:
    """Adds the time of a block to the report; what it is given are the bytes moved, to be added to.

    Meanwhile the thread is one of those that are ``waiting``, if they are given. A generator would
    do, at three times the price.
    """

    __slots__ = ("_begin", "_index", "_moved", "_report", "_stage", "_waiting")

    def __init__(
        self, report: Report, stage: str, index: int, moved: list[int], waiting: set[int] | None
    ) -> None:
        self._report, self._stage, self._index, self._moved = report, stage, index, moved
        self._waiting = waiting

    def __enter__(self) -> list[int]:
        if self._waiting is not None:
            self._waiting.add(threading.get_ident())
        self._begin = time.perf_counter()
        return self._moved

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._waiting is not None:
            self._waiting.discard(threading.get_ident())
        if kind is None:
            seconds = time.perf_counter() - self._begin
            self._report.add_busy(self._stage, seconds, sum(self._moved), index=self._index)

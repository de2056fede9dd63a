"""When each stage was busy, kept small: a run of many images has many such spans."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """One stage busy with one image: seconds from the start of the run, and where."""

    stage: str
    lane: str
    index: int | None
    start: float
    seconds: float

    @property
    def end(self) -> float:
        """Seconds from the start of the run to the end of the span."""
        return self.start + self.seconds


@dataclass(frozen=True, slots=True)
class Spans:
    """A timeline on its way to another process; ``where`` says whose it is."""

    where: str
    spans: list[Span]
    finished: list[float]


class Timeline:
    """Spans in the order they ended; filled by many threads."""

    def __init__(self, zero: float) -> None:
        """``zero`` is the start of the run, by `time.perf_counter`."""
        self._zero = zero
        self._lock = threading.Lock()
        self._names: dict[str, int] = {}
        self._stages, self._lanes = array("H"), array("H")
        self._indexes = array("q")
        self._starts, self._seconds = array("d"), array("d")
        self._finished = array("d")

    def __len__(self) -> int:
        return len(self._starts)

    def add(
        self,
        stage: str,
        seconds: float,
        index: int | None,
        end: float | None = None,
        lane: str | None = None,
    ) -> None:
        """Add a span that ended at ``end``, or just now, on a lane or the calling thread."""
        ended = (time.perf_counter() if end is None else end) - self._zero
        lane = lane or threading.current_thread().name.removeprefix("cvcli-")
        with self._lock:
            self._stages.append(self._names.setdefault(stage, len(self._names)))
            self._lanes.append(self._names.setdefault(lane, len(self._names)))
            self._indexes.append(-1 if index is None else index)
            self._starts.append(max(0.0, ended - seconds))
            self._seconds.append(seconds)

    def finish(self) -> None:
        """Note that an image is done."""
        with self._lock:
            self._finished.append(time.perf_counter() - self._zero)

    def finished(self) -> list[float]:
        """Return when images were done, in seconds from the start."""
        with self._lock:
            return list(self._finished)

    def kept(self, where: str) -> Spans:
        """Return all there is, to be sent."""
        return Spans(where, list(self.spans()), self.finished())

    def absorb(self, other: Spans, later: float) -> None:
        """Add what another process did, whose clock was started ``later``, in seconds."""
        for span in other.spans:
            end = self._zero + later + span.end
            self.add(span.stage, span.seconds, span.index, end, f"{other.where} {span.lane}")
        with self._lock:
            self._finished.extend(later + moment for moment in other.finished)

    def spans(self) -> Iterator[Span]:
        """Give the spans."""
        with self._lock:
            names = list(self._names)
            columns = [
                list(column)
                for column in (
                    *(self._stages, self._lanes, self._indexes),
                    *(self._starts, self._seconds),
                )
            ]
        for stage, lane, index, start, seconds in zip(*columns, strict=True):
            place = None if index < 0 else int(index)
            yield Span(names[int(stage)], names[int(lane)], place, start, seconds)

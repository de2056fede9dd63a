"""Points in the work of streams: who last wrote a buffer and who has read it since.

A mark becomes an event only when another stream or the host asks for it, so work that stays on
one stream records none. An event recorded late stands for more work than it must, never for less.
"""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cvcli.core.stream import Stream, no_mark
from cvcli.devices import Device
from cvcli.errors import DeviceError, UsageError


class EventPool:
    """Events without timing, kept for reuse."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: deque[int] = deque()

    def take(self) -> int:
        try:
            return self._free.popleft()
        except IndexError:
            return self._device.create_event(timing=False)

    def give(self, event: int) -> None:
        self._free.append(event)


class Mark:
    """Some point of a stream after the work it stands for; its event is reused in the end.

    While it is a stream's open mark it stands for all work queued there so far. Whoever needs
    the event closes the mark first, so work that is queued later finds it closed, and work
    queued before is covered: the order of these two steps is what makes it safe without a lock.
    """

    __slots__ = ("__weakref__", "_events", "_found", "device", "over", "stream")

    def __init__(self, device: Device, stream: Stream, events: EventPool) -> None:
        self.device, self.stream, self._events = device, stream, events
        self._found: dict[None, int] = {}
        self.over = False
        if device.marks_late and stream.lasting:
            stream.open_mark = weakref.ref(self)
        else:
            self._record()

    @property
    def event(self) -> int:
        """The event of this point, recorded by now."""
        return self._found[None] if self._found else self._record()

    def seal(self) -> None:
        """Let it stand for the work so far and no more."""
        _ = self.event

    def done(self) -> bool:
        """Return whether the work is over; never wait."""
        if self._found and not self.over:
            done = self.device.query_event(self._found[None])
            # Where events tell of failures, who waits must still be told.
            self.over = done and self.device.marks_late
            return done
        if not self.over:
            self._close()
            self.over = self.device.query_stream(self.stream.handle)
            if not self.over:
                # The stream may never be idle again, but this point will be passed.
                self._record()
        return self.over

    def synchronize(self) -> None:
        """Block the host until the work is over."""
        if not self.over:
            self.device.synchronize_event(self.event)

    def _close(self) -> None:
        if self.stream.open_mark() is self:
            self.stream.open_mark = no_mark

    def _record(self) -> int:
        self._close()
        event = self._events.take()
        self.device.record_event(event, self.stream.handle)
        # Of two threads here at once the first one's event stays.
        found = self._found.setdefault(None, event)
        if found != event:
            self._events.give(event)
        return found

    def __del__(self) -> None:
        if self._found:
            self._events.give(self._found[None])


class Captured(Mark):
    """Stands for work that was only taken down in a graph, and runs when the graph does."""

    __slots__ = ()

    stream: Any

    def __init__(self, device: Device) -> None:
        self.device, self.stream, self._found, self.over = device, None, {}, False

    @property
    def event(self) -> int:
        raise UsageError(
            "capture: the tensor is written by a graph that has not been launched",
            tip="launch the graph first",
        )

    def done(self) -> bool:
        return False

    def synchronize(self) -> None:
        _ = self.event


@dataclass(slots=True)
class Marks:
    """Who last wrote a buffer, and who has read it since, one mark a stream."""

    writer: Mark | None
    readers: dict[int, Mark]

    def all(self) -> list[Mark]:
        if self.writer is None:
            return list(self.readers.values())
        return [self.writer, *self.readers.values()]

    def done(self) -> bool:
        return all(mark.done() for mark in self.all())

    def synchronize(self) -> None:
        """Block the host until every use is over; raise `DeviceError` if the writer failed."""
        for mark in list(self.readers.values()):
            # That a reader failed says nothing of what it read.
            with suppress(DeviceError):
                mark.synchronize()
        if self.writer is not None:
            self.writer.synchronize()

    def retire(self) -> None:
        """Leave the content behind: to the next owner all uses so far are only to be outwaited."""
        writer, self.writer = self.writer, None
        if writer is not None and not isinstance(writer, Captured):
            # A read on the writer's own stream came after it, and stands for both.
            self.readers.setdefault(writer.stream.key, writer)

    def forget_done(self) -> None:
        """Drop readers whose work is over: many streams may read one buffer."""
        for key, mark in list(self.readers.items()):
            if mark.done():
                self.readers.pop(key, None)

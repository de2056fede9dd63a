"""The one place where work is queued: each launch and copy gets exactly the barriers it needs.

Read-after-write, write-after-read and write-after-write are kept by events, and only between
different streams: within one stream, order is free and no event is recorded.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cvcli.core.marks import EventPool, Mark, Marks
from cvcli.core.memory import Buffer, Pool
from cvcli.core.stream import Stream
from cvcli.devices import Copy, Device, Launch, open_device
from cvcli.errors import UsageError

if TYPE_CHECKING:
    from cvcli.core.capture import Recorder

_ENGINES: dict[str, Engine] = {}
_LOCK = threading.Lock()
_MANY_READERS = 8


class Engine:
    """Memory and order of one device; ``lock`` keeps each piece of work and its marks together."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.default = Stream._wrap(device, 0)
        self._events = EventPool(device)
        self.lock = threading.RLock()
        self.recorders: dict[int, Recorder] = {}
        """Who takes down what is queued on a stream instead, by the stream's key."""
        self._limbo: deque[tuple[object, Marks]] = deque()
        limit = _pool_limit(device)
        self.memory = Pool(device, staging=False, limit=limit)
        # On the CPU device host memory is device memory: one pool serves both.
        shared = device.kind == "cpu"
        self.staging = self.memory if shared else Pool(device, staging=True, limit=limit)

    def allocate(self, nbytes: int) -> Buffer:
        """Return device memory; its content is undefined."""
        return self.memory.take(nbytes)

    def allocate_staging(self, nbytes: int) -> Buffer:
        """Return host memory that the host may write at once."""
        return self.staging.take(nbytes, idle=True)

    def adopt(self, pointer: int, nbytes: int, owner: object) -> Buffer:
        """Wrap foreign memory; its owner lives at least until our last use of it is over."""
        return Buffer(self.device, pointer, nbytes, Marks(None, {}), self._retire, owner)

    def release(self) -> int:
        """Free all idle memory after its last use; return the bytes freed."""
        with self.lock:
            self._purge()
        return sum(pool.release() for pool in {self.memory, self.staging})

    def mark(self, stream: Stream) -> Mark:
        """Return a mark of this point of a stream, or of one later on."""
        return stream.open_mark() or Mark(self.device, stream, self._events)

    def launch(
        self,
        launch: Launch,
        reads: Sequence[Buffer],
        writes: Sequence[Buffer],
        stream: Stream,
    ) -> None:
        """Queue a kernel that reads and writes the given buffers."""
        with self.lock:
            if self.recorders and stream.key in self.recorders:
                self.recorders[stream.key].launch(launch, reads, writes)
                return
            self._order(reads, writes, stream)
            self.device.launch(launch, stream._handle)
            self._note(reads, writes, stream)

    def copy(
        self, dst: Buffer, src: Buffer, nbytes: int, stream: Stream, *, at: int = 0, of: int = 0
    ) -> None:
        """Queue a copy of ``nbytes`` from ``src`` at byte ``of`` to ``dst`` at byte ``at``."""
        to, source = dst.pointer + at, src.pointer + of
        with self.lock:
            recorder = self.recorders.get(stream.key)
            if recorder is not None and not recorder.copy(dst, src, Copy(to, source, nbytes)):
                return
            self._order((src,), (dst,), stream)
            self.device.copy(to, source, nbytes, stream.handle)
            self._note((src,), (dst,), stream)

    def launch_graph(
        self, graph: int, reads: Sequence[Buffer], writes: Sequence[Buffer], stream: Stream
    ) -> None:
        """Queue a graph of the device that reads and writes the given buffers."""
        with self.lock:
            self._order(reads, writes, stream)
            self.device.launch_graph(graph, stream.handle)
            self._note(reads, writes, stream)

    def hand_over(self, buffer: Buffer, stream: Stream) -> None:
        """Make a stream wait for every use of a buffer that has been queued."""
        with self.lock:
            self._order((), (buffer,), stream)

    def _order(self, reads: Sequence[Buffer], writes: Sequence[Buffer], stream: Stream) -> None:
        """Make the stream wait for whatever its next work must not overtake."""
        if self._limbo:
            self._purge()
        for buffer in reads:
            mark = buffer.marks.writer
            if mark is not None and mark.stream is not stream:
                self._wait(mark, stream)
            if buffer.unordered:
                self._settle(buffer)
        for buffer in writes:
            for mark in buffer.marks.all():
                if mark.stream is not stream:
                    self._wait(mark, stream, order_only=True)
            if buffer.unordered:
                self._settle(buffer)

    def _settle(self, buffer: Buffer) -> None:
        self.device.synchronize()
        buffer.unordered = False

    def _wait(self, mark: Mark, stream: Stream, *, order_only: bool = False) -> None:
        # A query costs what a wait does, and is not needed again once the answer was yes.
        if mark.over or (mark.device.marks_late and mark.done()):
            return
        if mark.device is not self.device:
            mark.synchronize()
        elif not _same(mark.stream, stream):
            self.device.wait_event(stream.handle, mark.event, order_only=order_only)

    def _note(self, reads: Sequence[Buffer], writes: Sequence[Buffer], stream: Stream) -> None:
        """Take down that the work just queued reads and writes the buffers."""
        mark = stream.open_mark() or Mark(self.device, stream, self._events)
        for buffer in reads:
            readers = buffer.marks.readers
            readers[stream.key] = mark
            if len(readers) > _MANY_READERS:
                buffer.marks.forget_done()
            if buffer.producer is not None:
                self._hold_off(buffer.producer, mark, stream)
        for buffer in writes:
            buffer.marks.writer = mark
            buffer.marks.readers.clear()
            if buffer.producer is not None:
                self._hold_off(buffer.producer, mark, stream)

    def _hold_off(self, producer: Stream, mark: Mark, stream: Stream) -> None:
        """Make a producer's stream wait: it may overwrite or reuse its memory next."""
        if producer.handle != stream.handle:
            self.device.wait_event(producer.handle, mark.event)

    def _retire(self, buffer: Buffer) -> None:
        if not buffer.marks.done():
            self._limbo.append((buffer.owner, buffer.marks))

    def _purge(self) -> None:
        while self._limbo and self._limbo[0][1].done():
            self._limbo.popleft()


def _same(one: Stream | None, other: Stream) -> bool:
    """Return whether two objects are one stream, of which the second one is in use just now."""
    if one is None:
        return False
    return one.key == other.key or (one.lasting and one.handle == other.handle)


def _pool_limit(device: Device) -> int:
    """Bytes kept for reuse: ``CVCLI_POOL_BYTES``, else half a GPU or 256 MiB of host memory."""
    asked = os.environ.get("CVCLI_POOL_BYTES")
    if asked is not None:
        if not asked.isdigit():
            raise UsageError(f"CVCLI_POOL_BYTES must be a number of bytes, got {asked!r}")
        return int(asked)
    return device.memory_info()[1] // 2 if device.kind == "cuda" else 256 << 20


def engine_of(device: Device | str) -> Engine:
    """Return the one engine of a device."""
    opened = open_device(device) if isinstance(device, str) else device
    known = _ENGINES.get(opened.name)
    if known is not None:
        return known
    with _LOCK:
        if opened.name not in _ENGINES:
            _ENGINES[opened.name] = Engine(opened)
        return _ENGINES[opened.name]


def engines() -> list[Engine]:
    """Return the engines of the devices that have been used."""
    return list(_ENGINES.values())

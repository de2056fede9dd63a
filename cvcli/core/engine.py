"""The one place where work is queued: each launch and copy gets exactly the barriers it needs.

Read-after-write, write-after-read and write-after-write are kept by events, and only between
different streams: within one stream, order is free.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from cvcli.core.memory import Buffer, EventPool, Mark, Marks, Pool
from cvcli.core.stream import Stream
from cvcli.devices import Device, Launch, open_device

_ENGINES: dict[str, Engine] = {}
_LOCK = threading.Lock()


class Engine:
    """Memory and order of one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._events = EventPool(device)
        self._lock = threading.RLock()
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
        buffer = self.staging.take(nbytes)
        buffer.synchronize()
        return buffer

    def adopt(self, pointer: int, nbytes: int, owner: object) -> Buffer:
        """Wrap foreign memory; its owner lives at least until our last use of it is over."""
        buffer = Buffer(self.device, pointer, nbytes, owner)
        finalizer = weakref.finalize(buffer, self._retire, owner, buffer.marks)
        finalizer.atexit = False
        return buffer

    def mark(self, stream: Stream) -> Mark:
        """Return this point of a stream."""
        return Mark(self.device, stream, self._events)

    def launch(
        self, launch: Launch, reads: Sequence[Buffer], writes: Sequence[Buffer], stream: Stream
    ) -> None:
        """Queue a kernel that reads and writes the given buffers."""
        self._ordered(lambda: self.device.launch(launch, stream.handle), reads, writes, stream)

    def copy(
        self, dst: Buffer, src: Buffer, nbytes: int, stream: Stream, *, at: int = 0, of: int = 0
    ) -> None:
        """Queue a copy of ``nbytes`` from ``src`` at byte ``of`` to ``dst`` at byte ``at``."""
        target, source = dst.pointer + at, src.pointer + of
        self._ordered(
            lambda: self.device.copy(target, source, nbytes, stream.handle), [src], [dst], stream
        )

    def _ordered(
        self,
        submit: Callable[[], None],
        reads: Sequence[Buffer],
        writes: Sequence[Buffer],
        stream: Stream,
    ) -> None:
        with self._lock:
            self._purge()
            for buffer in (*reads, *writes):
                if buffer.unordered:
                    self.device.synchronize()
                    buffer.unordered = False
            for mark in _hazards(reads, writes):
                if mark.device is not self.device:
                    mark.synchronize()
                elif mark.stream.key != stream.key:
                    self.device.wait_event(stream.handle, mark.event)
            submit()
            mark = self.mark(stream)
            for buffer in reads:
                buffer.marks.readers[stream.key] = mark
            for buffer in writes:
                buffer.marks.writer = mark
                buffer.marks.readers.clear()
            for producer in {b.producer for b in (*reads, *writes) if b.producer is not None}:
                if producer.key != stream.key:
                    self.device.wait_event(producer.handle, mark.event)

    def _retire(self, owner: object, marks: Marks) -> None:
        self._limbo.append((owner, marks))

    def _purge(self) -> None:
        while self._limbo and self._limbo[0][1].done():
            self._limbo.popleft()


def _hazards(reads: Sequence[Buffer], writes: Sequence[Buffer]) -> set[Mark]:
    marks = {buffer.marks.writer for buffer in reads}
    for buffer in writes:
        marks.update(buffer.marks.all())
    return {mark for mark in marks if mark is not None}


def _pool_limit(device: Device) -> int:
    """Bytes kept for reuse: ``CVCLI_POOL_BYTES``, else half a GPU or 256 MiB of host memory."""
    asked = os.environ.get("CVCLI_POOL_BYTES")
    if asked is not None:
        return int(asked)
    return device.memory_info()[1] // 2 if device.kind == "cuda" else 256 << 20


def engine_of(device: Device | str) -> Engine:
    """Return the one engine of a device."""
    opened = open_device(device) if isinstance(device, str) else device
    with _LOCK:
        if opened.name not in _ENGINES:
            _ENGINES[opened.name] = Engine(opened)
        return _ENGINES[opened.name]

"""Sequences of operators taken down once and launched as one piece of work.

The work is taken down by the engine, not by the driver: nothing runs meanwhile, no wait or query
can get into the graph, and an error leaves no stream in a state of its own. On a GPU it becomes
a CUDA graph when the block ends; the CPU device queues its pieces.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cvcli.core.engine import Engine, engine_of
from cvcli.core.marks import Captured
from cvcli.core.memory import Buffer
from cvcli.core.stream import Stream, stream_for
from cvcli.devices import Copy, Device, Launch
from cvcli.errors import CopyError, UsageError


class Recorder:
    """Takes down what is queued on one stream, and which buffers it reads and writes."""

    def __init__(self, device: Device) -> None:
        self.mark = Captured(device)
        self.work: list[Launch | Copy] = []
        self.reads: dict[int, Buffer] = {}
        self.writes: dict[int, Buffer] = {}
        self._uploads: list[tuple[int, Copy, Buffer, Buffer]] = []

    def launch(self, launch: Launch, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> None:
        """Take down a launch, with its arguments as they are now."""
        self._use(reads, writes)
        args = type(launch.args).from_buffer_copy(launch.args)
        self.work.append(replace(launch, args=args, native=None))

    def copy(self, dst: Buffer, src: Buffer, copy: Copy) -> bool:
        """Take down a copy; return whether it must be made now, as the host wrote its source.

        What is uploaded may serve others too, such as an operator's table, and stays the same:
        it is part of the graph only if the graph overwrites it.
        """
        if src.marks.writer is None and src.owner is None and id(src) not in self.writes:
            self._uploads.append((len(self.work), copy, dst, src))
            return True
        self._use((src,), (dst,))
        self.work.append(copy)
        return False

    def finish(self) -> None:
        """Put in the uploads that every launch must repeat."""
        for at, copy, dst, src in reversed(self._uploads):
            if id(dst) in self.writes:
                self.work.insert(at, copy)
                self.reads[id(src)] = src
        if not self.work:
            raise UsageError(
                "capture: nothing was queued on the captured stream",
                tip="call operators inside the block, without another stream=",
            )

    def _use(self, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> None:
        for buffer in reads:
            if buffer.marks.writer is not self.mark and isinstance(buffer.marks.writer, Captured):
                buffer.marks.writer.synchronize()
            if id(buffer) not in self.writes:
                self.reads[id(buffer)] = buffer
        for buffer in writes:
            self.writes[id(buffer)] = buffer
            if buffer.marks.writer is None and buffer.owner is None:
                # It holds nothing yet, so until the first launch there is nothing to be read.
                buffer.marks.writer = self.mark


class Graph:
    """Work that `capture` has taken down; it keeps all memory that the work reads and writes."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._handle = engine, -1
        self._reads: tuple[Buffer, ...] = ()
        self._writes: tuple[Buffer, ...] = ()
        self._mark: Captured | None = None
        self._pieces = 0

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda:N``."""
        return self._engine.device.name

    def __len__(self) -> int:
        """Return the number of launches and copies."""
        return self._pieces

    def __repr__(self) -> str:
        return f"<cvcli.Graph {self.device} pieces={self._pieces}>"

    def __reduce__(self) -> Any:
        raise CopyError(
            "graph: can't be copied or pickled, as it works on memory of this process",
            tip="launch it as often as you like, or capture the operators anew",
        )

    def launch(self, stream: Stream | None = None) -> None:
        """Queue the work on a stream, by default the current one.

        It reads the captured inputs as they are then, after whatever wrote them, and overwrites
        the captured outputs after whatever reads them. Raises `UsageError` before `capture` has
        ended well.
        """
        if self._handle < 0:
            raise UsageError("capture: the graph can be launched when its block has ended well")
        on = stream_for(self._engine.device, stream)
        with self._engine.lock:
            if on.key in self._engine.recorders:
                raise UsageError("capture: a graph can't be launched inside another one")
            for buffer in self._writes:
                if buffer.marks.writer is self._mark:
                    buffer.marks.writer = None
            self._engine.launch_graph(self._handle, self._reads, self._writes, on)

    def _build(self, recorder: Recorder) -> None:
        recorder.finish()
        device = self._engine.device
        self._handle = device.create_graph(recorder.work)
        self._reads, self._writes = tuple(recorder.reads.values()), tuple(recorder.writes.values())
        self._mark, self._pieces = recorder.mark, len(recorder.work)
        weakref.finalize(self, device.destroy_graph, self._handle).atexit = False


@contextmanager
def capture(stream: Stream | None = None, *, device: str | None = None) -> Iterator[Graph]:
    """Take down the operators of a ``with`` block instead of running them.

        with cvcli.capture() as graph:
            out = cvcli.invert(cvcli.flip(src, -1))
        graph.launch()

    ``stream``, by default a new one of ``device``, is current inside the block; what is queued on
    it becomes part of the graph, what is queued elsewhere runs as usual, and so do uploads. The
    tensors made inside hold their pixels once the graph is launched, and anew after each launch;
    reading one earlier raises `UsageError`. Operators only: what other libraries queue on the
    stream runs as usual. Raises `UsageError` where nothing was captured.
    """
    on = stream if stream is not None else Stream(device)
    engine = engine_of(on._device)
    graph, recorder = Graph(engine), Recorder(engine.device)
    with engine.lock:
        if on.key in engine.recorders:
            raise UsageError("capture: the stream is being captured already")
        engine.recorders[on.key] = recorder
    try:
        with on:
            yield graph
    finally:
        with engine.lock:
            del engine.recorders[on.key]
    graph._build(recorder)

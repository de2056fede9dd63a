"""The device stage: upload, chain and download of whole batches.

On a GPU they take a ring of streams in turn; on the CPU each worker runs its own.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from cvcli.batch.report import Report
from cvcli.batch.slots import Batch, Slot, as_images
from cvcli.core.engine import Engine, engine_of
from cvcli.core.images import Placed, pack, packed_nbytes
from cvcli.core.launch import run_plans
from cvcli.core.memory import Buffer
from cvcli.core.stream import Event, Stream
from cvcli.devices import find
from cvcli.errors import DeviceError, OutOfMemoryError


@dataclass(slots=True)
class Done:
    """Images whose pixels are back in host memory, or the reason why not."""

    slots: list[Slot]
    buffer: Buffer | None
    placed: Sequence[Placed]
    device: str
    error: str | None = None


@dataclass(slots=True)
class _Flight:
    """A batch on its way through a device, with the events between its stages."""

    slots: list[Slot]
    output: Buffer
    placed: Sequence[Placed]
    engine: Engine
    events: list[Event]
    keep: tuple[object, ...]
    seconds: float = 0.0
    """How long the chain took, where it has already run and there are no events."""


@dataclass(frozen=True, slots=True)
class _Work:
    """Images of an arena to be run on a stream; ``then`` gets what has been queued."""

    engine: Engine
    arena: Buffer
    slots: list[Slot]
    stream: Stream
    then: Callable[[_Flight], None]


class DeviceStage:
    """Runs batches on one device, started in the background.

    ``deliver`` gets what comes back; ``abort`` gets what makes the device unusable.
    """

    def __init__(
        self,
        device: str,
        streams: int,
        report: Report,
        deliver: Callable[[Done], None],
        abort: Callable[[BaseException], None],
    ) -> None:
        self._count, self._report = streams, report
        self._deliver, self._abort = deliver, abort
        self._batches: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._flights: queue.SimpleQueue[_Flight | None] = queue.SimpleQueue()
        self._ring: list[Stream] = []
        self._turn = 0
        self._local = threading.local()
        self._own: list[Stream] = []
        self._engine: Future[Engine] = Future()
        self._threads = [
            threading.Thread(target=target, args=args, name=f"cvcli-{name}", daemon=True)
            for name, target, args in (
                ("launch", self._launch_all, (device,)),
                ("land", self._land_all, ()),
            )
        ]
        for thread in self._threads:
            thread.start()

    def ready(self) -> Engine | None:
        """Return the device's engine if it has started."""
        return self._engine.result() if self._engine.done() else None

    def submit(self, batch: Batch) -> None:
        """Run a batch; its slots come back through ``deliver``.

        On the CPU the calling thread runs it: it has just filled the caches with the pixels.
        """
        engine = self.ready()
        if engine is None or engine.device.kind != "cpu":
            self._batches.put(batch)
            return
        stream = self._own_stream(engine)
        flights: list[_Flight] = []
        try:
            self._fly(_Work(engine, batch.arena, batch.slots, stream, flights.append))
        finally:
            # Whatever was queued must run: others may wait for it. What failed, its event tells.
            with suppress(DeviceError):
                stream.sync()
        for flight in flights:
            self._deliver(self._land(flight))

    def _own_stream(self, engine: Engine) -> Stream:
        """Return the calling thread's stream of the CPU device."""
        if not hasattr(self._local, "stream"):
            device: Any = engine.device
            self._local.stream = Stream._wrap(device, device.create_driven_stream())
            self._own.append(self._local.stream)
        stream: Stream = self._local.stream
        return stream

    def close(self) -> None:
        """Wait until everything queued has been delivered; no other thread may still submit."""
        self._batches.put(None)
        for thread in self._threads:
            thread.join()
        while self._own:
            stream = self._own.pop()
            stream._device.destroy_stream(stream.handle)

    def _launch_all(self, device: str) -> None:
        try:
            engine = self._open(device)
            if engine.device.kind != "cpu":
                self._ring = [Stream(engine.device.name) for _ in range(self._count)]
            self._report.device = engine.device.name
            self._engine.set_result(engine)
            while (batch := self._batches.get()) is not None:
                stream = self._next_stream(engine)
                self._fly(_Work(engine, batch.arena, batch.slots, stream, self._flights.put))
                del batch
        except BaseException as error:
            self._abort(error)
        finally:
            self._flights.put(None)

    def _open(self, device: str) -> Engine:
        if device != "auto":
            return engine_of(find.parse_device(device))
        if find.gpu_count() and not find.cupy_installed():
            note = f"an NVIDIA GPU is idle: to use it, {find.cupy_tip()}"
            self._report.notes.append(note)
            return engine_of("cpu")
        try:
            return engine_of(find.default_device_name())
        except DeviceError as error:
            self._report.notes.append(f"running on the CPU ({error})")
            return engine_of("cpu")

    def _fly(self, work: _Work) -> None:
        """Run slots as one batch; without room for it, as halves, at last on the CPU."""
        mine = work.stream is getattr(self._local, "stream", None)
        launch = self._run_here if mine else self._launch
        try:
            flight = launch(work.engine, work.arena, work.slots, work.stream)
        except OutOfMemoryError as error:
            self._split(work, error)
        except DeviceError as error:
            self._deliver(Done(work.slots, None, (), work.engine.device.name, str(error)))
        else:
            work.then(flight)

    def _split(self, work: _Work, error: OutOfMemoryError) -> None:
        slots = work.slots
        if len(slots) > 1:
            middle = len(slots) // 2
            self._fly(replace(work, slots=slots[:middle]))
            self._fly(replace(work, slots=slots[middle:]))
        elif work.engine.device.kind == "cpu":
            self._deliver(Done(slots, None, (), "cpu", str(error)))
        else:
            self._report.note(slots[0].job.index, f"run on the CPU: {error}")
            self._fly(replace(work, engine=engine_of("cpu"), stream=Stream("cpu")))

    def _run_here(
        self, engine: Engine, arena: Buffer, slots: list[Slot], stream: Stream
    ) -> _Flight:
        """Run slots in the calling thread, whose stream it is, to their end.

        Events would cost as much as all the rest here, and tell nothing that a clock doesn't.
        """
        targets = [slot.plan.target for slot in slots]
        source = as_images(arena, [slot.placed for slot in slots])
        dst = pack(engine.allocate(packed_nbytes(targets)), targets)
        begin = time.perf_counter()
        run_plans(engine, source, dst, [slot.plan for slot in slots], stream)
        stream.sync()
        seconds = time.perf_counter() - begin
        return _Flight(slots, dst.buffer, dst.placed(), engine, [], (arena,), seconds)

    def _launch(self, engine: Engine, arena: Buffer, slots: list[Slot], stream: Stream) -> _Flight:
        targets = [slot.plan.target for slot in slots]
        sources = [slot.placed for slot in slots]
        size = packed_nbytes(targets)
        events = [Event(stream.device, timing=True) for _ in range(4)]
        events[0].record(stream)
        here = engine.device.kind == "cpu"
        src = arena if here else self._upload(engine, arena, sources, stream)
        shift = 0 if here else sources[0].offset
        moved = [Placed(p.spec, p.offset - shift, p.row_pitch) for p in sources]
        events[1].record(stream)
        dst = pack(engine.allocate(size), targets)
        run_plans(engine, as_images(src, moved), dst, [slot.plan for slot in slots], stream)
        events[2].record(stream)
        output = dst.buffer
        if not here:
            output = engine.allocate_staging(size)
            engine.copy(output, dst.buffer, size, stream)
        events[3].record(stream)
        return _Flight(slots, output, dst.placed(), engine, events, (arena, src, dst.buffer))

    def _upload(
        self, engine: Engine, arena: Buffer, sources: Sequence[Placed], stream: Stream
    ) -> Buffer:
        begin = sources[0].offset
        nbytes = sources[-1].offset + sources[-1].spec.nbytes - begin
        buffer = engine.allocate(nbytes)
        engine.copy(buffer, arena, nbytes, stream, of=begin)
        return buffer

    def _next_stream(self, engine: Engine) -> Stream:
        """Return the next stream of the ring; on the CPU a new one, as failures stick to one."""
        if not self._ring:
            return Stream(engine.device.name)
        self._turn += 1
        return self._ring[self._turn % len(self._ring)]

    def _land_all(self) -> None:
        try:
            while (flight := self._flights.get()) is not None:
                self._deliver(self._land(flight))
                del flight
        except BaseException as error:
            self._abort(error)

    def _land(self, flight: _Flight) -> Done:
        name = flight.engine.device.name
        try:
            if flight.events:
                flight.events[-1].sync()
            self._measure(flight)
        except DeviceError as error:
            return Done(flight.slots, None, (), name, str(error))
        return Done(flight.slots, flight.output, flight.placed, name)

    def _measure(self, flight: _Flight) -> None:
        device, on_cpu = flight.engine.device, flight.engine.device.kind == "cpu"
        events, now = flight.events, time.perf_counter()
        spans = [later.elapsed(event) / 1e3 for event, later in pairwise(events)]
        spans = spans or [0.0, flight.seconds, 0.0]
        labels = ("upload", flight.slots[0].plan.label, "download")
        moved = [
            (slot.plan.source.nbytes, slot.plan.target.nbytes, slot.job.index)
            for slot in flight.slots
        ]
        total_in, total_out = (sum(item[i] for item in moved) for i in (0, 1))
        clock = now - sum(spans)
        for i, label in enumerate(labels):
            if label != labels[1] and on_cpu:
                continue
            lane = None if on_cpu else f"{device.name} {label}"
            for nbytes_in, nbytes_out, index in moved:
                counted = (nbytes_in, nbytes_in + nbytes_out, nbytes_out)[i]
                whole = (total_in, total_in + total_out, total_out)[i]
                share = spans[i] * counted / whole
                clock += share
                self._report.add_busy(label, share, counted, index=index, end=clock, lane=lane)

"""A batch on its way through one device: upload, chain and download on a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cvcli.batch.report import Report
from cvcli.batch.slots import Slot, as_images
from cvcli.core.engine import Engine, engine_of
from cvcli.core.images import Images, Placed, pack, packed_nbytes
from cvcli.core.launch import run_plans
from cvcli.core.memory import Buffer
from cvcli.core.stream import Event, Stream
from cvcli.errors import DeviceError, OutOfMemoryError


@dataclass(slots=True)
class Done:
    """Images that are back in host memory, or the reason why not.

    They are pixels in ``buffer``, or files where ``codes`` are given.
    """

    slots: list[Slot]
    buffer: Buffer | None
    placed: Sequence[Placed]
    device: str
    error: str | None = None
    codes: Sequence[memoryview] | None = None


@dataclass(slots=True)
class Flight:
    """What has been queued for a batch, with the events between its stages."""

    slots: list[Slot]
    output: Buffer
    placed: Sequence[Placed]
    engine: Engine
    events: list[Event]
    keep: tuple[object, ...]
    seconds: float = 0.0
    """How long the chain took, where it has already run and there are no events."""


@dataclass(frozen=True, slots=True)
class Work:
    """Images of an arena to be run on a stream; ``then`` gets what has been queued.

    With ``here`` the stream is the calling thread's own, and the work is run to its end.
    """

    engine: Engine
    arena: Buffer
    slots: list[Slot]
    stream: Stream
    then: Callable[[Flight], None]
    here: bool = False


class Flights:
    """Sends batches off and takes them in; ``deliver`` gets what comes back."""

    def __init__(self, report: Report, deliver: Callable[[Done], None]) -> None:
        self._report, self.deliver = report, deliver

    def fly(self, work: Work) -> None:
        """Run slots as one batch; without room for it, as halves, at last on the CPU."""
        try:
            flight = _run(work) if work.here else _launch(work)
        except OutOfMemoryError as error:
            self._split(work, error)
        except DeviceError as error:
            self.deliver(Done(work.slots, None, (), work.engine.device.name, str(error)))
        else:
            work.then(flight)

    def _split(self, work: Work, error: OutOfMemoryError) -> None:
        slots = work.slots
        if len(slots) > 1:
            middle = len(slots) // 2
            self.fly(replace(work, slots=slots[:middle]))
            self.fly(replace(work, slots=slots[middle:]))
        elif work.engine.device.kind == "cpu":
            self.deliver(Done(slots, None, (), "cpu", str(error)))
        else:
            self._report.note(slots[0].job.index, f"run on the CPU: {error}")
            self.fly(replace(work, engine=engine_of("cpu"), stream=Stream("cpu"), here=False))

    def land(self, flight: Flight) -> None:
        """Wait for a batch and deliver it."""
        name = flight.engine.device.name
        try:
            if flight.events:
                flight.events[-1].sync()
            self._measure(flight)
        except DeviceError as error:
            self.deliver(Done(flight.slots, None, (), name, str(error)))
        else:
            self.deliver(Done(flight.slots, flight.output, flight.placed, name))

    def _measure(self, flight: Flight) -> None:
        events, now = flight.events, time.perf_counter()
        spans = [later.elapsed(event) / 1e3 for event, later in pairwise(events)]
        spans = spans or [0.0, flight.seconds, 0.0]
        labels = ("upload", flight.slots[0].plan.label, "download")
        moved = [
            (slot.plan.source.nbytes, slot.plan.target.nbytes, slot.job.index)
            for slot in flight.slots
        ]
        total_in, total_out = (sum(item[i] for item in moved) for i in (0, 1))
        on_cpu = flight.engine.device.kind == "cpu"
        clock = now - sum(spans)
        for i, label in enumerate(labels):
            if label != labels[1] and on_cpu:
                continue
            lane = None if on_cpu else f"{flight.engine.device.name} {label}"
            for nbytes_in, nbytes_out, index in moved:
                counted = (nbytes_in, nbytes_in + nbytes_out, nbytes_out)[i]
                whole = (total_in, total_in + total_out, total_out)[i]
                share = spans[i] * counted / whole
                clock += share
                self._report.add_busy(label, share, counted, index=index, end=clock, lane=lane)


def _run(work: Work) -> Flight:
    """Run a batch in the calling thread; events would cost as much as all the rest."""
    engine, stream = work.engine, work.stream
    targets = [slot.plan.target for slot in work.slots]
    source = as_images(work.arena, [slot.placed for slot in work.slots])
    dst = pack(engine.allocate(packed_nbytes(targets)), targets)
    begin = time.perf_counter()
    run_plans(engine, source, dst, [slot.plan for slot in work.slots], stream)
    stream.sync()
    seconds = time.perf_counter() - begin
    return Flight(work.slots, dst.buffer, dst.placed(), engine, [], (work.arena,), seconds)


def _launch(work: Work) -> Flight:
    engine, arena, slots, stream = work.engine, work.arena, work.slots, work.stream
    targets = [slot.plan.target for slot in slots]
    size = packed_nbytes(targets)
    events = [Event(stream.device, timing=True) for _ in range(4)]
    events[0].record(stream)
    here = engine.device.kind == "cpu"
    src = (
        as_images(arena, [slot.placed for slot in slots])
        if here
        else upload(engine, arena, slots, stream)
    )
    events[1].record(stream)
    dst = pack(engine.allocate(size), targets)
    run_plans(engine, src, dst, [slot.plan for slot in slots], stream)
    events[2].record(stream)
    output = dst.buffer
    if not here:
        output = engine.allocate_staging(size)
        engine.copy(output, dst.buffer, size, stream)
    events[3].record(stream)
    return Flight(slots, output, dst.placed(), engine, events, (arena, src, dst.buffer))


def upload(engine: Engine, arena: Buffer, slots: Sequence[Slot], stream: Stream) -> Images:
    """Queue the copy of a batch's images, as they lie, to the device."""
    sources = [slot.placed for slot in slots]
    begin = sources[0].offset
    nbytes = sources[-1].offset + sources[-1].spec.nbytes - begin
    buffer = engine.allocate(nbytes)
    engine.copy(buffer, arena, nbytes, stream, of=begin)
    moved = [Placed(item.spec, item.offset - begin, item.row_pitch) for item in sources]
    return as_images(buffer, moved)

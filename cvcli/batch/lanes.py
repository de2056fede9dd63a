"""Batches that take the GPU's own codecs, so that their pixels never cross the bus.

A lane is a thread with a stream, a decoder and an encoder of its own. It takes a batch from files
to files and only then the next one, so while one lane decodes another encodes. At the start of a
batch its stream is idle and nothing refers to the memory of images decoded before: that is what
keeps a decoder safe that writes without regard to the order of a stream.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from cvcli.batch.flight import Done
from cvcli.batch.lane import Lane, Trip
from cvcli.batch.report import Report
from cvcli.batch.slots import ON_CPU, Batch, Slot
from cvcli.batch.state import Undone
from cvcli.core.engine import Engine
from cvcli.errors import DeviceError, OutOfMemoryError

# More of them wait for each other; measured on an H200.
_LANES = 2
# A lane that comes back from native code waits for the interpreter so long while workers compute,
# some ten times a batch; Python's 5 ms would be as long as all the rest.
_SWITCH_S = 2e-4
_UNREADABLE = "the GPU's decoder could not read it"
_UNCODED = "encoded on the CPU: the GPU's encoder could not do it"


class _Switching:
    """Has Python's threads take turns quickly while there are lanes; it is the process's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count, self._before = 0, 0.0

    def begin(self) -> None:
        """Note lanes that start."""
        with self._lock:
            if not self._count:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(_SWITCH_S, self._before))
            self._count += 1

    def end(self) -> None:
        """Note that they have ended."""
        with self._lock:
            self._count -= 1
            if not self._count:
                sys.setswitchinterval(self._before)


_switching = _Switching()


class Lanes:
    """The lanes of one GPU.

    ``deliver`` gets what they finish, ``undone`` what the CPU must decode, and ``plain`` batches
    of pixels that are to take the way without GPU codecs after all.
    """

    def __init__(
        self,
        engine: Engine,
        report: Report,
        deliver: Callable[[Done], None],
        undone: Callable[[list[Undone]], None],
        plain: Callable[[Batch], None],
        abort: Callable[[BaseException], None],
        count: int = _LANES,
    ) -> None:
        self._engine, self._report = engine, report
        self._deliver, self._undone, self._plain, self._abort = deliver, undone, plain, abort
        self._queue: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        name = engine.device.name.replace(":", "-")
        self._threads = [
            threading.Thread(target=self._run, name=f"cvcli-{name}-lane-{i}", daemon=True)
            for i in range(count)
        ]
        _switching.begin()
        for thread in self._threads:
            thread.start()

    def submit(self, batch: Batch) -> None:
        """Take a batch of which images are decoded or encoded here."""
        self._queue.put(batch)

    def close(self) -> None:
        """Wait until everything submitted was delivered."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        _switching.end()

    def _run(self) -> None:
        lane: Lane | None = None
        try:
            while (batch := self._queue.get()) is not None:
                try:
                    lane = lane or Lane(self._engine)
                except DeviceError as error:
                    self._give_up(batch, batch.slots, str(error))
                else:
                    self._take(lane, batch, batch.slots)
                del batch
        except BaseException as error:
            self._abort(error)
        finally:
            if lane is not None:
                lane.close()

    def _give_up(self, batch: Batch, slots: list[Slot], reason: str) -> None:
        if batch.arena is None:
            self._undone([Undone(slot, reason) for slot in slots])
            return
        for slot in slots:
            slot.way = ON_CPU
            self._report.note(slot.job.index, f"encoded on the CPU: {reason}")
        self._plain(replace(batch, slots=slots))

    def _take(self, lane: Lane, batch: Batch, slots: list[Slot]) -> None:
        """Run slots as one batch; where that fails as halves, and a single one on the CPU."""
        try:
            trip = lane.start(slots)
        except DeviceError as error:
            self._give_up(batch, slots, str(error))
            return
        try:
            left = self._travel(lane, batch, trip)
        except (OutOfMemoryError, DeviceError) as error:
            left, reason = slots, str(error)
        else:
            reason = _UNREADABLE
        finally:
            # Only now may the images be let go of.
            with suppress(DeviceError):
                lane.stream.sync()
            trip.drop()
        if len(left) == len(slots) > 1:
            # Perhaps there was no memory for so many, which the decoder doesn't tell.
            middle = len(left) // 2
            self._take(lane, batch, left[:middle])
            self._take(lane, batch, left[middle:])
        elif left:
            self._give_up(batch, left, reason)

    def _travel(self, lane: Lane, batch: Batch, trip: Trip) -> list[Slot]:
        """Decode, run, encode and deliver; return the slots that could not be decoded."""
        left = lane.decode(trip) if batch.arena is None else lane.upload(trip, batch.arena)
        if trip.slots:
            lane.run_chain(trip)
            lane.encode(trip)
            lane.download(trip)
            lane.stream.sync()
            self._measure(trip, "decode" if batch.arena is None else "upload")
            self._hand_on(lane, trip)
        return left

    def _hand_on(self, lane: Lane, trip: Trip) -> None:
        device = lane.engine.device.name
        coded, plain = trip.coded, trip.plain
        for slot, _ in plain:
            if slot.way.recipe is not None:
                self._report.note(slot.job.index, _UNCODED)
        if coded:
            self._deliver(
                Done([s for s, _ in coded], None, (), device, None, [code for _, code in coded])
            )
        if plain:
            self._deliver(Done([s for s, _ in plain], trip.pixels, [p for _, p in plain], device))

    def _measure(self, trip: Trip, first: str) -> None:
        coded = [slot for slot, _ in trip.coded]
        plain = [slot for slot, _ in trip.plain]
        clock = trip.begin
        for number, (label, slots) in enumerate(
            ((first, trip.slots), (trip.slots[0].plan.label, trip.slots), ("download", plain))
        ):
            seconds = trip.events[number + 1].elapsed(trip.events[number]) / 1e3
            if label == "download":
                seconds = max(0.0, seconds - trip.encoding)
            clock = self._share(label, number, seconds, slots, clock)
        self._share("encode", 2, trip.encoding, coded, time.perf_counter() - trip.encoding)

    def _share(
        self, label: str, number: int, seconds: float, slots: list[Slot], clock: float
    ) -> float:
        """Give each image its part of a stage, by its bytes; return when the last one ends."""
        sizes = [
            (plan.source.nbytes, plan.source.nbytes + plan.target.nbytes, plan.target.nbytes)[
                number
            ]
            for plan in (slot.plan for slot in slots)
        ]
        whole = sum(sizes)
        for slot, nbytes in zip(slots, sizes, strict=True):
            clock += seconds * nbytes / whole
            self._report.add_busy(
                label, seconds * nbytes / whole, nbytes, index=slot.job.index, end=clock
            )
        return clock

"""One GPU of a run: batches take a ring of its streams in turn."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from cvcli.batch.flight import Done, Flight, Flights, Work
from cvcli.batch.lanes import Lanes
from cvcli.batch.report import Report
from cvcli.batch.slots import Batch
from cvcli.batch.state import Undone
from cvcli.core.engine import Engine
from cvcli.core.stream import Stream


class Unit:
    """A GPU with the threads that keep it busy.

    ``deliver`` gets what comes back, ``undone`` what the CPU's codecs must do, and ``abort`` what
    makes the device unusable. With ``coded`` the GPU's own codecs are used.
    """

    def __init__(
        self,
        engine: Engine,
        streams: int,
        report: Report,
        deliver: Callable[[Done], None],
        undone: Callable[[list[Undone]], None],
        abort: Callable[[BaseException], None],
        *,
        coded: bool,
    ) -> None:
        self.engine, self._abort = engine, abort
        self._report, self._deliver, self._undone = report, deliver, undone
        self._lock = threading.Lock()
        self._flying = self.sent = 0
        self._flights = Flights(report, self._back)
        self._queue: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._landing: queue.SimpleQueue[Flight | None] = queue.SimpleQueue()
        self._ring = [Stream(engine.device.name) for _ in range(streams)]
        self._lanes = None
        if coded:
            self._lanes = Lanes(engine, report, self._back, self._hand_back, self._queue.put, abort)
        name = engine.device.name.replace(":", "-")
        self._threads = [
            threading.Thread(target=target, name=f"cvcli-{name}-{what}", daemon=True)
            for what, target in (("launch", self._launch_all), ("land", self._land_all))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def flying(self) -> int:
        """Images on their way through this GPU, of all that were ``sent``."""
        return self._flying

    def submit(self, batch: Batch) -> None:
        """Take a batch; its images come back one way or another."""
        with self._lock:
            self._flying += len(batch.slots)
            self.sent += len(batch.slots)
        if self._lanes is not None and batch.uses_gpu_codecs:
            self._lanes.submit(batch)
        elif batch.arena is not None:
            self._queue.put(batch)
        else:
            self._hand_back([Undone(slot, "no GPU codecs") for slot in batch.slots])

    def close(self) -> None:
        """Wait until everything queued has been delivered."""
        if self._lanes is not None:
            self._lanes.close()
        self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _back(self, done: Done) -> None:
        with self._lock:
            self._flying -= len(done.slots)
        self._deliver(done)

    def _hand_back(self, items: list[Undone]) -> None:
        with self._lock:
            self._flying -= len(items)
        self._undone(items)

    def _launch_all(self) -> None:
        turn = 0
        try:
            while (batch := self._queue.get()) is not None:
                turn += 1
                stream = self._ring[turn % len(self._ring)]
                assert batch.arena is not None
                self._flights.fly(
                    Work(self.engine, batch.arena, batch.slots, stream, self._landing.put)
                )
                del batch
        except BaseException as error:
            self._abort(error)
        finally:
            self._landing.put(None)

    def _land_all(self) -> None:
        try:
            while (flight := self._landing.get()) is not None:
                self._flights.land(flight)
                del flight
        except BaseException as error:
            self._abort(error)

"""The device stage: whole batches through one GPU, or all of them, or the CPU.

On a GPU they take a ring of streams in turn; on the CPU each worker runs its own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from cvcli.batch.flight import Done, Flight, Flights, Work
from cvcli.batch.report import Report
from cvcli.batch.slots import Batch
from cvcli.batch.state import Undone
from cvcli.codecs import gpu
from cvcli.core.engine import Engine, engine_of
from cvcli.core.stream import Stream
from cvcli.devices import find
from cvcli.errors import DeviceError

if TYPE_CHECKING:
    from cvcli.batch.unit import Unit

__all__ = ["CodecChoice", "DeviceStage", "Done"]

CodecChoice = Literal["auto", "cpu", "gpu"]


class DeviceStage:
    """Runs batches on the devices of that name, started in the background.

    ``deliver`` gets what comes back, ``undone`` what the CPU's codecs must do after all; ``abort``
    gets what makes a device unusable.
    """

    def __init__(
        self,
        device: str,
        codec: CodecChoice,
        streams: int,
        report: Report,
        deliver: Callable[[Done], None],
        undone: Callable[[list[Undone]], None],
        abort: Callable[[BaseException], None],
    ) -> None:
        self._device, self._codec, self._streams = device, codec, streams
        self._report, self._abort = report, abort
        self._deliver, self._undone = deliver, undone
        self._flights = Flights(report, deliver)
        self._units: list[Unit] = []
        self._early: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._local = threading.local()
        self._own: list[Stream] = []
        self._engine: Future[Engine] = Future()
        self._coded: bool | None = None
        self._starter = threading.Thread(target=self._start, name="cvcli-start", daemon=True)
        self._starter.start()

    def ready(self) -> Engine | None:
        """Return the first device's engine if it has started."""
        return self._engine.result() if self._engine.done() else None

    @property
    def count(self) -> int:
        """Devices that have started."""
        return max(1, len(self._units))

    @property
    def coded(self) -> bool:
        """Whether images may take the GPU's codecs.

        It is told from what is installed, so that it doesn't depend on when the device is ready.
        """
        if self._coded is None:
            self._coded = self._codec != "cpu" and self._wants_gpu() and gpu.installed()
        return self._coded

    def _wants_gpu(self) -> bool:
        if self._device == "auto":
            return find.default_device_name() != "cpu"
        return self._device != "cpu"

    def submit(self, batch: Batch) -> None:
        """Run a batch; its slots come back through ``deliver`` or ``undone``.

        On the CPU the calling thread runs it: it has just filled the caches with the pixels.
        """
        engine = self.ready()
        if engine is None:
            self._early.put(batch)
        else:
            self._send(batch, engine)

    def _send(self, batch: Batch, engine: Engine) -> None:
        if self._units:
            min(self._units, key=lambda unit: (unit.flying, unit.sent)).submit(batch)
        elif batch.arena is None:
            self._undone([Undone(slot, "there is no GPU after all") for slot in batch.slots])
        else:
            self._run_here(batch, engine)

    def _run_here(self, batch: Batch, engine: Engine) -> None:
        assert batch.arena is not None
        stream = self._own_stream(engine)
        flights: list[Flight] = []
        try:
            work = Work(engine, batch.arena, batch.slots, stream, flights.append, here=True)
            self._flights.fly(work)
        finally:
            # Whatever was queued must run: others may wait for it. What failed, its event tells.
            with suppress(DeviceError):
                stream.sync()
        for flight in flights:
            self._flights.land(flight)

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
        self._early.put(None)
        self._starter.join()
        for unit in self._units:
            unit.close()
        while self._own:
            stream = self._own.pop()
            stream._device.destroy_stream(stream.handle)

    def _start(self) -> None:
        try:
            if self.coded:
                threading.Thread(target=gpu.preload, daemon=True).start()
            engines = self._open()
            coded = engines[0].device.kind != "cpu" and self._codecs_work(engines[0])
            for engine in engines:
                if engine.device.kind != "cpu":
                    self._units.append(self._unit(engine, coded=coded))
            self._report.device = ", ".join(engine.device.name for engine in engines)
            self._engine.set_result(engines[0])
            while (batch := self._early.get()) is not None:
                self._send(batch, engines[0])
                del batch
        except BaseException as error:
            self._abort(error)

    def _unit(self, engine: Engine, *, coded: bool) -> Unit:
        from cvcli.batch.unit import Unit

        return Unit(
            engine,
            self._streams,
            self._report,
            self._deliver,
            self._undone,
            self._abort,
            coded=coded,
        )

    def _open(self) -> list[Engine]:
        device = self._device
        if device == find.EVERY_GPU:
            return [engine_of(name) for name in find.every_gpu()]
        if device != "auto":
            return [engine_of(find.parse_device(device))]
        if find.gpu_count() and not find.cupy_installed():
            note = f"an NVIDIA GPU is idle: to use it, {find.cupy_tip()}"
            self._report.notes.append(note)
            return [engine_of("cpu")]
        try:
            return [engine_of(find.default_device_name())]
        except DeviceError as error:
            self._report.notes.append(f"running on the CPU ({error})")
            return [engine_of("cpu")]

    def _codecs_work(self, engine: Engine) -> bool:
        if not self.coded:
            return False
        try:
            gpu.borrow(engine.device.index).give_back()
        except DeviceError as error:
            if self._codec == "gpu":
                raise
            self._report.notes.append(f"the CPU's codecs are used ({error})")
            return False
        return True


def check_codec(codec: CodecChoice, device: str) -> None:
    """Raise `DeviceError` if the GPU's codecs are insisted on and can't be had."""
    if codec != "gpu":
        return
    if device == "cpu" or (device == "auto" and find.default_device_name() == "cpu"):
        raise DeviceError("--codec gpu: there is no GPU to use", tip="leave out --codec")
    if not gpu.installed():
        raise DeviceError("--codec gpu: nvImageCodec is not installed", tip=codec_tip())


def codec_tip() -> str:
    """Return the command that installs the GPU's codecs for this machine's driver."""
    version = find.driver_version()
    extra = "nvcodec13" if version is not None and version >= (13, 0) else "nvcodec12"
    return f"pip install 'cvcli[{extra}]'"

"""Run a plan: decode, device and encode stages that overlap, bounded in bytes.

One pool of workers both decodes and encodes, and on the CPU runs the chain. It takes what is
nearest to its end first, so memory drains before more is filled, no side starves whatever the
codecs cost, and an image is still in the caches at its next step.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import cvcli.codecs as codecs
from cvcli.batch.album import Album, Care, Picture
from cvcli.batch.check import check_inputs
from cvcli.batch.device import DeviceStage, Done
from cvcli.batch.garbage import few_collections
from cvcli.batch.interrupt import ending_at_once_if_interrupted_again
from cvcli.batch.plan import Job, Plan
from cvcli.batch.report import Report
from cvcli.batch.sinks import FileSink, Sink
from cvcli.batch.slots import Batch, Slot, array_at
from cvcli.batch.sources import Files
from cvcli.batch.state import Finished, NoRoom, State
from cvcli.batch.storage import storage_of
from cvcli.core.chain import Chain
from cvcli.core.engine import engine_of
from cvcli.core.spec import ImageSpec
from cvcli.devices import open_device
from cvcli.devices.cpu import cpu_threads
from cvcli.errors import CvcliError, ImageError, OutOfMemoryError

if TYPE_CHECKING:
    from cvcli.batch.album import Pixels
    from cvcli.batch.feed import Feed

_MIB = 1 << 20
# Pixels in flight for each worker, before and after the chain: more than this is slower, as it no
# longer fits the caches. Larger images still keep every worker busy, with one each.
_WORKER_NBYTES = 16 * _MIB
_BATCH_NBYTES = {"cpu": 8 * _MIB, "cuda": 32 * _MIB}
# Thousands of tiny images would fit a batch, and none would be written before it is full.
_BATCH_IMAGES = {"cpu": 64, "cuda": 4096}
# What a GPU adds to that: batches on their way to it and back.
_DEVICE_NBYTES = {"cpu": 0, "cuda": 192 * _MIB}


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: ``None`` leaves a choice to the machine."""

    device: str = "auto"
    batch_size: int | None = None
    streams: int = 2
    jobs: int | None = None
    quality: int | None = None
    overwrite: bool = False
    fail_fast: bool = False
    max_pixels: int | None = None
    max_errors: int | None = None
    max_memory: int | None = None
    fail_on: str = "error"
    care: Care = field(default_factory=Care)
    """What becomes of what a file holds beside plain pixels."""

    @property
    def most_failures(self) -> int:
        """How many failures end the run."""
        return 1 if self.fail_fast else self.max_errors or sys.maxsize


@dataclass(frozen=True, slots=True)
class Ends:
    """Where images come from and go to; ``feed`` gives more jobs while the run goes on."""

    source: Files
    sink: Sink
    feed: Feed | None = None


class Runner:
    """One run of a chain over a plan's jobs; `run` is the way in."""

    def __init__(
        self, plan: Plan, chain: Chain, options: Options, report: Report, ends: Ends
    ) -> None:
        self._chain, self._options, self._report, self._ends = chain, options, report, ends
        self._jobs = options.jobs or cpu_threads()
        self._count = len(plan.jobs) if ends.feed is None else self._jobs
        self._state = State(
            plan.jobs,
            self._jobs,
            ends.sink,
            self._budget,
            options.max_memory,
            more=ends.feed is not None,
        )
        self._memory = open_device("cpu").memory_info()[1]
        self._max_pixels = options.max_pixels or codecs.DEFAULT_MAX_PIXELS
        self._stage = DeviceStage(
            options.device, options.streams, report, self._deliver, self._abort
        )

    def run(self, tick: Callable[[Report], None]) -> None:
        """Run to the end; ``tick`` is called now and then from the calling thread."""
        threads = [
            threading.Thread(target=self._work, name=f"cvcli-worker-{i}", daemon=True)
            for i in range(max(1, min(self._jobs, self._count)))
        ]
        if self._ends.feed is not None:
            # Never waited for: it may be waiting itself, for input that doesn't come.
            threading.Thread(target=self._feed, args=(self._ends.feed,), daemon=True).start()
        try:
            for thread in threads:
                thread.start()
            self._watch(tick)
        except BaseException:
            self._stop(discard=True)
            with ending_at_once_if_interrupted_again():
                self._end(threads)
            raise
        self._end(threads)
        if self._state.error is not None:
            raise self._state.error

    def _end(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        self._stage.close()

    def _feed(self, feed: Feed) -> None:
        try:
            for job in feed.jobs(self._report):
                if not self._state.add(job):
                    return
            if self._report.failed >= self._options.most_failures:
                self._stop(discard=False)
        except BaseException as error:
            self._abort(error)
        finally:
            self._state.no_more()

    def _watch(self, tick: Callable[[Report], None]) -> None:
        state = self._state
        while True:
            with state.change:
                if state.change.wait_for(lambda: state.is_over, timeout=0.1):
                    return
            tick(self._report)

    def _work(self) -> None:
        try:
            while (task := self._state.next()) is not None:
                if isinstance(task, Finished):
                    self._encode(task)
                elif isinstance(task, Batch):
                    self._stage.submit(task)
                else:
                    self._decode(task)
                del task
        except BaseException as error:
            self._abort(error)

    def _budget(self) -> int:
        wanted = self._jobs * _WORKER_NBYTES + _DEVICE_NBYTES[self._kind()]
        return min(wanted, self._options.max_memory or wanted)

    def _kind(self) -> str:
        engine = self._stage.ready()
        return engine.device.kind if engine is not None else "cpu"

    def _decode(self, job: Job) -> None:
        album = batch = None
        try:
            with self._timed("read", job) as moved:
                data = self._ends.source.read(job)
                moved.append(len(data))
            album = self._examine(job, data)
            pictures = album.pictures(data, self._chain, self._max_pixels)
            while (picture := self._next_picture(job, pictures)) is not None:
                batch, slot = self._reserve(album, picture)
                with self._timed("decode", job, slot.plan.source.nbytes):
                    self._read(album, picture, data, batch.array(slot))
                self._state.filled(batch, None)
                batch = None
        except NoRoom:
            if album is not None:
                self._state.put_back(album)
        except (CvcliError, MemoryError) as error:
            self._fail(job, _as_error(error), album)
            if batch is not None:
                self._state.filled(batch, album)
        self._state.was_read()

    def _examine(self, job: Job, data: bytes) -> Album:
        header = codecs.probe(data, self._max_pixels)
        size = {"width": header.spec.width, "height": header.spec.height}
        self._report.opened(job.index, **size, bytes_in=len(data))
        return Album.opened(job, data, header, self._options.care)

    def _read(self, album: Album, picture: Picture, data: bytes, out: Pixels) -> None:
        """Decode, as far as the file goes if it is to be taken for what it is."""
        try:
            album.read(picture, out)
        except ImageError as error:
            short = str(error).startswith("truncated")
            lenient = self._options.fail_on == "none"
            lenient |= self._options.fail_on == "truncated" and not short
            mended = codecs.repaired(data) if lenient and album.expected == 1 else None
            if mended is None:
                raise ImageError(str(error), error.tip or _lenient_tip(data)) from error
            picture.read = partial(codecs.decode, mended, picture.header)
            album.read(picture, out)
            self._report.note(album.job.index, f"{error}; what there is of it was kept")

    def _next_picture(self, job: Job, pictures: Iterator[Picture]) -> Picture | None:
        with self._timed("decode", job):
            picture = next(pictures, None)
        if picture is not None and picture.plan.target.nbytes > self._memory:
            target = picture.plan.target
            raise ImageError(f"the result, {target}, is larger than the memory there is")
        return picture

    def _reserve(self, album: Album, picture: Picture) -> tuple[Batch, Slot]:
        fresh = None
        while (place := self._state.place(album, picture, fresh)) is None:
            # Page-locking memory is slow, so the others go on meanwhile.
            fresh = self._new_batch(picture.plan.source)
        return place

    def _new_batch(self, spec: ImageSpec) -> Batch:
        engine = self._stage.ready() or engine_of("cpu")
        size, limit = _BATCH_NBYTES[engine.device.kind], self._options.batch_size
        if limit is not None:
            size = max(size, limit * spec.nbytes)
        # On many cores a batch grows with what is in flight: fewer of them cost less to run.
        size = max(spec.nbytes, min(max(size, self._budget() // 8), self._budget() // 2))
        try:
            arena = engine.allocate_staging(size)
        except OutOfMemoryError:
            arena = engine_of("cpu").allocate_staging(size)
        return Batch(arena, limit or _BATCH_IMAGES[engine.device.kind])

    def _deliver(self, done: Done) -> None:
        if done.buffer is None:
            for slot in done.slots:
                self._fail(slot.job, ImageError(done.error or "failed"), slot.album)
            return
        self._state.finished(
            Finished(slot, done.buffer, placed, done.device)
            for slot, placed in zip(done.slots, done.placed, strict=True)
        )

    def _encode(self, item: Finished) -> None:
        album, image = item.slot.album, array_at(item.buffer, item.placed)
        with self._state.change:
            if album.failed or not album.add(item.slot.picture, image):
                return
        job, target = album.job, album.target
        try:
            self._refuse_notes(album)
            with self._timed("encode", job, album.out_nbytes):
                data = album.encoded(self._options.quality)
            self._refuse_notes(album)
            with self._timed("write", job, len(data)):
                self._ends.sink.put(job, data, self._ends.source.stamp(job))
        except (CvcliError, MemoryError) as error:
            self._fail(job, _as_error(error), album)
            return
        for note in album.notes:
            self._report.note(job.index, note)
        size = {"width": target.width, "height": target.height}
        self._report.finish(job.index, **size, bytes_out=len(data), device=item.device)
        self._leave(job, album)

    def _fail(self, job: Job, error: CvcliError, album: Album | None = None) -> None:
        if album is not None:
            with self._state.change:
                if album.failed:
                    return
                album.failed = True
                album.done.clear()
        message = str(error)
        named = str(job.input) in message or str(job.output) in message
        self._report.fail(job.index, message if named else f"{job.input}: {message}", error.tip)
        self._ends.sink.lost(job)
        self._leave(job, album)
        if self._report.failed >= self._options.most_failures:
            self._stop(discard=False)

    def _refuse_notes(self, album: Album) -> None:
        """Raise `ImageError` if a warning is to count as a failure and there is one.

        Where an image was run is no such warning: its pixels are the same.
        """
        noted = [*self._report.row(album.job.index).notes, *album.notes]
        notes = [note for note in noted if not note.startswith("run on the CPU")]
        if self._options.fail_on == "warning" and notes:
            raise ImageError("; ".join(notes), tip="--fail-on error lets warnings pass")

    def _leave(self, job: Job, album: Album | None) -> None:
        self._ends.source.done(job)
        self._state.leave(album)

    def _abort(self, error: BaseException) -> None:
        """End the run with an error that is not one image's own."""
        with self._state.change:
            self._state.error = self._state.error or error
        self._stop(discard=True)

    def _stop(self, *, discard: bool) -> None:
        for job in self._state.stop(discard=discard):
            self._ends.source.done(job)

    @contextmanager
    def _timed(self, stage: str, job: Job, nbytes: int = 0) -> Iterator[list[int]]:
        moved = [nbytes] if nbytes else []
        begin = time.perf_counter()
        yield moved
        self._report.add_busy(stage, time.perf_counter() - begin, sum(moved), index=job.index)


def _lenient_tip(data: bytes) -> str | None:
    return "--fail-on none keeps what there is of it" if codecs.repairable(data) else None


def _as_error(error: CvcliError | MemoryError) -> CvcliError:
    return error if isinstance(error, CvcliError) else ImageError("not enough memory")


def run(
    plan: Plan,
    chain: Chain,
    options: Options,
    report: Report,
    tick: Callable[[Report], None] = lambda report: None,
    ends: Ends | None = None,
) -> None:
    """Run a chain over a plan; the report says what became of each image.

    Raises `DeviceError` if the device can't be used, and `ParameterError` if the chain suits none
    of the images; then nothing has been written.
    """
    ends = ends or Ends(Files(), FileSink(overwrite=options.overwrite))
    if report.failed >= options.most_failures:
        return
    max_pixels = options.max_pixels or codecs.DEFAULT_MAX_PIXELS
    threads = options.jobs or cpu_threads()
    care = options.care
    plan = check_inputs(plan, chain, report, threads, max_pixels, care.auto_orient, care.frame)
    if report.failed >= options.most_failures:
        return
    with few_collections():
        _run(plan, chain, options, report, tick, ends)


def _run(
    plan: Plan,
    chain: Chain,
    options: Options,
    report: Report,
    tick: Callable[[Report], None],
    ends: Ends,
) -> None:
    if isinstance(ends.sink, FileSink):
        for folder in sorted({os.fspath(job.output.parent) for job in plan.jobs}):
            storage_of(folder).remove_stale(folder)
    Runner(plan, chain, options, report, ends).run(tick)
    if not report.left and (ends.feed is None or ends.feed.complete):
        ends.sink.close()
    report.close()

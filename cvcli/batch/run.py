"""Run a plan: decode, device and encode stages that overlap, bounded in bytes.

One pool of workers both decodes and encodes, and on the CPU runs the chain. It takes what is
nearest to its end first, so memory drains before more is filled, no side starves whatever the
codecs cost, and an image is still in the caches at its next step.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import cvcli.codecs as codecs
from cvcli.batch.album import Album, Care, Picture
from cvcli.batch.check import check_inputs
from cvcli.batch.device import DeviceStage, Done
from cvcli.batch.files import read_file, remove_stale, write_atomic
from cvcli.batch.garbage import few_collections
from cvcli.batch.interrupt import ending_at_once_if_interrupted_again
from cvcli.batch.plan import Job, Plan
from cvcli.batch.report import Report
from cvcli.batch.slots import Batch, Slot, array_at
from cvcli.core.chain import Chain
from cvcli.core.engine import engine_of
from cvcli.core.images import Placed
from cvcli.core.memory import Buffer
from cvcli.core.spec import ImageSpec
from cvcli.devices import open_device
from cvcli.devices.cpu import cpu_threads
from cvcli.errors import CvcliError, ImageError, OutOfMemoryError

_MIB = 1 << 20
# Pixels in flight for each worker, before and after the chain: more than this is slower, as it no
# longer fits the caches. Larger images still keep every worker busy, with one each.
_WORKER_NBYTES = 16 * _MIB
_BATCH_NBYTES = {"cpu": 8 * _MIB, "cuda": 32 * _MIB}
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
    care: Care = field(default_factory=Care)
    """What becomes of what a file holds beside plain pixels."""


@dataclass(slots=True)
class _Finished:
    """One picture ready to be encoded."""

    slot: Slot
    buffer: Buffer
    placed: Placed
    device: str


@dataclass(slots=True)
class _State:
    """What the workers share; guarded by the condition."""

    todo: deque[Job]
    change: threading.Condition = field(default_factory=threading.Condition)
    ready: deque[Batch] = field(default_factory=deque)
    finished: deque[_Finished] = field(default_factory=deque)
    open: dict[tuple[str, int], Batch] = field(default_factory=dict)
    reading: int = 0
    flying: int = 0
    nbytes: int = 0
    left: int = 0
    error: BaseException | None = None


class Runner:
    """One run of a chain over a plan's jobs; `run` is the way in."""

    def __init__(self, plan: Plan, chain: Chain, options: Options, report: Report) -> None:
        self._chain, self._options, self._report = chain, options, report
        self._state = _State(deque(plan.jobs), left=len(plan.jobs))
        self._jobs = options.jobs or cpu_threads()
        self._memory = open_device("cpu").memory_info()[1]
        self._max_pixels = options.max_pixels or codecs.DEFAULT_MAX_PIXELS
        self._stage = DeviceStage(
            options.device, options.streams, report, self._deliver, self._abort
        )

    def run(self, tick: Callable[[Report], None]) -> None:
        """Run to the end; ``tick`` is called now and then from the calling thread."""
        threads = [
            threading.Thread(target=self._work, name=f"cvcli-worker-{i}", daemon=True)
            for i in range(max(1, min(self._jobs, self._state.left)))
        ]
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

    def _watch(self, tick: Callable[[Report], None]) -> None:
        state = self._state
        while True:
            with state.change:
                if state.change.wait_for(lambda: state.left <= 0, timeout=0.1):
                    return
            tick(self._report)

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                if isinstance(task, _Finished):
                    self._encode(task)
                elif isinstance(task, Batch):
                    self._stage.submit(task)
                else:
                    self._decode(task)
                del task
        except BaseException as error:
            self._abort(error)

    def _next(self) -> _Finished | Batch | Job | None:
        """Return what to do next: what is nearest to its end, and of that the newest."""
        state = self._state
        with state.change:
            while state.left > 0:
                if state.ready:
                    return state.ready.pop()
                if state.finished:
                    return state.finished.pop()
                if state.todo and self._has_room():
                    state.reading += 1
                    state.flying += 1
                    return state.todo.popleft()
                if not state.reading and self._close_all():
                    continue
                state.change.wait()
        return None

    def _has_room(self) -> bool:
        state = self._state
        return state.nbytes < self._budget() or state.flying < self._jobs

    def _budget(self) -> int:
        return self._jobs * _WORKER_NBYTES + _DEVICE_NBYTES[self._kind()]

    def _kind(self) -> str:
        engine = self._stage.ready()
        return engine.device.kind if engine is not None else "cpu"

    def _close_all(self) -> bool:
        """Send off whatever batches are open: nothing more can join them now."""
        state = self._state
        batches = [batch for batch in state.open.values() if not batch.decoding]
        for batch in batches:
            self._close(batch)
        return bool(batches)

    def _close(self, batch: Batch) -> None:
        """Take a batch out of the open ones; it goes off once its decoders are through."""
        state = self._state
        state.open = {key: other for key, other in state.open.items() if other is not batch}
        batch.closed = True
        if not batch.decoding:
            self._submit(batch)

    def _submit(self, batch: Batch) -> None:
        if batch.slots:
            self._state.ready.append(batch)
            self._state.change.notify_all()

    def _decode(self, job: Job) -> None:
        album = batch = None
        try:
            with self._timed("read", job) as moved:
                data = read_file(job.input)
                moved.append(len(data))
            album = self._examine(job, data)
            pictures = album.pictures(data, self._chain, self._max_pixels)
            while (picture := self._next_picture(job, pictures)) is not None:
                batch, slot = self._reserve(album, picture)
                with self._timed("decode", job, slot.plan.source.nbytes):
                    album.read(picture, batch.array(slot))
                self._filled(batch, None)
                batch = None
        except (CvcliError, MemoryError) as error:
            self._fail(job, _as_error(error), album)
            if batch is not None:
                self._filled(batch, album)
        with self._state.change:
            self._state.reading -= 1
            self._state.change.notify_all()

    def _examine(self, job: Job, data: bytes) -> Album:
        header = codecs.probe(data, self._max_pixels)
        size = {"width": header.spec.width, "height": header.spec.height}
        self._report.opened(job.index, **size, bytes_in=len(data))
        return Album.opened(job, data, header, self._options.care)

    def _next_picture(self, job: Job, pictures: Iterator[Picture]) -> Picture | None:
        with self._timed("decode", job):
            picture = next(pictures, None)
        if picture is not None and picture.plan.target.nbytes > self._memory:
            target = picture.plan.target
            raise ImageError(f"the result, {target}, is larger than the memory there is")
        return picture

    def _reserve(self, album: Album, picture: Picture) -> tuple[Batch, Slot]:
        fresh = None
        while (place := self._place(album, picture, fresh)) is None:
            # Page-locking memory is slow, so the others go on meanwhile.
            fresh = self._new_batch(picture.plan.source)
        return place

    def _place(
        self, album: Album, picture: Picture, fresh: Batch | None
    ) -> tuple[Batch, Slot] | None:
        """Reserve a slot in the open batch of the image's kind, or in a fresh one."""
        source = picture.plan.source
        state, key = self._state, (source.dtype, source.channels)
        with state.change:
            batch = state.open.get(key)
            if batch is None or not batch.has_room(source):
                if fresh is None:
                    return None
                if batch is not None:
                    self._close(batch)
                batch = state.open[key] = fresh
            if album.failed:
                raise ImageError("another of its pictures failed")
            slot = batch.reserve(album, picture)
            album.nbytes += slot.nbytes
            state.nbytes += slot.nbytes
            if not batch.has_room(source):
                self._close(batch)
            return batch, slot

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
        return Batch(arena, limit or 1 << 30)

    def _filled(self, batch: Batch, failed: Album | None) -> None:
        """Note that a decoder is through with a batch; a failed image gives its slot up."""
        state = self._state
        with state.change:
            batch.decoding -= 1
            batch.slots = [slot for slot in batch.slots if slot.album is not failed]
            if batch.closed and not batch.decoding:
                self._submit(batch)

    def _deliver(self, done: Done) -> None:
        if done.buffer is None:
            for slot in done.slots:
                self._fail(slot.job, ImageError(done.error or "failed"), slot.album)
            return
        state = self._state
        with state.change:
            for slot, placed in zip(done.slots, done.placed, strict=True):
                state.finished.append(_Finished(slot, done.buffer, placed, done.device))
            state.change.notify_all()

    def _encode(self, item: _Finished) -> None:
        album, image = item.slot.album, array_at(item.buffer, item.placed)
        with self._state.change:
            if album.failed or not album.add(item.slot.picture, image):
                return
        job, target = album.job, album.target
        try:
            with self._timed("encode", job, album.out_nbytes):
                data = album.encoded(self._options.quality)
            with self._timed("write", job, len(data)):
                write_atomic(job.output, data, overwrite=self._options.overwrite)
        except (CvcliError, MemoryError) as error:
            self._fail(job, _as_error(error), album)
            return
        for note in album.notes:
            self._report.note(job.index, note)
        size = {"width": target.width, "height": target.height}
        self._report.finish(job.index, **size, bytes_out=len(data), device=item.device)
        self._leave(album)

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
        self._leave(album)
        if self._options.fail_fast:
            self._stop(discard=False)

    def _leave(self, album: Album | None) -> None:
        state = self._state
        with state.change:
            state.left -= 1
            state.flying -= 1
            state.nbytes -= album.nbytes if album is not None else 0
            state.change.notify_all()

    def _abort(self, error: BaseException) -> None:
        """End the run with an error that is not one image's own."""
        with self._state.change:
            self._state.error = self._state.error or error
        self._stop(discard=True)

    def _stop(self, *, discard: bool) -> None:
        """Start no more images; with ``discard`` also drop those not yet written."""
        state = self._state
        with state.change:
            state.left -= len(state.todo)
            state.todo.clear()
            if discard:
                state.left = 0
                state.finished.clear()
                state.ready.clear()
            state.change.notify_all()

    @contextmanager
    def _timed(self, stage: str, job: Job, nbytes: int = 0) -> Iterator[list[int]]:
        moved = [nbytes] if nbytes else []
        begin = time.perf_counter()
        yield moved
        self._report.add_busy(stage, time.perf_counter() - begin, sum(moved), index=job.index)


def _as_error(error: CvcliError | MemoryError) -> CvcliError:
    return error if isinstance(error, CvcliError) else ImageError("not enough memory")


def run(
    plan: Plan,
    chain: Chain,
    options: Options,
    report: Report,
    tick: Callable[[Report], None] = lambda report: None,
) -> None:
    """Run a chain over a plan; the report says what became of each image.

    Raises `DeviceError` if the device can't be used, and `ParameterError` if the chain suits none
    of the images; then nothing has been written.
    """
    if options.fail_fast and report.failed:
        return
    max_pixels = options.max_pixels or codecs.DEFAULT_MAX_PIXELS
    threads = options.jobs or cpu_threads()
    plan = check_inputs(plan, chain, report, threads, max_pixels, options.care.auto_orient)
    if options.fail_fast and report.failed:
        return
    with few_collections():
        _run(plan, chain, options, report, tick)


def _run(
    plan: Plan, chain: Chain, options: Options, report: Report, tick: Callable[[Report], None]
) -> None:
    for folder in sorted({os.fspath(job.output.parent) for job in plan.jobs}):
        remove_stale(Path(folder))
    Runner(plan, chain, options, report).run(tick)
    report.close()

"""Run a plan: decode, device and encode stages that overlap, bounded in bytes.

One pool of workers both decodes and encodes, and on the CPU runs the chain. It takes what is
nearest to its end first, so memory drains before more is filled, no side starves whatever the
codecs cost, and an image is still in the caches at its next step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import cvcli.codecs as codecs
from cvcli.batch.album import Album, Picture
from cvcli.batch.check import check_inputs
from cvcli.batch.crew import Crew
from cvcli.batch.device import DeviceStage, Done, check_codec
from cvcli.batch.garbage import few_collections
from cvcli.batch.interrupt import ending_at_once_if_interrupted_again
from cvcli.batch.jobs import folders_of
from cvcli.batch.lossless import moved, moved_nbytes, opened
from cvcli.batch.options import Ends, Options
from cvcli.batch.plan import Job, Plan
from cvcli.batch.report import Report, warnings_of
from cvcli.batch.rooms import Rooms
from cvcli.batch.sinks import FileSink
from cvcli.batch.slots import ON_CPU, Batch, Slot, Way
from cvcli.batch.sources import Files
from cvcli.batch.state import Finished, NoRoom, State, Undone
from cvcli.batch.storage import storage_of
from cvcli.batch.timed import Timed
from cvcli.batch.ways import reason_of, way_of
from cvcli.core.chain import Chain
from cvcli.core.turn import Turn
from cvcli.devices import open_device
from cvcli.devices.cpu import cpu_threads
from cvcli.errors import CvcliError, ImageError

if TYPE_CHECKING:
    from cvcli.batch.album import Pixels
    from cvcli.batch.feed import Feed
    from cvcli.codecs import Parts

__all__ = ["Ends", "Options", "Runner", "run"]

# From how many files on the GPU's codecs are taken unasked; None: never. It goes by the whole plan,
# so that the rest of a run that was interrupted is done as the run was.
_MANY: int | None = None


class Runner:
    """One run of a chain over a plan's jobs; `run` is the way in."""

    def __init__(
        self, plan: Plan, chain: Chain, options: Options, report: Report, ends: Ends
    ) -> None:
        self._chain, self._options, self._report, self._ends = chain, options, report, ends
        self._jobs = options.jobs or cpu_threads()
        count = len(plan.jobs) if ends.feed is None else self._jobs
        self._crew = Crew(
            self._work, max(1, min(self._jobs, count)), cpu_threads(), steered=options.jobs is None
        )
        self._rooms = Rooms(self._jobs, options, lambda: self._stage)
        self._state = State(
            plan.jobs,
            self._jobs,
            ends.sink,
            self._rooms.budget,
            options.max_memory,
            more=ends.feed is not None,
        )
        self._memory = open_device("cpu").memory_info()[1]
        self._max_pixels = options.max_pixels or codecs.DEFAULT_MAX_PIXELS
        few = ends.feed is not None or _MANY is None or len(plan.whole or plan) < _MANY
        self._on_cpu: set[int] = set()  # what the GPU's codecs have given up
        self._stage = DeviceStage(
            options.device,
            "cpu" if options.codec == "auto" and few else options.codec,
            options.streams,
            report,
            self._deliver,
            self._state.undone,
            self._abort,
        )

    def run(self, tick: Callable[[Report], None]) -> None:
        """Run to the end; ``tick`` is called now and then from the calling thread."""
        if self._ends.feed is not None:
            # Never waited for: it may be waiting itself, for input that doesn't come.
            threading.Thread(target=self._feed, args=(self._ends.feed,), daemon=True).start()
        try:
            self._crew.start()
            self._watch(tick)
        except BaseException:
            self._stop(discard=True)
            with ending_at_once_if_interrupted_again():
                self._end()
            raise
        self._end()
        if self._state.error is not None:
            raise self._state.error

    def _end(self) -> None:
        self._crew.join()
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
            with state.ended:
                if state.ended.wait_for(lambda: state.is_over, timeout=0.1):
                    return
            tick(self._report)
            self._crew.look(state.unstarted)

    def _work(self) -> None:
        try:
            while not self._crew.leaves() and (task := self._state.next()) is not None:
                if isinstance(task, Finished):
                    self._encode(task)
                elif isinstance(task, Batch):
                    self._stage.submit(task)
                elif isinstance(task, Undone):
                    self._decode_again(task)
                else:
                    self._decode(task)
                del task
        except BaseException as error:
            self._abort(error)

    def _decode(self, job: Job) -> None:
        album = None
        self._report.begin(job)
        try:
            with self._timed("read", job) as moved:
                data = self._ends.source.read(job)
                moved.append(len(data))
            album = self._examine(job, data)
            if album.turn is not None:
                self._move(album, album.turn, data)
            pictures = album.pictures(data, self._chain, self._max_pixels)
            while (picture := self._next_picture(job, pictures)) is not None:
                self._fill(album, picture, data, self._way(album, picture, data))
        except NoRoom:
            if album is not None:
                self._state.put_back(album)
        except (CvcliError, MemoryError) as error:
            self._fail(job, _as_error(error), album)
        self._state.was_read()

    def _decode_again(self, task: Undone) -> None:
        slot, album = task.slot, task.slot.album
        self._on_cpu.add(slot.job.index)
        self._report.note(slot.job.index, f"decoded on the CPU: {task.reason}")
        try:
            self._fill(album, slot.picture, slot.way.data or b"", Way(None, slot.way.recipe))
        except NoRoom:
            self._state.put_back(album)
        except (CvcliError, MemoryError) as error:
            self._fail(slot.job, _as_error(error), album)
        self._state.was_read()

    def _way(self, album: Album, picture: Picture, data: bytes) -> Way:
        if not self._stage.coded or album.job.index in self._on_cpu:
            return ON_CPU
        way = way_of(album, picture, data, self._options.quality)
        if way.data is None and self._options.codec == "gpu":
            note = f"decoded on the CPU: {reason_of(album, picture, data)}"
            self._report.note(album.job.index, note)
        return way

    def _fill(self, album: Album, picture: Picture, data: bytes, way: Way) -> None:
        """Find a picture's place and, unless the GPU is to, decode it there."""
        batch, slot = self._reserve(album, picture, way)
        try:
            if way.data is None:
                with self._timed("decode", album.job, slot.plan.source.nbytes):
                    self._read(album, picture, data, batch.array(slot))
        except BaseException:
            self._state.filled(batch, album)
            raise
        self._state.filled(batch, None)

    def _examine(self, job: Job, data: bytes) -> Album:
        header = codecs.probe(data, self._max_pixels)
        size = {"width": header.spec.width, "height": header.spec.height}
        self._report.opened(job.index, **size, bytes_in=len(data))
        options = self._options
        return opened(job, data, header, options.care, self._chain, options.fail_on)

    def _move(self, album: Album, turn: Turn, data: bytes) -> None:
        nbytes = moved_nbytes(album.header)
        self._state.hold(album, nbytes)
        self._write(album, "transcode", lambda: [(moved(album, turn, data),)], nbytes, "cpu")

    def _read(self, album: Album, picture: Picture, data: bytes, out: Pixels) -> None:
        """Decode, as far as the file goes if it is to be taken for what it is."""
        try:
            album.read(picture, out)
        except ImageError as error:
            if not album.tolerates(error):
                raise ImageError(str(error), error.tip or album.lenient_tip) from error
            if not codecs.salvage(data, picture.header, out):
                raise ImageError(f"{error}; nothing of it can be kept") from error
            picture.read = None
            album.read(picture, out)
            self._report.note(album.job.index, f"{error}; what there is of it was kept")

    def _next_picture(self, job: Job, pictures: Iterator[Picture]) -> Picture | None:
        with self._timed("decode", job):
            picture = next(pictures, None)
        if picture is not None and picture.plan.target.nbytes > self._memory:
            target = picture.plan.target
            raise ImageError(f"the result, {target}, is larger than the memory there is")
        return picture

    def _reserve(self, album: Album, picture: Picture, way: Way) -> tuple[Batch, Slot]:
        fresh = None
        while (place := self._state.place(album, picture, fresh, way)) is None:
            # Page-locking memory is slow, so the others go on meanwhile.
            fresh = self._rooms.new_batch(picture.plan.source, way)
        return place

    def _deliver(self, done: Done) -> None:
        if done.codes is not None:
            pairs = zip(done.slots, done.codes, strict=True)
            self._state.finished(Finished(s, None, s.placed, done.device, c) for s, c in pairs)
            return
        if done.buffer is None:
            for slot in done.slots:
                self._fail(slot.job, ImageError(done.error or "failed"), slot.album)
            return
        self._state.finished(
            Finished(slot, done.buffer, placed, done.device)
            for slot, placed in zip(done.slots, done.placed, strict=True)
        )

    def _encode(self, item: Finished) -> None:
        album, image = item.slot.album, item.result()
        with self._state.change:
            if album.failed or not album.add(item.slot.picture, image):
                return
        quality = self._options.quality
        self._write(album, "encode", lambda: album.encoded(quality), album.out_nbytes, item.device)

    def _write(
        self, album: Album, stage: str, make: Callable[[], list[Parts]], nbytes: int, device: str
    ) -> None:
        job, target = album.written, album.target
        try:
            album.notes += self._ends.sink.doubts(job)
            self._refuse_notes(album)
            with self._timed(stage, job, nbytes):
                files = make()
            self._refuse_notes(album)
            nbytes = sum(len(part) for file in files for part in file)
            with self._timed("write", job, nbytes):
                self._ends.sink.put(job, files, self._ends.source.stamp(job))
        except (CvcliError, MemoryError) as error:
            self._fail(job, _as_error(error), album)
            return
        for note in album.notes:
            self._report.note(job.index, note)
        size = {"width": target.width, "height": target.height}
        told = {"bytes_out": nbytes, "outputs": len(job.outputs)}
        self._report.finish(job.index, **size, **told, device=device)
        self._leave(job, album)

    def _fail(self, job: Job, error: CvcliError, album: Album | None = None) -> None:
        if album is not None:
            with self._state.change:
                if album.failed:
                    return
                album.failed = True
                album.done.clear()
        message = str(error)
        named = any(str(path) in message for path in (job.input, *job.outputs))
        self._report.fail(job.index, message if named else f"{job.input}: {message}", error.tip)
        self._ends.sink.lost(job)
        self._leave(job, album)
        if self._report.failed >= self._options.most_failures:
            self._stop(discard=False)

    def _refuse_notes(self, album: Album) -> None:
        """Raise `ImageError` if a warning is to count as a failure and there is one."""
        noted = [*self._report.row(album.job.index).notes, *album.notes]
        notes = warnings_of(noted)
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
            if not discard:
                # One that was put back has been started, and others wait behind it.
                self._ends.sink.lost(job)

    def _timed(self, stage: str, job: Job, nbytes: int = 0) -> Timed:
        waiting = self._crew.waiting if stage in ("read", "write") else None
        return Timed(self._report, stage, job.index, [nbytes] if nbytes else [], waiting)


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
    check_codec(options.codec, options.device)
    max_pixels = options.max_pixels or codecs.DEFAULT_MAX_PIXELS
    threads = options.jobs or cpu_threads()
    care = options.care
    looks = care.auto_orient, care.frame, care.lossless
    plan = check_inputs(plan, chain, report, threads, max_pixels, *looks)
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
    ends.sink.begin(plan)
    if isinstance(ends.sink, FileSink):
        for folder in folders_of(plan.jobs):
            storage_of(folder).remove_stale(folder)
    Runner(plan, chain, options, report, ends).run(tick)
    if not report.left and (ends.feed is None or ends.feed.complete):
        ends.sink.close()
    report.close()

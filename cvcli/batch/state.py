"""What the workers of a run share: what there is to do, and what is in flight, counted in bytes.

Every method takes the lock itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from cvcli.batch.album import Album, Picture
from cvcli.batch.plan import Job
from cvcli.batch.sinks import Sink
from cvcli.batch.slots import ON_CPU, Batch, Slot, Way, array_at, slot_nbytes
from cvcli.core.images import Placed
from cvcli.core.memory import Buffer
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.batch.album import Pixels

# Encoded images that wait for an earlier one before no more are started.
_HELD_NBYTES = 64 << 20
_PATIENCE_S = 0.25


@dataclass(slots=True)
class Finished:
    """One picture ready to be encoded, or to be written if there is its ``code`` already."""

    slot: Slot
    buffer: Buffer | None
    placed: Placed
    device: str
    code: memoryview | None = None

    def result(self) -> Pixels | memoryview:
        """The pixels (height, width, channels), or the file."""
        if self.buffer is None:
            assert self.code is not None
            return self.code
        return array_at(self.buffer, self.placed)


@dataclass(slots=True)
class Undone:
    """One picture that the GPU's codecs could not do, so the CPU's must."""

    slot: Slot
    reason: str


class NoRoom(Exception):
    """An image has to wait until others have left memory."""


class _Todo:
    """Jobs to be started, in order; they are made when it is their turn."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._left, self._later = len(jobs), iter(jobs)
        self._next: deque[Job] = deque()

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Iterator[Job]:
        return chain(self._next, self._later)

    @property
    def first(self) -> Job:
        """The next job."""
        if not self._next:
            self._next.append(next(self._later))
        return self._next[0]

    def take(self) -> Job:
        """Return the next job and let go of it."""
        job = self.first
        self._next.popleft()
        self._left -= 1
        return job

    def append(self, job: Job) -> None:
        """Take one more; only where none were given at the start."""
        self._next.append(job)
        self._left += 1

    def put_back(self, job: Job) -> None:
        """Take a job back, to be the next."""
        self._next.appendleft(job)
        self._left += 1


class State:
    """The queues of a run. ``budget`` gives the bytes that may be in flight before no more images
    are started; ``limit``, where there is one, is never passed by images together."""

    def __init__(
        self,
        jobs: Sequence[Job],
        workers: int,
        sink: Sink,
        budget: Callable[[], int],
        limit: int | None,
        *,
        more: bool,
    ) -> None:
        lock = threading.RLock()
        # Each piece of work wakes one worker: all of them would fight for the lock in vain.
        self.change, self.ended = threading.Condition(lock), threading.Condition(lock)
        self.error: BaseException | None = None
        self._todo = _Todo(jobs)
        self._left = len(jobs)
        self._more = more
        self._stopped = False
        self._workers, self._sink, self._budget, self._limit = workers, sink, budget, limit
        self._ready: deque[Batch] = deque()
        self._finished: deque[Finished] = deque()
        self._undone: deque[Undone] = deque()
        self._open: dict[tuple[object, ...], Batch] = {}
        self._needs: dict[int, int] = {}
        self._reading = self._flying = self._nbytes = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do, now or later."""
        return self._left <= 0 and not self._more

    @property
    def unstarted(self) -> int:
        """Jobs that wait to be started."""
        return len(self._todo)

    def add(self, job: Job) -> bool:
        """Take one more job, unless the run has been stopped."""
        with self.change:
            if not self._stopped:
                self._todo.append(job)
                self._left += 1
                self.change.notify()
            return not self._stopped

    def no_more(self) -> None:
        """Note that no job is to be added."""
        with self.change:
            self._more = False
            self._tell_all()

    def _tell_all(self) -> None:
        self.change.notify_all()
        self.ended.notify_all()

    def next(self) -> Finished | Batch | Undone | Job | None:
        """Return what to do next: what is nearest to its end, and of that the newest."""
        with self.change:
            while not self.is_over:
                if (task := self._take()) is not None:
                    if self._has_work():
                        self.change.notify()
                    return task
                if not self._reading and self._close_all():
                    continue
                # Whoever makes work tells of it; the time limit is for what nobody foresaw.
                self.change.wait(_PATIENCE_S)
        return None

    def _take(self) -> Finished | Batch | Undone | Job | None:
        if self._ready:
            return self._ready.pop()
        if self._finished:
            return self._finished.pop()
        if self._undone:
            self._reading += 1
            return self._undone.pop()
        if self._todo and self._has_room(self._todo.first):
            return self._start(self._todo.take())
        return None

    def _has_work(self) -> bool:
        if self._ready or self._finished or self._undone:
            return True
        return bool(self._todo) and self._has_room(self._todo.first)

    def _start(self, job: Job) -> Job:
        self._reading += 1
        self._flying += 1
        if job.index not in self._needs:
            self._sink.started(job)
        return job

    def _has_room(self, job: Job) -> bool:
        if not self._flying:
            return True
        need = self._needs.get(job.index)
        if need is not None and self._limit is not None:
            return self._nbytes + need <= self._limit
        if self._sink.held >= _HELD_NBYTES:
            return False
        return self._nbytes < self._budget() or (
            self._limit is None and self._flying < self._workers
        )

    def _close_all(self) -> bool:
        """Send off whatever batches are open: nothing more can join them now."""
        batches = [batch for batch in self._open.values() if not batch.decoding]
        for batch in batches:
            self._close(batch)
        return bool(batches)

    def _close(self, batch: Batch) -> None:
        """Take a batch out of the open ones; it goes off once its decoders are through."""
        self._open = {key: other for key, other in self._open.items() if other is not batch}
        batch.closed = True
        if not batch.decoding:
            self._submit(batch)

    def _submit(self, batch: Batch) -> None:
        if batch.slots:
            self._ready.append(batch)
            self.change.notify()

    def place(
        self, album: Album, picture: Picture, fresh: Batch | None, way: Way = ON_CPU
    ) -> tuple[Batch, Slot] | None:
        """Reserve a slot in the open batch of the picture's kind and way, or in a fresh one.

        None asks for a fresh one. `NoRoom` sends the job back to wait; `ImageError` says that it
        would be too large even alone.
        """
        source = picture.plan.source
        key = source.dtype, source.channels, source.planar, way.data is None
        with self.change:
            self._refuse_too_much(album, slot_nbytes(picture.plan, way))
            batch = self._open.get(key)
            if batch is None or not batch.has_room(source):
                if fresh is None:
                    return None
                if batch is not None:
                    self._close(batch)
                batch = self._open[key] = fresh
            if album.failed:
                raise ImageError("another of its pictures failed")
            slot = batch.reserve(album, picture, way)
            album.nbytes += slot.nbytes
            self._nbytes += slot.nbytes
            if not batch.has_room(source):
                self._close(batch)
            return batch, slot

    def hold(self, album: Album, nbytes: int) -> None:
        """Count memory that a file takes on its way outside batches; raises as `place`."""
        with self.change:
            self._refuse_too_much(album, nbytes)
            album.nbytes += nbytes
            self._nbytes += nbytes

    def _refuse_too_much(self, album: Album, more: int) -> None:
        if self._limit is None:
            return
        need = album.nbytes + more
        if need > self._limit:
            raise ImageError(
                f"takes {need / 1e6:.1f} MB of memory, more than the limit of "
                f"{self._limit / 1e6:.1f} MB",
                tip="raise the limit with --max-memory",
            )
        if self._nbytes + more > self._limit:
            # Of a file with several pictures it isn't known what the others will take.
            self._needs[album.job.index] = need if album.expected == 1 else self._limit
            raise NoRoom

    def put_back(self, album: Album) -> None:
        """Let a file wait, ahead of all others, until there is room for it."""
        with self.change:
            album.failed = True  # what was read of it so far is dropped on its way
            album.done.clear()
            self._todo.put_back(album.job)
            self._flying -= 1
            self._nbytes -= album.nbytes
            self._close_all()
            self._tell_all()

    def filled(self, batch: Batch, failed: Album | None) -> None:
        """Note that a decoder is through with a batch; a failed image gives its slot up."""
        with self.change:
            batch.decoding -= 1
            batch.slots = [slot for slot in batch.slots if slot.album is not failed]
            if batch.closed and not batch.decoding:
                self._submit(batch)

    def was_read(self) -> None:
        """Note that a worker is through with a file's pictures."""
        with self.change:
            self._reading -= 1
            if not self._reading:
                self.change.notify()

    def finished(self, items: Iterable[Finished]) -> None:
        """Take images whose pixels or files are ready."""
        with self.change:
            before = len(self._finished)
            self._finished.extend(items)
            self.change.notify(len(self._finished) - before)

    def undone(self, items: Iterable[Undone]) -> None:
        """Take images back that are to be decoded anew, on the CPU."""
        with self.change:
            before = len(self._undone)
            self._undone.extend(items)
            for item in list(self._undone)[before:]:
                album, nbytes = item.slot.album, item.slot.nbytes
                # The bytes of a failed one have left with it.
                if not album.failed:
                    album.nbytes -= nbytes
                    self._nbytes -= nbytes
            self.change.notify(len(self._undone) - before)

    def leave(self, album: Album | None) -> None:
        """Note that a file is done, or failed for good."""
        with self.change:
            self._left -= 1
            self._flying -= 1
            self._nbytes -= album.nbytes if album is not None else 0
            self.change.notify()
            if self.is_over:
                self._tell_all()

    def stop(self, *, discard: bool) -> Iterable[Job]:
        """Start no more images; with ``discard`` also drop those not yet written.

        Returns the jobs that were not started.
        """
        with self.change:
            dropped, self._todo = self._todo, _Todo(())
            self._left -= len(dropped)
            self._stopped, self._more = True, False
            if discard:
                self._left = 0
                self._finished.clear()
                self._undone.clear()
                self._ready.clear()
            self._tell_all()
        return dropped

"""Where encoded images go: into files, into a pipe, or beside what is there to be compared."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from itertools import compress
from pathlib import Path

from cvcli.batch.files import Stamp, keep_backup, refuse_changed
from cvcli.batch.leftovers import Leftovers
from cvcli.batch.places import Place
from cvcli.batch.plan import Job, Plan
from cvcli.batch.storage import storage_of
from cvcli.codecs import Parts
from cvcli.errors import ImageError

_BLOCK = 512


class Sink:
    """Takes images from many threads at once; each started job is either put or lost."""

    held = 0
    """Bytes that wait for an earlier image."""
    _leftovers: Leftovers | None = None

    def started(self, job: Job) -> None:
        """Note a job, in the order that outputs are to have."""

    def put(self, job: Job, files: Sequence[Parts], stamp: Stamp | None) -> None:
        """Take a file for each output of a job, for now; `ImageError` if they can't be kept."""
        raise NotImplementedError

    def begin(self, plan: Plan) -> None:
        """Note what is run."""
        self._leftovers = Leftovers(plan)

    def doubts(self, job: Job) -> list[str]:
        """Return what is odd about the place that a job's files are to go to."""
        return []

    def lost(self, job: Job) -> None:
        """Note that a job has no output."""

    def close(self) -> None:
        """End what was written; called only when every input was seen."""


class FileSink(Sink):
    """Writes files, each whole or not at all.

    ``in_place`` is for outputs that are their inputs: they must still be what was read, and with
    ``backup`` they are kept under their name with that suffix. With ``resumes`` those of a job
    that are there stay, and the others join them.
    """

    def __init__(
        self,
        *,
        overwrite: bool = False,
        preserve: bool = False,
        in_place: bool = False,
        backup: str | None = None,
        resumes: bool = False,
    ) -> None:
        self._overwrite, self._preserve = overwrite, preserve
        self.in_place, self._backup, self._resumes = in_place, backup, resumes

    def put(self, job: Job, files: Sequence[Parts], stamp: Stamp | None) -> None:
        if self.in_place and stamp is not None:
            refuse_changed(Path(job.output), stamp)
            if self._backup is not None:
                keep_backup(Path(job.output), Path(f"{job.output}{self._backup}"))
        kept = stamp if self._preserve else None
        pairs = list(zip(job.outputs, files, strict=True))
        if self._resumes and job.more:
            there = storage_of(job.output).statuses(map(os.fspath, job.outputs))
            missing = [status is None or isinstance(status, OSError) for status in there]
            pairs = list(compress(pairs, missing))
        self._write(pairs, kept)

    def doubts(self, job: Job) -> list[str]:
        return self._leftovers.told(job) if self._leftovers else []

    def _write(self, files: Sequence[tuple[Place, Parts]], stamp: Stamp | None) -> None:
        if files:
            storage = storage_of(files[0][0])
            storage.write_together(files, overwrite=self._overwrite, stamp=stamp)

    def repeatable(self) -> FileSink:
        """Return one for work that may be done again."""
        return RepeatedSink(
            overwrite=self._overwrite, preserve=self._preserve, resumes=self._resumes
        )


class RepeatedSink(FileSink):
    """Takes outputs that are there already for done if they are the very ones to be written."""

    def _write(self, files: Sequence[tuple[Place, Parts]], stamp: Stamp | None) -> None:
        try:
            super()._write(files, stamp)
        except ImageError:
            if self._overwrite:
                raise
            left = [(output, parts) for output, parts in files if not _holds(output, parts)]
            if len(left) == len(files):
                raise
            super()._write(left, stamp)


def _holds(output: Place, parts: Parts) -> bool:
    try:
        return storage_of(output).read(output, stamped=False)[0] == b"".join(parts)
    except ImageError:
        return False


class CheckSink(Sink):
    """Writes nothing: an output must be there and show the same pixels."""

    def doubts(self, job: Job) -> list[str]:
        return self._leftovers.told(job) if self._leftovers else []

    def put(self, job: Job, files: Sequence[Parts], stamp: Stamp | None) -> None:
        from cvcli.batch.compare import difference

        for output, parts in zip(job.outputs, files, strict=True):
            data, (there, _) = b"".join(parts), storage_of(output).read(output, stamped=False)
            found = None if there == data else difference(data, there)
            if found is not None:
                raise ImageError(f"{output}: {found}")


class PipeSink(Sink):
    """Writes one image to a file descriptor, and nothing if it fails."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def put(self, job: Job, files: Sequence[Parts], stamp: Stamp | None) -> None:
        for file in files:
            for part in file:
                write_all(self._descriptor, part)


class TarSink(Sink):
    """Streams images as a tar, in the order they were started, whichever is done first.

    Members have the modification time of their inputs, so equal runs give equal bytes. The end
    is marked only by `close`: whoever reads a stream that broke off can tell.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._order: deque[int] = deque()
        self._waiting: dict[int, bytes | None] = {}

    def started(self, job: Job) -> None:
        with self._lock:
            self._order.append(job.index)

    def put(self, job: Job, files: Sequence[Parts], stamp: Stamp | None) -> None:
        named = zip(job.outputs, files, strict=True)
        members = [_member(output, b"".join(parts), stamp) for output, parts in named]
        self._settle(job, b"".join(members))

    def lost(self, job: Job) -> None:
        self._settle(job, None)

    def _settle(self, job: Job, member: bytes | None) -> None:
        with self._lock:
            self._waiting[job.index] = member
            self.held += len(member or b"")
            while self._order and self._order[0] in self._waiting:
                ready = self._waiting.pop(self._order.popleft())
                if ready is not None:
                    self.held -= len(ready)
                    write_all(self._descriptor, ready)

    def close(self) -> None:
        write_all(self._descriptor, bytes(2 * _BLOCK))


def _member(output: Place, data: bytes, stamp: Stamp | None) -> bytes:
    import tarfile

    info = tarfile.TarInfo(os.fspath(output))
    info.size = len(data)
    info.mtime = stamp.mtime_ns // 10**9 if stamp else 0
    info.mode = 0o644 if stamp is None else stamp.mode & 0o777
    head = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    return head + data + bytes(-len(data) % _BLOCK)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write everything to a file descriptor, however little it takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

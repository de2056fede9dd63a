"""Where encoded images go: into files, into a pipe, or beside what is there to be compared."""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path

from cvcli.batch.files import Stamp, keep_backup, refuse_changed
from cvcli.batch.plan import Job
from cvcli.batch.storage import storage_of
from cvcli.errors import ImageError

_BLOCK = 512


class Sink:
    """Takes images from many threads at once; each started job is either put or lost."""

    held = 0
    """Bytes that wait for an earlier image."""

    def started(self, job: Job) -> None:
        """Note a job, in the order that outputs are to have."""

    def put(self, job: Job, data: bytes, stamp: Stamp | None) -> None:
        """Take an image's file; `ImageError` if it can't be kept."""
        raise NotImplementedError

    def lost(self, job: Job) -> None:
        """Note that a job has no output."""

    def close(self) -> None:
        """End what was written; called only when every input was seen."""


class FileSink(Sink):
    """Writes files, each whole or not at all.

    ``in_place`` is for outputs that are their inputs: they must still be what was read, and with
    ``backup`` they are kept under their name with that suffix.
    """

    def __init__(
        self,
        *,
        overwrite: bool = False,
        preserve: bool = False,
        in_place: bool = False,
        backup: str | None = None,
    ) -> None:
        self._overwrite, self._preserve = overwrite, preserve
        self.in_place, self._backup = in_place, backup

    def put(self, job: Job, data: bytes, stamp: Stamp | None) -> None:
        if self.in_place and stamp is not None:
            refuse_changed(Path(job.output), stamp)
            if self._backup is not None:
                keep_backup(Path(job.output), Path(f"{job.output}{self._backup}"))
        kept = stamp if self._preserve else None
        storage = storage_of(job.output)
        storage.write(job.output, data, overwrite=self._overwrite, stamp=kept)

    def repeatable(self) -> FileSink:
        """Return one for work that may be done again."""
        return RepeatedSink(overwrite=self._overwrite, preserve=self._preserve)


class RepeatedSink(FileSink):
    """Takes an output that is there already for done if it is the very one to be written."""

    def put(self, job: Job, data: bytes, stamp: Stamp | None) -> None:
        try:
            super().put(job, data, stamp)
        except ImageError:
            if self._overwrite or not _holds(job, data):
                raise


def _holds(job: Job, data: bytes) -> bool:
    try:
        return storage_of(job.output).read(job.output, stamped=False)[0] == data
    except ImageError:
        return False


class CheckSink(Sink):
    """Writes nothing: an output must be there and show the same pixels."""

    def put(self, job: Job, data: bytes, stamp: Stamp | None) -> None:
        from cvcli.batch.compare import difference

        there, _ = storage_of(job.output).read(job.output, stamped=False)
        found = None if there == data else difference(data, there)
        if found is not None:
            raise ImageError(f"{job.output}: {found}")


class PipeSink(Sink):
    """Writes one image to a file descriptor, and nothing if it fails."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def put(self, job: Job, data: bytes, stamp: Stamp | None) -> None:
        write_all(self._descriptor, data)


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

    def put(self, job: Job, data: bytes, stamp: Stamp | None) -> None:
        import tarfile

        info = tarfile.TarInfo(os.fspath(job.output))
        info.size = len(data)
        info.mtime = stamp.mtime_ns // 10**9 if stamp else 0
        info.mode = 0o644 if stamp is None else stamp.mode & 0o777
        head = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        self._settle(job, head + data + bytes(-len(data) % _BLOCK))

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


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything to a file descriptor, however little it takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

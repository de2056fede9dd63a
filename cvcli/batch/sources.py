"""Where the bytes of an input come from: a file, or memory for what came through a pipe."""

from __future__ import annotations

import threading

from cvcli.batch.files import Stamp
from cvcli.batch.plan import Job
from cvcli.batch.storage import storage_of


class Files:
    """Inputs that are files; used by many threads at once.

    Without ``stamped`` nothing but the bytes is kept of what would have to be asked for.
    """

    def __init__(self, *, stamped: bool = False) -> None:
        self._stamps: dict[int, Stamp] = {}
        self._stamped = stamped

    def read(self, job: Job) -> bytes:
        """Return an input's bytes; `ImageError` says why there are none."""
        data, stamp = storage_of(job.input).read(job.input, stamped=self._stamped)
        if stamp is not None:
            self._stamps[job.index] = stamp
        return data

    def stamp(self, job: Job) -> Stamp | None:
        """Return what an input had besides its bytes, once it was read."""
        return self._stamps.get(job.index)

    def done(self, job: Job) -> None:
        """Forget an input: it is not asked for again."""
        self._stamps.pop(job.index, None)


class Held(Files):
    """Inputs held in memory from when they come until they are done, for whoever else waits."""

    def __init__(self) -> None:
        super().__init__()
        self._data: dict[int, bytes] = {}
        self._change = threading.Condition()
        self._nbytes = 0

    def hold(self, index: int, data: bytes, stamp: Stamp) -> None:
        """Keep an input's bytes."""
        with self._change:
            self._data[index], self._stamps[index] = data, stamp
            self._nbytes += len(data)

    def wait_for_room(self, limit: int) -> None:
        """Wait until less than ``limit`` bytes are held."""
        with self._change:
            self._change.wait_for(lambda: self._nbytes < limit)

    def read(self, job: Job) -> bytes:
        """Return an input's bytes."""
        return self._data[job.index]

    def done(self, job: Job) -> None:
        """Let go of an input."""
        super().done(job)
        with self._change:
            self._nbytes -= len(self._data.pop(job.index, b""))
            self._change.notify_all()

"""``--cluster``: a plan is done in pieces by the workers of a Dask scheduler.

This process plans, hands out pieces, and puts their reports together. Little is in flight at a
time, so ending early is quick. Dask runs the piece of a worker that died again; one that keeps
killing its workers is cut into single images, so that only the one at fault fails.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import cvcli.codecs as codecs
from cvcli import __version__
from cvcli.batch.check import check_inputs
from cvcli.batch.garbage import few_collections
from cvcli.batch.interrupt import ending_at_once_if_interrupted_again
from cvcli.batch.places import Place, Url, scheme_of
from cvcli.batch.plan import Job, Plan
from cvcli.batch.report import Report
from cvcli.batch.run import Ends, Options
from cvcli.batch.schedulers import connected
from cvcli.batch.sinks import CheckSink, FileSink
from cvcli.batch.sources import Held
from cvcli.batch.storage import storage_of
from cvcli.batch.workers import Part, Work, at_once, do, host_of, pieces, stop
from cvcli.core.chain import Chain
from cvcli.devices.cpu import cpu_threads
from cvcli.errors import CvcliError, DeviceError, LostClusterError, UsageError

_MOST_JOBS = {"cpu": 64, "gpu": 512}
# Pieces sent for each that can be done at once: the next is there when one ends.
_AHEAD = 2
# How long a run that ends early waits for what is being written.
_ENDING_S = 20.0
# A run whose workers have all gone ends after so long.
_ALONE_S = 60.0
_MOST_TRIES = 5
# How often workers are counted: others may have joined.
_COUNTED_S = 5.0
_MISSING = ": no such file"
_LOST = "--cluster: the scheduler can't be reached any more"


def run_on_cluster(
    plan: Plan,
    chain: Chain,
    options: Options,
    report: Report,
    tick: Callable[[Report], None],
    ends: Ends,
    address: str,
) -> None:
    """Run a chain over a plan on the workers of a scheduler; as `cvcli.batch.run.run` otherwise.

    ``address`` is that of a scheduler, the name of its file, or ``local:N``. Raises `UsageError`
    or `DeviceError` if it can't be used.
    """
    if report.failed >= options.most_failures:
        return
    max_pixels = options.max_pixels or codecs.DEFAULT_MAX_PIXELS
    care, threads = options.care, options.jobs or cpu_threads()
    plan = check_inputs(
        plan, chain, report, threads, max_pixels, care.auto_orient, care.frame, care.lossless
    )
    if plan.jobs and report.failed < options.most_failures:
        _refuse_memory(plan.jobs)
        try:
            # Collections are off until a run begins, and Dask makes cycles.
            with few_collections(), connected(address, options.device) as (client, resources):
                _Dispatch(client, resources, plan, chain, options, report, ends).run(tick)
        except OSError as error:
            raise LostClusterError(_LOST) from error
        finally:
            # Workers of this machine that died may have left something half-written.
            for folder in {os.fspath(o.parent) for job in plan.jobs for o in job.outputs}:
                storage_of(folder).remove_stale(folder)
    report.close()


def _refuse_memory(jobs: Sequence[Job]) -> None:
    for path in (path for job in jobs for path in (job.input, *job.outputs)):
        if isinstance(path, Url) and scheme_of(path.text) == "memory":
            raise UsageError(f"--cluster: {path} is in one process's memory, which others lack")


class _Dispatch:
    """Pieces on their way to workers and back."""

    def __init__(
        self,
        client: Any,
        resources: dict[str, int],
        plan: Plan,
        chain: Chain,
        options: Options,
        report: Report,
        ends: Ends,
    ) -> None:
        self._client, self._resources = client, resources
        self._options, self._report = options, report
        self._own = {job.index: job for job in plan.jobs}
        self._slots: Counter[str] = Counter()
        self._look_at_workers()
        self._work = Work(
            secrets.token_hex(8),
            0,
            __version__,
            str(chain),
            options,
            replace(ends, sink=_repeatable(ends.sink)),
            (),
            dict(self._slots),
            resources,
            report.timeline is not None,
        )
        most = _MOST_JOBS["gpu" if resources else "cpu"]
        self._todo = deque(pieces(plan.jobs, self._slots.total(), most))
        self._sent: dict[Any, Work] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._count = 0
        self._forgotten: Counter[int] = Counter()
        self._heard = time.monotonic()

    def _look_at_workers(self) -> None:
        """Count what can be done at once, by host."""
        slots: Counter[str] = Counter()
        for worker, known in self._client.scheduler_info(n_workers=-1)["workers"].items():
            offered = known.get("resources", {})
            slots[host_of(worker)] += at_once(known["nthreads"], offered, self._resources)
        self._slots, self._counted = +slots, time.monotonic()

    def run(self, tick: Callable[[Report], None]) -> None:
        try:
            while self._todo or self._sent:
                if time.monotonic() - self._counted > _COUNTED_S:
                    self._look_at_workers()
                self._send()
                self._collect(0.1)
                tick(self._report)
                if self._report.failed >= self._options.most_failures:
                    return self._stop()
        except BaseException:
            with ending_at_once_if_interrupted_again():
                self._stop()
            raise

    def _send(self) -> None:
        while self._todo and len(self._sent) < _AHEAD * max(1, self._slots.total()):
            self._count += 1
            work = replace(self._work, number=self._count, jobs=_elsewhere(self._todo.popleft()))
            future = self._client.submit(
                do,
                work,
                key=f"cvcli-{work.run}-{work.number}",
                resources=self._resources or None,
                pure=False,
            )
            self._watch(future, work)

    def _collect(self, seconds: float) -> None:
        """Take what is done, or wait a little for it."""
        try:
            future = self._done.get(timeout=seconds)
        except Empty:
            return self._refuse_to_wait_for_ever()
        self._heard = time.monotonic()
        work = self._sent.pop(future, None)
        if work is None:
            return
        try:
            self._look_at(future, work)
        except KeyboardInterrupt:
            self._sent[future] = work
            raise

    def _look_at(self, future: Any, work: Work) -> None:
        """Take a piece that has ended, one way or another."""
        status = future.status
        if status == "finished":
            try:
                part = future.result()
            except CancelledError:
                return self._again(work)
            self._take(part, work)
        elif status == "error":
            self._failed(future, work)
        elif status == "pending":  # it had ended, on a worker that has died since then
            return self._watch(future, work)
        else:
            return self._again(work)
        future.release()

    def _watch(self, future: Any, work: Work) -> None:
        self._sent[future] = work
        future.add_done_callback(self._done.put)

    def _again(self, work: Work) -> None:
        """Send a piece anew that the scheduler has forgotten."""
        first = work.jobs[0].index
        self._forgotten[first] += 1
        if self._client.status != "running" or self._forgotten[first] > _MOST_TRIES:
            raise LostClusterError(_LOST)
        self._todo.appendleft(tuple(self._own[job.index] for job in work.jobs))

    def _refuse_to_wait_for_ever(self) -> None:
        if time.monotonic() - self._heard < _ALONE_S:
            return
        self._heard = time.monotonic()
        self._look_at_workers()
        if not self._slots:
            raise LostClusterError("--cluster: all workers have left")

    def _take(self, part: Part, work: Work) -> None:
        report = self._report
        sent = {job.index: job for job in work.jobs}
        for row in part.rows:
            if row.error is not None:
                row.error = _as_named(row.error, sent[row.index], self._own[row.index])
                if row.tip is None and row.error.endswith(_MISSING):
                    row.tip = "workers must see the same files: in a shared folder, or a store"
        report.absorb(part.rows, part.stages)
        report.notes += [note for note in part.notes if note not in report.notes]
        report.device = report.device or part.device
        if report.timeline is not None and part.spans is not None:
            report.timeline.absorb(part.spans, part.started - report.started.timestamp())

    def _failed(self, future: Any, work: Work) -> None:
        from distributed.scheduler import KilledWorker

        error = future.exception()
        if isinstance(error, CvcliError):
            raise error
        if isinstance(error, ModuleNotFoundError):
            tip = "install on each what is installed here"
            raise DeviceError(f"--cluster: workers lack {error.name}", tip=tip) from None
        if isinstance(error, KilledWorker):
            return self._killed(work, error.allowed_failures + 1)
        raise error

    def _killed(self, work: Work, times: int) -> None:
        """Do pieces that end their workers one image at a time."""
        own = [self._own[job.index] for job in work.jobs]
        if len(own) > 1:
            self._todo.extendleft((job,) for job in reversed(own))
            return
        tip = "the workers' logs say why; a lack of memory is the usual reason"
        text = f"{own[0].input}: {times} workers died while they did it"
        self._report.fail(own[0].index, text, tip)

    def _stop(self) -> None:
        """Let workers start nothing more, and take what they have done."""
        self._todo.clear()
        end = time.monotonic() + _ENDING_S
        if self._client.status != "running":
            return
        # What is lost now, be it the scheduler itself, is not why the run ends.
        with suppress(Exception):
            if self._sent:
                self._client.run(stop, self._work.run, on_error="ignore")
            # An interrupt may have come between hearing that one has ended and taking it.
            for future in [future for future in self._sent if future.done()]:
                self._done.put(future)
            while self._sent and time.monotonic() < end:
                with suppress(CvcliError):
                    self._collect(0.1)
            self._client.cancel(list(self._sent))


def _repeatable(sink: Any) -> Any:
    return sink.repeatable() if isinstance(sink, FileSink) else sink


def refuse_ends(ends: Ends) -> None:
    """Raise `UsageError` unless workers can reach what is read and written, and do it twice."""
    if isinstance(ends.source, Held) or not isinstance(ends.sink, FileSink | CheckSink):
        tip = "name files or folders, and a folder for the results"
        raise UsageError("--cluster: workers can't share -", tip)
    if isinstance(ends.sink, FileSink) and ends.sink.in_place:
        text = "--in-place and --cluster: work that is done again would change files twice"
        raise UsageError(text, tip="name a folder for the results")


def _elsewhere(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs for processes that work in another folder."""
    return tuple(
        replace(
            job,
            input=_absolute(job.input),
            output=_absolute(job.output),
            more=tuple(map(_absolute, job.more)),
        )
        for job in jobs
    )


def _absolute(path: Place) -> Place:
    return Path(os.path.abspath(path)) if isinstance(path, Path) else path  # noqa: PTH100


def _as_named(text: str, sent: Job, own: Job) -> str:
    """Return a message with files as they were named here."""
    pairs = zip((sent.input, *sent.outputs), (own.input, *own.outputs), strict=True)
    for there, here in pairs:
        text = text.replace(str(there), str(here))
    return text

"""What a worker of a cluster does: some jobs of a plan, by the same code as a run on one machine.

It may be done twice: a worker that dies takes along what it was about to tell, so another does
its work again, and finds outputs that are there already and right.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cvcli import __version__
from cvcli.batch.device import check_codec
from cvcli.batch.garbage import few_collections
from cvcli.batch.plan import Job, Plan
from cvcli.batch.report import Report, Row
from cvcli.batch.run import Ends, Options, Runner
from cvcli.batch.storage import storage_of
from cvcli.batch.timeline import Spans
from cvcli.devices.cpu import cpu_threads
from cvcli.errors import DeviceError
from cvcli.ops import parse_chain

# Runs that are to end; each is known by a number of its own.
_STOPPED: set[str] = set()
# Output folders that this process has swept for a run.
_SWEPT: set[tuple[str, str]] = set()
# Held by the one piece that may fill the memory of this process.
_TURN = threading.Lock()
# How often a piece that waits for its turn looks whether the run has been stopped.
_PATIENCE_S = 0.1


@dataclass(frozen=True, slots=True)
class Work:
    """Some jobs of a run, as they are sent: ``chain`` is its text.

    ``slots`` are how many such pieces each host does at once, to share its cores among them, and
    ``needs`` what each takes of its worker's resources.
    """

    run: str
    number: int
    version: str
    chain: str
    options: Options
    ends: Ends
    jobs: tuple[Job, ...]
    slots: Mapping[str, int]
    needs: Mapping[str, int]
    timeline: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What became of some jobs: the rows and measurements of their report."""

    number: int
    rows: list[Row]
    stages: list[tuple[str, float, int]]
    notes: list[str]
    device: str
    started: float
    spans: Spans | None


class Stopped(Exception):
    """The run is to end before these jobs are done."""


def stop(run: str) -> None:
    """End what this process does for a run, soon."""
    _STOPPED.add(run)


def do(work: Work) -> Part:
    """Do some jobs; `CvcliError` only for what would fail every image."""
    if work.version != __version__:
        text = f"--cluster: a worker on {platform.node()} has cvcli {__version__}"
        raise DeviceError(f"{text} instead of {work.version}", tip="install the same one")
    check_codec(work.options.codec, work.options.device)
    started, plan = time.time(), Plan(work.jobs, (), (), Path())
    report = Report(plan, timeline=work.timeline, host=platform.node())
    try:
        _refuse_stopped(work)
        _sweep(work)
        with _memory(work) as share, few_collections():
            threads = share * (work.options.jobs or _threads(work.slots))
            options, chain = replace(work.options, jobs=threads), parse_chain(work.chain)
            runner = Runner(plan, chain, options, report, work.ends)
            runner.run(lambda report: _refuse_stopped(work))
    except Stopped:
        pass
    report.close()
    stages = [(stage.name, stage.busy_s, stage.nbytes) for stage in report.stages()]
    spans = None if report.timeline is None else report.timeline.kept(_lane())
    return Part(work.number, list(report.rows), stages, report.notes, report.device, started, spans)


@contextmanager
def _memory(work: Work) -> Iterator[int]:
    """Wait until a piece may fill memory; gives of how many pieces it takes the threads.

    Where memory is bounded, pieces take turns: together they would pass the bound, and a part of it
    would be too little for an image that all of it has room for.
    """
    if work.options.max_memory is None:
        yield 1
        return
    while not _TURN.acquire(timeout=_PATIENCE_S):
        _refuse_stopped(work)
    try:
        yield _own_slots(work.needs)
    finally:
        _TURN.release()


def _refuse_stopped(work: Work) -> None:
    if work.run in _STOPPED:
        raise Stopped


def _sweep(work: Work) -> None:
    """Remove what a process that died here was writing, once in a process."""
    for folder in {os.fspath(o.parent) for job in work.jobs for o in job.outputs}:
        if (work.run, folder) not in _SWEPT:
            _SWEPT.add((work.run, folder))
            storage_of(folder).remove_stale(folder)


def _threads(slots: Mapping[str, int]) -> int:
    from distributed import get_worker

    return max(1, cpu_threads() // slots.get(host_of(get_worker().address), 1))


def _own_slots(needs: Mapping[str, int]) -> int:
    from distributed import get_worker

    state = get_worker().state
    return max(1, at_once(state.nthreads, state.total_resources, needs))


def at_once(threads: int, offered: Mapping[str, float], needs: Mapping[str, int]) -> int:
    """Return how many pieces a worker does at the same time."""
    return int(min([threads, *(offered.get(name, 0) // need for name, need in needs.items())]))


def host_of(address: str) -> str:
    """Return the host of a worker's address, such as ``tcp://10.0.0.7:40001``."""
    return address.rpartition("://")[2].rpartition(":")[0]


def _lane() -> str:
    return f"{platform.node()} {os.getpid()}"


def pieces(jobs: Sequence[Job], slots: int, most: int) -> list[tuple[Job, ...]]:
    """Cut jobs into pieces: few enough to cost little, so many that all are busy to the end."""
    size = max(1, min(most, -(-len(jobs) // (max(1, slots) * 8))))
    return [tuple(jobs[start : start + size]) for start in range(0, len(jobs), size)]

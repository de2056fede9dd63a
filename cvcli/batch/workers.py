"""What a worker of a cluster does: some jobs of a plan, by the same code as a run on one machine.

It may be done twice: a worker that dies takes along what it was about to tell, so another does
its work again, and finds outputs that are there already and right.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Work:
    """Some jobs of a run, as they are sent: ``chain`` is its text.

    ``slots`` are how many such pieces each host does at once, to share its cores among them.
    """

    run: str
    number: int
    version: str
    chain: str
    options: Options
    ends: Ends
    jobs: tuple[Job, ...]
    slots: Mapping[str, int]
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
    started = time.time()
    report = Report(Plan(work.jobs, (), (), Path()), timeline=work.timeline, host=platform.node())
    try:
        _refuse_stopped(work)
        _sweep(work)
        options = replace(work.options, jobs=work.options.jobs or _threads(work.slots))
        runner = Runner(
            Plan(work.jobs, (), (), Path()), parse_chain(work.chain), options, report, work.ends
        )
        with few_collections():
            runner.run(lambda report: _refuse_stopped(work))
    except Stopped:
        pass
    report.close()
    stages = [(stage.name, stage.busy_s, stage.nbytes) for stage in report.stages()]
    spans = None if report.timeline is None else report.timeline.kept(_lane())
    return Part(work.number, list(report.rows), stages, report.notes, report.device, started, spans)


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


def host_of(address: str) -> str:
    """Return the host of a worker's address, such as ``tcp://10.0.0.7:40001``."""
    return address.rpartition("://")[2].rpartition(":")[0]


def _lane() -> str:
    return f"{platform.node()} {os.getpid()}"


def pieces(jobs: Sequence[Job], slots: int, most: int) -> list[tuple[Job, ...]]:
    """Cut jobs into pieces: few enough to cost little, so many that all are busy to the end."""
    size = max(1, min(most, -(-len(jobs) // (slots * 8))))
    return [tuple(jobs[start : start + size]) for start in range(0, len(jobs), size)]

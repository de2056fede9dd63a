"""Carry out what a command has worked out, and end with the right code."""

from __future__ import annotations

import difflib
import inspect
import os
import platform
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace

from cvcli import __version__
from cvcli.batch.album import Care
from cvcli.batch.interrupt import Terminated, ending_in_order_if_terminated
from cvcli.batch.jobs import texts_of
from cvcli.batch.places import Place, Url, place
from cvcli.batch.plan import STDIO, Plan
from cvcli.batch.report import Report, dry_run
from cvcli.batch.run import Ends, Options, run
from cvcli.batch.shard import Shard
from cvcli.batch.sinks import CheckSink, FileSink
from cvcli.batch.sources import Held
from cvcli.cli import pictures
from cvcli.cli.console import Screen, emit, print_error, silence_stdout
from cvcli.cli.ends import Request, plan_and_ends, split
from cvcli.cli.options import Wishes, nbytes
from cvcli.codecs import DEFAULT_MAX_PIXELS
from cvcli.core.chain import Chain
from cvcli.devices.cpu import cpu_threads
from cvcli.devices.find import EVERY_GPU, parse_device
from cvcli.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_PIPE,
    EXIT_TERMINATED,
    CvcliError,
    DeviceError,
    LostClusterError,
    UsageError,
)

_LEAST_MEMORY = 10**6
_DEVICES = ("auto", "cpu", "cuda", "cuda:N", "cuda:all")
# What others call them.
_GPU = {"gpu": "cuda", "nvidia": "cuda", "all": "cuda:all", "gpu:all": "cuda:all"}
# Threads where each file is waited for across a network, on however few cores.
_WAITING = 16

Reports = tuple[Place | None, Place | None]
"""Where the report and the trace go, None where not wanted."""


def carry_out(chain: Chain, paths: list[str], wishes: Wishes) -> int:
    """Plan and run what was asked for; return the exit code."""
    inputs, output = split(paths, wishes, chain)
    shard = _shard(wishes, inputs)
    if wishes.cluster is not None:
        from cvcli.batch.early import prepare

        prepare(wishes.cluster)
    options = _options(wishes)
    if wishes.explain and output != STDIO and not _decides(wishes):
        # What is there already has nothing to do with how the chain runs.
        wishes = replace(wishes, overwrite=True)
    request = Request(
        chain,
        inputs,
        output,
        wishes,
        wishes.jobs or cpu_threads(),
        wishes.max_pixels or DEFAULT_MAX_PIXELS,
    )
    plan, ends = plan_and_ends(request)
    reports = _reports(wishes, shard)
    _check_reports(reports, plan, [chain.origin] if chain.origin else [])
    if shard is not None:
        shard, plan = shard.share(plan)
    # Workers of a cluster share their own cores among their pieces.
    if wishes.jobs is None and wishes.cluster is None and _is_far(plan):
        options = replace(options, jobs=max(cpu_threads(), _WAITING))
    if wishes.dry_run:
        from cvcli.batch.report_file import dump_json

        emit(dump_json(dry_run(plan, command=_command(), version=__version__, shard=shard)))
        return EXIT_OK
    if wishes.explain:
        from cvcli.cli.explain import print_explained

        print_explained(plan, chain, options, ends, request.threads, request.max_pixels)
        return EXIT_OK
    if wishes.cluster is not None:
        from cvcli.batch.cluster import refuse_ends

        refuse_ends(ends)
    total = len(plan) if ends.feed is None else None
    screen = Screen(total, wishes.progress, quiet=wishes.quiet, verbose=wishes.verbose)
    return execute(plan, chain, options, screen, reports, ends, shard, wishes.cluster)


def _shard(wishes: Wishes, inputs: list[Place]) -> Shard | None:
    if wishes.shard is not None and STDIO in inputs:
        raise UsageError("--shard: jobs can't share what comes through stdin")
    return None if wishes.shard is None else Shard.parse(wishes.shard)


def _decides(wishes: Wishes) -> bool:
    """Return whether it was said what becomes of outputs that exist."""
    return wishes.skip_existing or wishes.if_newer or wishes.in_place or wishes.check


def _is_far(plan: Plan) -> bool:
    named = (text for texts in texts_of(plan.jobs) for text in texts[1:3])
    return any("://" in text and isinstance(place(text), Url) for text in named)


def _reports(wishes: Wishes, shard: Shard | None) -> Reports:
    def named(text: str | None) -> Place | None:
        path = None if text is None else place(text)
        return path if path is None or shard is None else shard.own_name(path)

    return named(wishes.report), named(wishes.trace)


def _check_reports(reports: Reports, plan: Plan, others: list[Place]) -> None:
    from cvcli.batch.report_file import check_report_path

    report, trace = reports
    if report is not None:
        check_report_path(report, plan, others)
    if trace is not None:
        check_report_path(trace, plan, others, (".json",))
        if report is not None and os.path.realpath(report) == os.path.realpath(trace):
            raise UsageError(f"{trace}: can't be the report and the trace")


def _care(wishes: Wishes) -> Care:
    names = inspect.signature(pictures.care).parameters
    return pictures.care(**{name: getattr(wishes, name) for name in names})


def _options(wishes: Wishes) -> Options:
    return Options(
        device=_device(wishes.device),
        codec=wishes.codec,
        batch_size=wishes.batch_size,
        streams=wishes.streams,
        jobs=wishes.jobs,
        quality=pictures.quality_of(wishes.quality, lossless=wishes.lossless),
        overwrite=wishes.overwrite,
        fail_fast=wishes.fail_fast,
        max_pixels=wishes.max_pixels,
        fail_on=wishes.fail_on,
        care=_care(wishes),
        max_errors=wishes.max_errors,
        max_memory=_max_memory(wishes.max_memory),
    )


def _device(name: str) -> str:
    try:
        if name != EVERY_GPU:
            parse_device(name)
    except DeviceError:
        near = difflib.get_close_matches(_GPU.get(name.lower(), name.lower()), _DEVICES, 1, 0.7)
        tip = f"did you mean {near[0]}?" if near else None
        listed = f"{', '.join(_DEVICES[:-1])} or {_DEVICES[-1]}"
        raise UsageError(f"--device must be {listed}, got {name!r}", tip) from None
    return name


def _max_memory(text: str | None) -> int | None:
    limit = nbytes(text, "--max-memory")
    if limit is not None and limit < _LEAST_MEMORY:
        least = "as a small photograph takes that much"
        raise UsageError(f"--max-memory: must be at least 1M, {least}, got {text!r}")
    return limit


def execute(
    plan: Plan,
    chain: Chain,
    options: Options,
    screen: Screen,
    reports: Reports,
    ends: Ends | None = None,
    shard: Shard | None = None,
    cluster: str | None = None,
) -> int:
    """Run a plan and show what became of it; return the exit code.

    ``reports`` are the files of the report and of the trace, None where not wanted.
    """
    report, trace = reports
    timeline = trace is not None or (report is not None and report.suffix.lower() == ".html")
    record = Report(
        plan,
        command=_command(),
        version=__version__,
        timeline=timeline,
        timings=report is not None or screen.verbose,
        shard=shard,
        host=None if shard is None else platform.node(),
    )
    if ends is not None:
        record.reads_files = not isinstance(ends.source, Held)
        record.writes_files = isinstance(ends.sink, FileSink | CheckSink)
    ending = None
    try:
        with screen, ending_in_order_if_terminated():
            if cluster is None or ends is None:
                run(plan, chain, options, record, screen.tick, ends)
            else:
                from cvcli.batch.cluster import run_on_cluster

                run_on_cluster(plan, chain, options, record, screen.tick, ends, cluster)
    except KeyboardInterrupt as error:
        ending = EXIT_TERMINATED if isinstance(error, Terminated) else EXIT_INTERRUPTED
    except LostClusterError as error:
        print_error(error)
        ending = error.exit_code
    except BrokenPipeError:
        # Whoever read has seen enough, as in `cvcli ... - | head`: nothing to talk about.
        silence_stdout()
        ending = EXIT_PIPE
    record.close()
    if ending != EXIT_PIPE:
        screen.summary(record, interrupted=ending is not None)
    written = _write(record.write, report) and _write(record.write_trace, trace)
    if ending is not None:
        return ending
    return EXIT_FAILED if record.failed or not written else EXIT_OK


def _write(write: Callable[[Place], None], path: Place | None) -> bool:
    if path is None:
        return True
    try:
        write(path)
    except CvcliError as error:
        print_error(error)
        return False
    return True


def _command() -> str:
    return shlex.join(["cvcli", *sys.argv[1:]])

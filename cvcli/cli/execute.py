"""Carry out what a command has worked out, and end with the right code."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from cvcli import __version__
from cvcli.batch.plan import Plan
from cvcli.batch.report import Report, dry_run, dump_json
from cvcli.batch.run import Options, run
from cvcli.cli.console import Screen, emit, print_error
from cvcli.core.chain import Chain
from cvcli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, CvcliError


def print_plan(plan: Plan) -> None:
    """Print what would be done, in the report's schema."""
    emit(dump_json(dry_run(plan, command=_command(), version=__version__)))


def execute(plan: Plan, chain: Chain, options: Options, screen: Screen, report: Path | None) -> int:
    """Run a plan and show what became of it; return the exit code."""
    record = Report(plan, command=_command(), version=__version__)
    interrupted = False
    try:
        with screen:
            run(plan, chain, options, record, screen.tick)
    except KeyboardInterrupt:
        interrupted = True
    record.close()
    screen.summary(record, interrupted=interrupted)
    written = report is None or _write(record, report)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if record.failed or not written else EXIT_OK


def _write(record: Report, path: Path) -> bool:
    try:
        record.write(path)
    except CvcliError as error:
        print_error(error)
        return False
    return True


def _command() -> str:
    return shlex.join(["cvcli", *sys.argv[1:]])

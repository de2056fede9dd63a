"""``cvcli report merge``: what the jobs of an array did, as of one run."""

from __future__ import annotations

import os
from inspect import getdoc
from typing import Annotated

import typer

from cvcli.cli.console import Screen, say
from cvcli.cli.typed import Command, Group, flowing
from cvcli.errors import EXIT_FAILED, UsageError


def reports_app() -> typer.Typer:
    """Return the commands on reports."""
    app = typer.Typer(cls=Group, no_args_is_help=True, help="Put reports together.")
    app.callback()(_reports)
    text = flowing(getdoc(merge) or "")
    app.command("merge", cls=Command, help=text, no_args_is_help=True)(merge)
    return app


def _reports() -> None:
    """Put reports together."""


def merge(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORT.json... OUTPUT",
            show_default=False,
            help="Reports of all shares, then the report to write: .json, .csv or .html.",
        ),
    ],
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but failures and their tips.")
    ] = False,
) -> None:
    """Merge the reports of runs with --shard into that of one run.

    The exit code is what one run would have ended with; a share without a report counts as failed.
    """
    from cvcli.batch.merge import listed, merged
    from cvcli.batch.places import place
    from cvcli.batch.report_file import check_report_path

    if len(paths) < 2:
        raise UsageError("reports and an output must be given, as in REPORT.json... OUTPUT")
    *sources, target = map(place, paths)
    check_report_path(target)
    if os.path.realpath(target) in map(os.path.realpath, sources):
        raise UsageError(f"{target}: the report would overwrite one that it is made of")
    report, missing = merged(sources)
    report.write(target)
    screen = Screen(len(report.rows), "never", quiet=quiet, verbose=False)
    screen.summary(report, interrupted=bool(report.left))
    if missing:
        count = len(sources) + len(missing)
        say(f"cvcli: there is no report of share {listed(missing)} of {count}")
    raise typer.Exit(EXIT_FAILED if missing or report.failed or report.left else 0)

"""Commands over many files: one an operator, and ``run`` for chains."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cvcli.cli.console import Screen
from cvcli.core.chain import Chain
from cvcli.errors import UsageError
from cvcli.ops import Operator, load_chain
from cvcli.ops._params import Parameter

_FILES, _RUNNING, _REPORTING = "Files", "Running", "Reporting"

# As text: an empty word must not become the working folder.
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT... OUTPUT",
        show_default=False,
        help="Image files and folders, then where the results go: a folder, made if missing, or "
        "a file if there is one input file.",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="auto|cpu|cuda|cuda:N", rich_help_panel=_RUNNING, help="Where the operators run."
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel=_RUNNING, show_default="by memory", help="Most images in a batch."
    ),
]
Streams = Annotated[
    int,
    typer.Option(min=1, rich_help_panel=_RUNNING, help="GPU streams that batches take in turn."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        rich_help_panel=_RUNNING,
        show_default="one a core",
        help="Threads that decode, encode, and on the CPU run the operators.",
    ),
]
FailFast = Annotated[
    bool,
    typer.Option("--fail-fast", rich_help_panel=_RUNNING, help="Stop at the first failed image."),
]
MaxPixels = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=_RUNNING,
        show_default="500 million",
        help="Refuse an image of more pixels than this.",
    ),
]
Recursive = Annotated[
    bool,
    typer.Option(
        "--recursive", "-r", rich_help_panel=_FILES, help="Descend into folders; mirror the tree."
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_FILES,
        show_default="as the input",
        help="Write this format, such as jpg, png, webp or tiff.",
    ),
]
Quality = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100,
        rich_help_panel=_FILES,
        show_default="JPEG 90, WebP 80, AVIF 75",
        help="Quality of lossy formats.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", rich_help_panel=_FILES, help="Replace outputs that exist.")
]
SkipExisting = Annotated[
    bool,
    typer.Option(
        "--skip-existing", rich_help_panel=_FILES, help="Leave out inputs whose output exists."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", rich_help_panel=_REPORTING, help="Print the plan as JSON and touch nothing."
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.json|FILE.csv",
        rich_help_panel=_REPORTING,
        help="Write timings, with a row an image.",
    ),
]
ProgressMode = Annotated[
    Literal["auto", "always", "never"],
    typer.Option(rich_help_panel=_REPORTING, help="Show a bar; auto: on a terminal only."),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        rich_help_panel=_REPORTING,
        help="Print nothing but failures and their tips.",
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", rich_help_panel=_REPORTING, help="Print each file.")
]


def _run(
    chain: Chain,
    paths: Paths,
    *,
    recursive: Recursive = False,
    format: Format = None,
    quality: Quality = None,
    overwrite: Overwrite = False,
    skip_existing: SkipExisting = False,
    device: Device = "auto",
    batch_size: BatchSize = None,
    streams: Streams = 2,
    jobs: Jobs = None,
    fail_fast: FailFast = False,
    max_pixels: MaxPixels = None,
    dry_run: DryRun = False,
    report: ReportFile = None,
    progress: ProgressMode = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    from cvcli.batch.plan import make_plan
    from cvcli.batch.report import check_report_path
    from cvcli.batch.run import Options
    from cvcli.cli.execute import execute, print_plan

    inputs, output = _split(paths)
    plan = make_plan(
        inputs,
        output,
        recursive=recursive,
        format=format,
        overwrite=overwrite,
        skip_existing=skip_existing,
    )
    if report is not None:
        check_report_path(report, plan, [chain.origin] if chain.origin else [])
    if dry_run:
        print_plan(plan)
        return
    options = Options(device, batch_size, streams, jobs, quality, overwrite, fail_fast, max_pixels)
    screen = Screen(len(plan), progress, quiet=quiet, verbose=verbose)
    raise typer.Exit(execute(plan, chain, options, screen, report))


def _split(paths: list[str]) -> tuple[list[Path], Path]:
    if len(paths) < 2:
        raise UsageError(
            "an input and an output must be given", tip="for example: cvcli flip --axis -1 in/ out/"
        )
    if "" in paths:
        raise UsageError("an empty path was given", tip="is a variable of your shell unset?")
    return [Path(path) for path in paths[:-1]], Path(paths[-1])


def operator_command(operator: Operator) -> Callable[..., None]:
    """Return the command of one operator, for Typer to read its signature."""

    bare = operator.positional
    named = [p for p in operator.parameters if p is not bare]

    def command(paths: list[str], **options: Any) -> None:
        values = {p.name: options.pop(p.name) for p in named}
        given = {name: value for name, value in values.items() if value is not None}
        if bare is not None and not _is_excluded(bare, given, operator.exclusive):
            given[bare.name], *paths = paths
        _run(Chain((operator.step(**given),)), paths, **options)

    options = [_option(p) for p in named]
    return _signed(command, options if bare is None else [_paths_after(bare), *options])


def _is_excluded(
    bare: Parameter, given: dict[str, Any], exclusive: tuple[tuple[str, str], ...]
) -> bool:
    return any(bare.name in pair and (pair[0] in given or pair[1] in given) for pair in exclusive)


def _paths_after(bare: Parameter) -> inspect.Parameter:
    """Return the paths with the operator's own word before them, which some options replace."""
    word = bare.name.upper()
    argument = typer.Argument(
        metavar=f"[{word}] INPUT... OUTPUT",
        show_default=False,
        help=f"{word}: {bare.param.help} Left out where options say the same. Then image files "
        "and folders, and where the results go.",
    )
    return inspect.Parameter(
        "paths",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[list[str], argument],
    )


def run_command() -> Callable[..., None]:
    """Return the command that runs a chain."""

    def run(chain: str, paths: list[str], **options: Any) -> None:
        """Run a chain of operators in one pass.

        CHAIN holds steps between |, with the options of the commands, as in
        "flip --axis -1 | crop --width 640 --height 480 --gravity center | invert"; or @FILE names
        a file with a step on each line and # comments.
        """
        _run(load_chain(chain), paths, **options)

    chain = inspect.Parameter(
        "chain",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[
            str, typer.Argument(metavar="CHAIN", help="Steps between |, or @FILE.")
        ],
    )
    return _signed(run, [chain])


def _signed(function: Callable[..., None], extra: list[inspect.Parameter]) -> Callable[..., None]:
    """Give a function the signature Typer is to see: its own parameters and the common ones."""
    common = list(inspect.signature(_run, eval_str=True).parameters.values())[1:]
    arguments = [p for p in extra if p.name in ("chain", "paths")]
    if not any(p.name == "paths" for p in arguments):
        arguments += common[:1]
    options = [p for p in extra if p.name not in ("chain", "paths")] + common[1:]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in arguments + options]
    signed: Any = function
    signed.__signature__ = inspect.Signature(parameters)
    signed.__annotations__ = {p.name: p.annotation for p in parameters}
    return function


def _option(p: Parameter) -> inspect.Parameter:
    metavar = "|".join(p.choices) or {
        "level": "VALUE|N%",
        "color": "VALUE,...",
        "flag": "on|off",
    }.get(p.kind, p.kind.upper())
    limits = f" ({p.param.limits})" if p.param.limits else ""
    option = typer.Option(
        p.option,
        metavar=metavar,
        help=p.param.help + limits,
        show_default=False if p.default is None else str(p.default),
        autocompletion=lambda: list(p.choices),
        rich_help_panel="Options",
    )
    return inspect.Parameter(
        p.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=... if p.required else None,
        annotation=Annotated[str if p.required else str | None, option],
    )

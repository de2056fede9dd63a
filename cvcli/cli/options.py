"""The options that every command over many files has."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, fields
from inspect import Parameter
from typing import Annotated, Any, Literal, get_type_hints

import typer

from cvcli.cli import pictures
from cvcli.errors import UsageError

_FILES, _OUTPUTS, _RUNNING, _REPORTING = "Inputs", "Outputs", "Running", "Reporting"

# As text: an empty word must not become the working folder.
Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT... OUTPUT",
        show_default=False,
        help="Image files, folders and quoted patterns, then where the results go: a folder, made "
        "if missing, or a file if there is one input file. - is stdin or stdout: an image, or a "
        "tar of them.",
    ),
]


def _option(*names: str, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=help, **more)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was asked for on the command line; a field an option."""

    recursive: Annotated[
        bool, _option("--recursive", "-r", panel=_FILES, help="Descend into folders.")
    ] = False
    include: Annotated[
        list[str] | None,
        _option(
            metavar="PATTERN",
            panel=_FILES,
            help="In folders take only files like this; more than one may be given.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        _option(metavar="PATTERN", panel=_FILES, help="In folders leave out what is like this."),
    ] = None
    hidden: Annotated[
        bool,
        _option("--hidden", panel=_FILES, help="In folders take hidden files and folders too."),
    ] = False
    files_from: Annotated[
        str | None,
        _option(metavar="FILE|-", panel=_FILES, help="Read more inputs from a list, a line each."),
    ] = None
    null: Annotated[
        bool, _option("--null", "-0", panel=_FILES, help="The list is separated by NUL characters.")
    ] = False
    base: Annotated[
        str | None,
        _option(
            metavar="FOLDER", panel=_FILES, help="Mirror named files from here, not by name alone."
        ),
    ] = None
    name: Annotated[
        str | None,
        _option(
            metavar="TEMPLATE",
            panel=_OUTPUTS,
            show_default="as the input",
            help="Name outputs by {stem}, {name}, {ext}, {parent}, {index}, {width}, {height}; "
            "{frame} gives each picture of a file one of its own.",
        ),
    ] = None
    format: Annotated[
        str | None,
        _option(
            # Named, as Typer 0.27 takes a metavar that is the name for the option itself.
            "--format",
            metavar="FORMAT",
            panel=_OUTPUTS,
            show_default="as the input",
            help="Write this format, such as jpg, png, webp, tiff or npy.",
        ),
    ] = None
    quality: pictures.Quality = "keep"
    lossless: pictures.Lossless = False
    overwrite: Annotated[
        bool, _option("--overwrite", panel=_OUTPUTS, help="Replace outputs that exist.")
    ] = False
    skip_existing: Annotated[
        bool,
        _option("--skip-existing", panel=_OUTPUTS, help="Leave out inputs whose output exists."),
    ] = False
    if_newer: Annotated[
        bool,
        _option("--if-newer", panel=_OUTPUTS, help="Replace outputs older than their inputs."),
    ] = False
    in_place: Annotated[
        bool,
        _option(
            "--in-place", panel=_OUTPUTS, help="Replace the inputs themselves; there is no OUTPUT."
        ),
    ] = False
    backup: Annotated[
        str | None,
        _option(
            metavar="[SUFFIX]",
            panel=_OUTPUTS,
            help="With --in-place keep the originals under this suffix; ~ unless given after a =.",
        ),
    ] = None
    preserve: Annotated[
        bool,
        _option(
            "--preserve", panel=_OUTPUTS, help="Give outputs their inputs' times and permissions."
        ),
    ] = False
    strip: pictures.StripPrivate = False
    strip_all: pictures.StripAll = False
    background: pictures.Background = "white"
    no_auto_orient: pictures.NoAutoOrient = False
    to_srgb: pictures.ToSrgb = False
    exact: pictures.Exact = False
    frame: pictures.FrameNumber = None
    strict: pictures.Strict = False
    device: Annotated[
        str,
        _option(
            "--device",
            metavar="DEVICE",
            panel=_RUNNING,
            autocompletion=lambda: ["auto", "cpu", "cuda", "cuda:all"],
            help="Where the operators run: auto, cpu, cuda, cuda:N, or cuda:all for all GPUs, "
            "which share the images.",
        ),
    ] = "auto"
    codec: Annotated[
        Literal["auto", "cpu", "gpu"],
        _option(
            panel=_RUNNING,
            help="What decodes and encodes JPEGs: nvImageCodec on the GPU, or the CPU, to the "
            "bit alike everywhere; auto: the CPU.",
        ),
    ] = "auto"
    batch_size: Annotated[
        int | None,
        _option(min=1, panel=_RUNNING, show_default="by memory", help="Most images in a batch."),
    ] = None
    streams: Annotated[
        int, _option(min=1, panel=_RUNNING, help="GPU streams that batches take in turn.")
    ] = 2
    jobs: Annotated[
        int | None,
        _option(
            "--threads",
            "--jobs",
            "-j",
            min=1,
            panel=_RUNNING,
            show_default="one a core",
            help="Threads that decode, encode, and on the CPU run the operators.",
        ),
    ] = None
    max_memory: Annotated[
        str | None,
        _option(
            metavar="SIZE",
            panel=_RUNNING,
            show_default="by threads",
            help="Most memory for pixels in flight, such as 500M or 2G.",
        ),
    ] = None
    max_pixels: Annotated[
        int | None,
        _option(
            min=1,
            panel=_RUNNING,
            show_default="500 million",
            help="Refuse an image of more pixels than this.",
        ),
    ] = None
    fail_on: Annotated[
        Literal["none", "truncated", "error", "warning"],
        _option(
            metavar="WHAT",
            panel=_RUNNING,
            help="What an image fails on: none, truncated, error or warning; with none, broken "
            "files are kept as far as they go.",
        ),
    ] = "error"
    fail_fast: Annotated[
        bool, _option("--fail-fast", panel=_RUNNING, help="Stop at the first failed image.")
    ] = False
    max_errors: Annotated[
        int | None,
        _option(min=1, panel=_RUNNING, show_default="no limit", help="Stop at so many failures."),
    ] = None
    cluster: Annotated[
        str | None,
        _option(
            metavar="ADDRESS|local:N",
            panel=_RUNNING,
            help="Hand the work to a Dask scheduler's workers, or to N processes started here.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        _option(
            metavar="I/N",
            panel=_RUNNING,
            help="Do share I of N, of the same inputs for each I; reports get names of their own.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        _option("--dry-run", panel=_REPORTING, help="Print the plan as JSON and touch nothing."),
    ] = False
    explain: Annotated[
        bool,
        _option(
            "--explain",
            panel=_REPORTING,
            help="Print which steps share a launch and the bytes each moves; touch nothing.",
        ),
    ] = False
    check: Annotated[
        bool,
        _option(
            "--check",
            panel=_REPORTING,
            help="Write nothing; fail where an output is missing or shows other pixels.",
        ),
    ] = False
    report: Annotated[
        str | None,
        _option(
            metavar="FILE.json|.csv|.html",
            panel=_REPORTING,
            help="Write timings, with a row an image; as .html a page to look at.",
        ),
    ] = None
    trace: Annotated[
        str | None,
        _option(
            metavar="FILE.json",
            panel=_REPORTING,
            help="Write when each stage was busy, in Chrome's trace format.",
        ),
    ] = None
    progress: Annotated[
        Literal["auto", "always", "never"],
        _option(
            panel=_REPORTING, help="Show a bar; auto: on a terminal, elsewhere a line at times."
        ),
    ] = "auto"
    quiet: Annotated[
        bool,
        _option(
            "--quiet", "-q", panel=_REPORTING, help="Print nothing but failures and their tips."
        ),
    ] = False
    verbose: Annotated[
        bool, _option("--verbose", "-v", panel=_REPORTING, help="Print each file.")
    ] = False


def parameters() -> list[Parameter]:
    """Return the options as Typer reads them from a signature."""
    hints = get_type_hints(Wishes, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=None if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(Wishes)
    ]


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def nbytes(text: str | None, option: str) -> int | None:
    """Return a size such as ``500M`` in bytes; K, M, G and T are powers of 1000, KiB of 1024."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if found is None or (found[3] and not found[2]):
        raise UsageError(f"{option}: must be a size such as 500M or 2G, got {text!r}")
    unit = _UNITS[found[2].upper()]
    factor = 1024 ** (list(_UNITS.values()).index(unit)) if found[3] else unit
    size = int(float(found[1]) * factor)
    if size < 1:
        raise UsageError(f"{option}: must be at least one byte, got {text!r}")
    return size

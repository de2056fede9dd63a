"""Options of every command on what a file holds beside plain pixels, and what is kept of it."""

from typing import TYPE_CHECKING, Annotated

import typer

from cvcli.errors import UsageError

if TYPE_CHECKING:
    from cvcli.batch.album import Care

_PANEL = "Pictures"

Quality = Annotated[
    str,
    typer.Option(
        metavar="keep|1..100",
        rich_help_panel="Outputs",
        help="Quality of lossy formats; keep: as the input, or JPEG 90, WebP 80, AVIF 75.",
    ),
]
StripPrivate = Annotated[
    bool,
    typer.Option(
        "--strip",
        rich_help_panel=_PANEL,
        help="Drop EXIF, XMP, IPTC, comments and text; keep colour profiles and resolution.",
    ),
]
StripAll = Annotated[
    bool, typer.Option("--strip-all", rich_help_panel=_PANEL, help="Drop all metadata.")
]
Background = Annotated[
    str,
    typer.Option(
        metavar="COLOUR",
        rich_help_panel=_PANEL,
        help="What alpha is flattened on where a format can't hold it: a name or #rrggbb.",
    ),
]
NoAutoOrient = Annotated[
    bool,
    typer.Option(
        "--no-auto-orient",
        rich_help_panel=_PANEL,
        help="Leave pixels and orientation tag as they are stored.",
    ),
]
ToSrgb = Annotated[
    bool,
    typer.Option(
        "--to-srgb",
        rich_help_panel=_PANEL,
        help="Convert colours to sRGB through the input's profile.",
    ),
]
FrameNumber = Annotated[
    int | None,
    typer.Option(
        "--frame",
        min=0,
        metavar="N",
        rich_help_panel=_PANEL,
        show_default="all, as numbered files where a format holds one",
        help="Take one picture of an animation or document, counted from 0.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        rich_help_panel=_PANEL,
        help="Fail an image rather than lose depth, alpha, frames or metadata.",
    ),
]

Lossless = Annotated[
    bool,
    typer.Option(
        "--lossless",
        rich_help_panel="Outputs",
        help="Fail an image rather than encode it with loss. JPEG is flipped, turned by quarters "
        "and cropped without decoding it, by whole blocks; WebP is lossless.",
    ),
]

Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        rich_help_panel=_PANEL,
        help="Decode every pixel of JPEGs, also where a resize makes them an eighth or less.",
    ),
]


def care(
    *,
    strip: StripPrivate = False,
    strip_all: StripAll = False,
    background: Background = "white",
    no_auto_orient: NoAutoOrient = False,
    to_srgb: ToSrgb = False,
    frame: FrameNumber = None,
    strict: Strict = False,
    lossless: Lossless = False,
    exact: Exact = False,
) -> "Care":
    """What the options ask for; `UsageError` for a colour that is none, or a contradiction."""
    from cvcli.batch.album import Care, parse_colour

    if lossless and to_srgb:
        raise UsageError("--lossless and --to-srgb: only one of them can be given")
    return Care(
        strip="all" if strip_all else "private" if strip else "none",
        background=parse_colour(background),
        auto_orient=not no_auto_orient,
        to_srgb=to_srgb,
        frame=frame,
        strict=strict,
        lossless=lossless,
        shrink=not exact,
    )


def quality_of(text: str, *, lossless: bool = False) -> int | None:
    """The quality that is asked for; None keeps the input's."""
    if text == "keep":
        return None
    if lossless:
        raise UsageError("--lossless and --quality: only one of them can be given")
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 100:
        return int(text)
    raise UsageError(f"--quality must be keep or in 1..100, got {text!r}")

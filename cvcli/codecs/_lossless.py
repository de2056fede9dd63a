"""Files written without a loss: of JPEG by moving it, of others by their own nature."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cvcli.codecs._base import Header, library_errors
from cvcli.codecs._metadata import Metadata

if TYPE_CHECKING:
    from cvcli.core.turn import Turn

# What rounds, or leaves out colours, whatever it is asked for.
_LOSSY = frozenset(("JPEG", "AVIF", "GIF"))
_INKED = ("JPEG", "TIFF")
_INKS = 4
QUALITY = 100
"""Of formats that are lossless only at this one."""


def is_lossless(format: str) -> bool:
    """Whether `encode` keeps every pixel that the format can hold, with `QUALITY`."""
    return format not in _LOSSY


def inked(header: Header) -> Header:
    """The header of pixels that stay CMYK, as four channels; others as they are."""
    if header.mode != "CMYK":
        return header
    return replace(header, spec=replace(header.spec, channels=_INKS))


def keeps_inks(header: Header, format: str) -> bool:
    """Whether pixels that are only moved can stay CMYK."""
    return header.mode == "CMYK" and header.format == format in _INKED and header.frames == 1


def has_inks(header: Header) -> bool:
    """Whether the pixels are to stay CMYK."""
    return header.mode == "CMYK" and header.spec.channels == _INKS


def turn_refusal(header: Header, turn: Turn) -> str | None:
    """Why a JPEG file can't take a turn without being decoded; None if it can."""
    from cvcli.codecs import jpeg

    return jpeg.turn_refusal(header, turn)


def moved(data: bytes, turn: Turn, metadata: Metadata) -> bytes:
    """A JPEG file moved without decoding it; ``metadata`` has been `prepared`.

    Raises ImageError for a broken file, whose pixels would be made up.
    """
    from cvcli.codecs import jpeg

    with library_errors("JPEG", "decode"):
        return jpeg.moved(data, turn, metadata)

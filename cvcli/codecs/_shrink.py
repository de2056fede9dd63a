"""Images that can be decoded smaller than they are, which takes less time."""

from __future__ import annotations

from dataclasses import replace

from cvcli.codecs._base import Header

# Half the size takes libjpeg, by way of Pillow, about as long as the whole.
_FACTORS = (8, 4)


def shrinks(header: Header) -> tuple[int, ...]:
    """The factors by which sides can be made smaller on decoding, the largest first."""
    plain = header.mode in ("L", "RGB") and header.spec.dtype == "uint8" and header.frames == 1
    known = header.format == "JPEG" and header.coding.unit is not None
    return _FACTORS if plain and known else ()


def shrunk(header: Header, factor: int) -> Header:
    """The header of an image that is decoded smaller, by one of `shrinks`.

    A pixel stands for a square of ``factor`` pixels a side; of the last ones of a row and a
    column a part may lie outside the image.
    """
    height, width = (-(-side // factor) for side in (header.spec.height, header.spec.width))
    return replace(header, spec=replace(header.spec, height=height, width=width), shrink=factor)

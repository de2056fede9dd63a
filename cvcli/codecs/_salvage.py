"""Broken files decoded as far as they go, without any setting that other threads would feel.

JPEG and PNG are mended first. Libraries that write rows as they decode them leave those behind
when they fail: libwebp and libtiff in the array that they were given, Pillow's decoders in the
image. What is lost is zero, so black or transparent. JPEG 2000, AVIF, and what else is decoded as
a whole, give nothing; nor does a file whose header or directory is lost.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cvcli.codecs import _repair, _riff, tiff
from cvcli.codecs._base import Header, borrowed
from cvcli.codecs._frames import SERIES
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

# What holds several pictures that count, and gives the whole ones.
_IN_TURN = SERIES - {"AVIF"}
_WHOLE_ONLY = frozenset(("JPEG2000", "AVIF", "ICO", "ICNS", "NPY"))
_OFFSETS, _COUNTS = 273, 279


def salvageable(header: Header) -> bool:
    """Return whether a broken file like this may be read as far as it goes.

    Of several pictures that is up to the first broken one, of which nothing is taken.
    """
    if header.frames > 1 and header.format in SERIES:
        return header.format in _IN_TURN
    return header.format not in _WHOLE_ONLY


def salvage(data: bytes, header: Header, out: Pixels) -> bool:
    """Write what there is of a picture into ``out``, zeros elsewhere; return whether any is.

    Of several pictures that count there is nothing.
    """
    if not salvageable(header) or (header.frames > 1 and header.format in SERIES):
        return False
    out[...] = 0
    if header.format in ("JPEG", "PNG"):
        return _mended(data, header, out)
    with suppress(Exception):
        if header.format == "WEBP":
            _webp(data, header, out)
        elif header.format == "TIFF":
            _tiff(data, header, out)
        else:
            out[...] = _by_pillow(data, header)
    # As bytes: broken floats may be such that NumPy warns of them.
    return bool(out.reshape(-1).view("uint8").any())


def _mended(data: bytes, header: Header, out: Pixels) -> bool:
    from cvcli.codecs import decode

    mended = _repair.repaired(data)
    try:
        decode(mended or b"", header, out)
    except ImageError:
        return False
    return mended is not None


def _webp(data: bytes, header: Header, out: Pixels) -> None:
    """Chunks that claim more than there is would be refused before the first row."""
    import imagecodecs

    file = bytearray(data) + bytes(len(data) % 2)
    struct.pack_into("<I", file, 4, len(file) - 8)
    for _, start in _riff.chunks(data):
        (size,) = struct.unpack_from("<I", file, start - 4)
        struct.pack_into("<I", file, start - 4, min(size, len(file) - start))
    imagecodecs.webp_decode(bytes(file), hasalpha=header.spec.channels == 4, out=borrowed(out))


def _tiff(data: bytes, header: Header, out: Pixels) -> None:
    form = tiff._layout(data)
    tags = tiff._tags(data, form, form.first)
    if tiff._direct(tags) is None:
        out[...] = _by_pillow(data, header)
        return
    # A strip that ends early would not be begun.
    strips = zip(tags.get(_OFFSETS, ()), tags.get(_COUNTS, ()), strict=True)
    end = max((offset + count for offset, count in strips), default=0)
    with suppress(Exception):
        whole = data.ljust(min(end, len(data) + out.nbytes), b"\0")
        tiff.decode_page(whole, header, tags, 0, out)
        return
    tiff.finish(out, header, tags)


def _by_pillow(data: bytes, header: Header) -> Pixels:
    from cvcli.codecs import pillow

    image: Any = pillow.opened(data, header.format)
    try:
        image.load()
    except Exception:
        if image._im is None:
            raise
        image.tile = []
        if header.format != "TIFF":  # which would be turned
            image.load_end()
    return pillow.pixels(image, header.spec)

"""PNG: every depth and colour type, interlaced or not; APNG gives its default image.

16 bits stay uint16, 1/2/4-bit gray becomes uint8 over its whole range, a palette becomes RGB, and
a tRNS chunk of any kind becomes an alpha channel, which is what a viewer shows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cvcli.codecs import _chunks as _extras
from cvcli.codecs import _ifd, _palette, _png_native
from cvcli.codecs._base import Header, Saving, borrowed, dtype_refusal, pixel_packed
from cvcli.codecs._metadata import Metadata
from cvcli.codecs._metadata import carried as carried_fields
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

RANK = 0
SUFFIXES = dict.fromkeys((".png", ".apng"), "PNG")
SIGNATURE = _png_native.SIGNATURE

_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
_MODES = {0: "L", 2: "RGB", 3: "P", 4: "LA", 6: "RGBA"}
_GRAY, _RGB, _PALETTE = 0, 2, 3
_OURS = frozenset(("L", "LA", "RGB", "RGBA"))
_NEEDED = frozenset((b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"))
# Rows that are looked at, spread over the image, to tell a drawing from a photograph.
_SAMPLED_ROWS = 64
_RLE, _FILTER_NONE, _FILTER_PAETH = 3, 8, 128


class _Chunk(NamedTuple):
    kind: bytes
    start: int
    end: int

    def body(self, data: bytes) -> bytes:
        return data[self.start : self.end]


def matches(data: bytes) -> bool:
    return data.startswith(SIGNATURE)


def reads() -> dict[str, str]:
    return SUFFIXES


def writes() -> dict[str, str]:
    return SUFFIXES


def versions() -> dict[str, str]:
    import imagecodecs

    return {"libpng": imagecodecs.png_version().split(" ")[-1].split("-")[-1]}


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """Chunks that lie in ``data`` with their check sums, up to IEND."""
    at, kind = len(SIGNATURE), b""
    while kind != b"IEND" and at + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if at + 12 + size > len(data):
            return
        yield _Chunk(kind, at + 8, at + 8 + size)
        at += 12 + size


def probe(data: bytes) -> Header:
    """Header from IHDR and the small chunks; ImageError if IHDR is short or senseless."""
    if len(data) < 33:
        raise ImageError("truncated PNG header")
    size, kind, width, height, depth, colour = struct.unpack_from(">I4sIIBB", data, 8)
    if size != 13 or kind != b"IHDR" or depth not in _DEPTHS.get(colour, ()):
        raise ImageError("corrupt PNG header")
    found: dict[bytes, bytes] = {}
    for chunk in _chunks(data):
        if chunk.kind in (b"PLTE", b"tRNS", b"acTL", b"eXIf") and chunk.kind not in found:
            found[chunk.kind] = chunk.body(data)
        elif chunk.kind == b"IDAT":
            # Only eXIf means anything behind the pixels.
            found = {b"tRNS": b"", b"acTL": b""} | found
    alpha = _keeps_transparency(colour, found.get(b"PLTE", b""), found.get(b"tRNS", b""))
    spec = ImageSpec(height, width, _CHANNELS[colour] + alpha, "uint16" if depth > 8 else "uint8")
    mode = {1: "1", 16: "I;16"}.get(depth, "L") if colour == _GRAY else _MODES[colour]
    frames = int.from_bytes(found.get(b"acTL", b"")[:4], "big")
    exif = found.get(b"eXIf") or _hex_exif(data)
    plays = int.from_bytes(found.get(b"acTL", b"")[4:8], "big")
    return Header("PNG", spec, _ifd.orientation(exif), max(1, frames), mode, plays=plays)


def _hex_exif(data: bytes) -> bytes | None:
    if b"Raw profile type " not in data:
        return None
    texts = (c for c in _chunks(data) if c.kind in (b"tEXt", b"zTXt"))
    blocks = (_extras.hex_exif(c.kind, c.body(data)) for c in texts)
    return next((block for block in blocks if block is not None), None)


def _keeps_transparency(colour: int, palette: bytes, key: bytes) -> bool:
    """Whether a tRNS chunk counts; libpng drops one of the wrong length or colour type."""
    if colour == _PALETTE:
        return 0 < len(key) <= len(palette) // 3
    return len(key) == {_GRAY: 2, _RGB: 6}.get(colour)


def refuse_cut(data: bytes) -> None:
    """Raise ImageError if IEND is missing."""
    _refuse_cut(list(_chunks(data)))


def _refuse_cut(chunks: list[_Chunk]) -> None:
    if not chunks or chunks[-1].kind != b"IEND":
        raise ImageError("truncated PNG data")


def decode(data: bytes, header: Header, out: Pixels) -> None:
    """Decode into ``out``; ImageError when IEND is missing, a check sum or the data are wrong."""
    import imagecodecs

    chunks = list(_chunks(data))
    _refuse_cut(chunks)
    if header.mode in _OURS and _png_native.decode(data, chunks, out):
        return
    imagecodecs.png_decode(_without_extras(data, chunks, header), out=borrowed(out))


def _without_extras(data: bytes, chunks: list[_Chunk], header: Header) -> bytes:
    """The file without chunks that say nothing of pixels: libpng prints its doubts about those."""
    opaque = header.spec.channels == {"P": 3, "RGB": 3}.get(header.mode, 1)
    needed = _NEEDED - {b"tRNS"} if opaque or header.mode in ("LA", "RGBA") else _NEEDED
    if all(chunk.kind in needed for chunk in chunks):
        return data
    kept = (data[c.start - 8 : c.end + 4] for c in chunks if c.kind in needed)
    return SIGNATURE + b"".join(kept)


def refusal(spec: ImageSpec, format: str) -> str | None:
    return dtype_refusal(spec, format, ("uint8", "uint16"))


def metadata(data: bytes) -> Metadata:
    wanted = _extras.KINDS | _extras.COLOUR.keys()
    chunks = list(_chunks(data))
    kinds = [chunk.kind for chunk in chunks]
    found = _extras.read((c.kind, c.body(data)) for c in chunks if c.kind in wanted)
    if b"acTL" in kinds and b"IDAT" in kinds[: (*kinds, b"fcTL").index(b"fcTL")]:
        lost = "the still image that is no part of the animation is dropped"
        return replace(found, cut=(*found.cut, lost))
    return found


def carried(metadata: Metadata, format: str) -> Metadata:
    return carried_fields(metadata, format, _extras.FIELDS)


def stored_channels(spec: ImageSpec, format: str) -> int:
    return spec.channels


def encode(image: Pixels, format: str, saving: Saving) -> bytes:
    """Lossless at a speed setting; a quality has no meaning here.

    What comes from a palette or from bits goes back to them if it still can.
    """
    file = _palette.png_of(image, saving.mode) or _true_colour(pixel_packed(image))
    return _extras.attach(file, saving.metadata)


def _true_colour(packed: Pixels) -> bytes:
    """Photographs: Paeth filter and run lengths, a fraction of the time of zlib level 1 and about
    the size of level 6. Drawings: no filter and zlib level 1, where run lengths would take 7 x the
    room.
    """
    import imagecodecs

    if _is_drawing(packed):
        return bytes(imagecodecs.png_encode(packed, level=1, filter=_FILTER_NONE))
    file = _png_native.encode(packed)
    if file is None:
        file = bytes(imagecodecs.png_encode(packed, level=1, strategy=_RLE, filter=_FILTER_PAETH))
    return file


def _is_drawing(image: Pixels) -> bool:
    """Whether most samples equal their left neighbour, judged from some rows."""
    import numpy as np

    rows = image[:: max(1, image.shape[0] // _SAMPLED_ROWS)]
    equal = rows[:, 1:] == rows[:, :-1]
    return bool(np.count_nonzero(equal) > 0.6 * equal.size)

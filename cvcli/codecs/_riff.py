"""Metadata of WebP files: RIFF chunks and the flags that announce them, read and put in."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cvcli.codecs import _exif
from cvcli.codecs._metadata import Metadata

FIELDS = frozenset(("exif", "xmp", "icc"))
ANIMATED, XMP, EXIF, ALPHA, ICC = 0x02, 0x04, 0x08, 0x10, 0x20
_NAMES = {b"ICCP": "icc", b"EXIF": "exif", b"XMP ": "xmp"}
_EXTENDED = b"VP8X"


def chunks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Name and start of the body of each chunk."""
    at = 12
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        yield kind, at + 8
        at += 8 + size + size % 2


def body(data: bytes, start: int) -> bytes:
    """Body of the chunk that starts there, as much of it as there is."""
    return data[start : start + struct.unpack_from("<I", data, start - 4)[0]]


def read(data: bytes) -> Metadata:
    """Metadata of a file; of chunks of one name the first counts."""
    found: dict[str, bytes] = {}
    for kind, start in chunks(data):
        if kind in _NAMES:
            found.setdefault(_NAMES[kind], body(data, start))
    if "exif" in found:
        found["exif"] = _exif.bare(found["exif"])
    return Metadata(found.get("exif"), found.get("xmp"), found.get("icc"))


def attach(file: bytes, metadata: Metadata, width: int, height: int) -> bytes:
    """The file in the extended layout, its metadata around the picture."""
    if not (metadata.exif or metadata.xmp or metadata.icc):
        return file
    flags, picture = 0, b""
    for kind, start in chunks(file):
        content = body(file, start)
        if kind == _EXTENDED:
            flags = content[0] & (ANIMATED | ALPHA)
        elif kind not in _NAMES:
            picture += _chunk(kind, content)
            flags |= ALPHA if kind == b"ALPH" or _lossless_alpha(kind, content) else 0
    before, after = b"", b""
    if metadata.icc:
        before, flags = _chunk(b"ICCP", metadata.icc), flags | ICC
    if metadata.exif:
        after, flags = _chunk(b"EXIF", metadata.exif), flags | EXIF
    if metadata.xmp:
        after, flags = after + _chunk(b"XMP ", metadata.xmp), flags | XMP
    size = b"".join((side - 1).to_bytes(3, "little") for side in (width, height))
    head = _chunk(_EXTENDED, struct.pack("<B3x", flags) + size)
    content = b"WEBP" + head + before + picture + after
    return b"RIFF" + struct.pack("<I", len(content)) + content


def _lossless_alpha(kind: bytes, content: bytes) -> bool:
    return kind == b"VP8L" and len(content) >= 5 and bool(content[4] >> 4 & 1)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)

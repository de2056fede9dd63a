"""Metadata of JPEG files: application segments and comments, read and put in."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cvcli.codecs import _exif
from cvcli.codecs._metadata import Density, Metadata

FIELDS = frozenset(("exif", "xmp", "icc", "resources", "density", "comments"))
_APP0, _APP1, _APP2, _APP13, _COM = 0xE0, 0xE1, 0xE2, 0xED, 0xFE
_XMP, _XMP_MORE = b"http://ns.adobe.com/xap/1.0/\0", b"http://ns.adobe.com/xmp/extension/\0"
_ICC, _PHOTOSHOP, _JFIF = b"ICC_PROFILE\0", b"Photoshop 3.0\0", b"JFIF\0"
_UNITS = {0: "", 1: "inch", 2: "cm"}
# What a segment holds besides the two bytes of its length.
_MOST = 65533
_MOST_ICC_PARTS = 255


def read(segments: Iterator[tuple[int, bytes]]) -> Metadata:
    """Metadata of the segments (marker, body) in front of the first scan."""
    exif = xmp = density = None
    comments, packets, profile, resources = [], [], [], b""
    for kind, body in segments:
        if kind == _APP0 and body.startswith(_JFIF) and density is None:
            density = _density(body)
        elif kind == _APP1 and body.startswith(_exif.PREFIX):
            exif = exif or _exif.bare(body)
        elif kind == _APP1 and body.startswith(_XMP):
            xmp = xmp or body[len(_XMP) :]
        elif kind == _APP1 and body.startswith(_XMP_MORE):
            packets.append(body)
        elif kind == _APP2 and body.startswith(_ICC):
            profile.append(body[len(_ICC) :])
        elif kind == _APP13 and body.startswith(_PHOTOSHOP):
            resources += body[len(_PHOTOSHOP) :]
        elif kind == _COM:
            comments.append(body)
    found = Metadata(
        exif, xmp, None, resources or None, density, tuple(comments), packets=tuple(packets)
    )
    return _with_profile(found, profile)


def _density(body: bytes) -> Density | None:
    if len(body) < 12:
        return None
    unit, x, y = struct.unpack_from(">BHH", body, 7)
    told = x and y and unit in _UNITS and (unit, x, y) != (0, 1, 1)
    return Density(x, y, _UNITS[unit]) if told else None


def _with_profile(found: Metadata, parts: list[bytes]) -> Metadata:
    """Join the numbered parts of a profile; one that is not whole is dropped."""
    if not parts:
        return found
    numbered = {part[0]: part[2:] for part in parts if len(part) > 2}
    count = parts[0][1] if len(parts[0]) > 1 else 0
    if sorted(numbered) != list(range(1, count + 1)):
        return found.losing("an ICC profile with parts missing is dropped")
    return found.losing(icc=b"".join(numbered[i] for i in range(1, count + 1)))


def limited(metadata: Metadata) -> Metadata:
    """Without what is too long for segments."""
    if metadata.exif and len(metadata.exif) > _MOST - len(_exif.PREFIX):
        metadata = metadata.losing("EXIF of more than 64 kB does not fit JPEG", exif=None)
    if metadata.xmp and len(metadata.xmp) > _MOST - len(_XMP):
        metadata = metadata.losing("XMP of more than 64 kB does not fit JPEG", xmp=None)
    if metadata.icc and len(metadata.icc) > _MOST_ICC_PARTS * (_MOST - len(_ICC) - 2):
        metadata = metadata.losing("the ICC profile is too long for JPEG", icc=None)
    return metadata


def attach(file: bytes | bytearray | memoryview, metadata: Metadata) -> bytes:
    """The file with its metadata behind the JFIF segment, where readers look for it.

    It is copied once, and a large file takes long to copy.
    """
    whole, at, jfif = memoryview(file), 2, b""
    if bytes(whole[2:4]) == b"\xff\xe0" and whole[6:11] == _JFIF:
        at = 4 + struct.unpack_from(">H", file, 4)[0]
        jfif = _with_density(bytes(whole[2:at]), metadata.density)
    blocks = [_segment(kind, body) for kind, body in _bodies(metadata)]
    return b"".join((whole[:2], jfif, *blocks, whole[at:]))


def _with_density(jfif: bytes, density: Density | None) -> bytes:
    if density is None:
        return jfif
    unit = 0 if not density.unit else 2 if density.unit == "cm" else 1
    x, y = density.per({0: "", 1: "inch", 2: "cm"}[unit])
    values = [min(max(1, round(value)), 65535) for value in (x, y)]
    return jfif[:11] + struct.pack(">BHH", unit, *values) + jfif[16:]


def _bodies(metadata: Metadata) -> Iterator[tuple[int, bytes]]:
    if metadata.exif:
        yield _APP1, _exif.PREFIX + metadata.exif
    if metadata.xmp:
        yield _APP1, _XMP + metadata.xmp
        for packet in metadata.packets:
            yield _APP1, packet
    if metadata.resources:
        for part in _parts(metadata.resources, _MOST - len(_PHOTOSHOP)):
            yield _APP13, _PHOTOSHOP + part
    if metadata.icc:
        parts = _parts(metadata.icc, _MOST - len(_ICC) - 2)
        for number, part in enumerate(parts, 1):
            yield _APP2, _ICC + bytes((number, len(parts))) + part
    for comment in metadata.comments:
        for part in _parts(comment, _MOST):
            yield _COM, part


def _parts(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _segment(kind: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, kind, len(body) + 2) + body

"""The front of a file of several pictures as a file of its own, whatever becomes of what is behind.

Readers refuse a file that is cut, or take the cut for the end; pictures in front of it are whole
nevertheless. Only layouts are read here, so a picture that is there may still be broken.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cvcli.codecs import _chunks, _gif, _ifd, _riff
from cvcli.codecs._png_native import SIGNATURE


def held(data: bytes, format: str) -> int | None:
    """Pictures that are there, the last one maybe in part; None where that isn't known."""
    if format == "GIF":
        return len(_gif.ends(data)[0])
    if format == "WEBP":
        return len(_webp_ends(data))
    if format == "TIFF":
        return len(_ifd.chain(data, _ifd.layout(data)))
    return sum(kind == b"fcTL" for kind, _ in _png_chunks(data)) if format == "PNG" else None


def front(data: bytes, format: str, count: int) -> bytes:
    """A file of the first ``count`` pictures; ``data`` itself where they aren't there, or alone."""
    if format == "GIF":
        ends = _gif.ends(data)[0]
        return data[: ends[count - 1]] + b";" if count <= len(ends) else data
    if format == "WEBP":
        return _webp(data, count)
    if format == "PNG":
        return _apng(data, count)
    return _tiff(data, count) if format == "TIFF" else data


def _webp_ends(data: bytes) -> list[int]:
    found = []
    for kind, start in _riff.chunks(data):
        (size,) = struct.unpack_from("<I", data, start - 4)
        if kind == b"ANMF" and start + size <= len(data):
            found.append(start + size)
    return found


def _webp(data: bytes, count: int) -> bytes:
    ends = _webp_ends(data)
    if count > len(ends):
        return data
    file = data[: ends[count - 1]]
    file += bytes(len(file) % 2)
    return file[:4] + struct.pack("<I", len(file) - 8) + file[8:]


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and all bytes of the chunks that are there; a wrong check sum stays a wrong one."""
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if at + 12 + size <= len(data):
            yield kind, data[at : at + 12 + size]
        at += 12 + size


def _apng(data: bytes, count: int) -> bytes:
    parts, begun = [], 0
    for kind, part in _png_chunks(data):
        begun += kind == b"fcTL"
        if begun > count or kind == b"IEND":
            break
        known = kind == b"acTL" and len(part) == 20
        parts.append(_chunks.chunk(kind, struct.pack(">I", count) + part[12:16]) if known else part)
    if begun < count:
        return data
    return SIGNATURE + b"".join(parts) + _chunks.chunk(b"IEND", b"")


def _tiff(data: bytes, count: int) -> bytes:
    form = _ifd.layout(data)
    places, cut = _ifd.links(data, form)
    return _ifd.unlinked(data, form, places[-1]) if cut and count <= len(places) else data

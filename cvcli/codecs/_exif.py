"""EXIF blocks: brought in line with the pixels, in place, so that makers' notes stay valid.

A block is a small TIFF file: offsets count from its start, those inside a maker's note too. So
nothing is moved: numbers are overwritten where they are.
"""

from __future__ import annotations

import struct

from cvcli.codecs import _entries, _ifd
from cvcli.codecs._entries import BYTE, EXIF_IFD, LONG, SHORT, Directory

PREFIX = b"Exif\0\0"
_WIDTH, _HEIGHT, _PIXEL_X, _PIXEL_Y = 0x0100, 0x0101, 0xA002, 0xA003
# Where the thumbnail's directory says that its JPEG or raw bytes are, and how many.
_STREAMS = ((0x0201, 0x0202), (0x0111, 0x0117))
_CODES = {BYTE: "B", SHORT: "H", LONG: "I"}


def bare(block: bytes) -> bytes:
    """A block without the prefix that JPEG puts in front of it."""
    return block.removeprefix(PREFIX)


def corrected(block: bytes, width: int, height: int, *, upright: bool) -> bytes:
    """The block of an image of another size: no thumbnail, and with ``upright`` orientation 1.

    ValueError or struct.error for a block that is no directory.
    """
    form = _ifd.layout(block)
    if form.big:
        raise ValueError("a BigTIFF block")
    _entries.located(block, form, form.first)
    edited = bytearray(block)
    first = {_WIDTH: width, _HEIGHT: height} | ({_ifd.ORIENTATION: 1} if upright else {})
    pointer = _overwrite(edited, form, form.first, first)
    if pointer is not None:
        try:
            _overwrite(edited, form, pointer, {_PIXEL_X: width, _PIXEL_Y: height})
        except struct.error:
            pointer = None
    return _without_thumbnail(edited, form)


def _overwrite(block: bytearray, form: _ifd.Layout, at: int, values: dict[int, int]) -> int | None:
    """Set tags of one number each; return where the EXIF directory is, if one is pointed to."""
    pointer = None
    for entry, start in _entries.located(bytes(block), form, at):
        if entry.tag == EXIF_IFD and entry.kind == LONG:
            pointer = _entries.whole(entry, form.order)
        value, code = values.get(entry.tag), _CODES.get(entry.kind)
        if value is None or code is None:
            continue
        if value < 1 << 8 * struct.calcsize("=" + code):
            struct.pack_into(form.order + code, block, start, value)
    return pointer


def _without_thumbnail(block: bytearray, form: _ifd.Layout) -> bytes:
    """Unlink the directories behind the first and blank their pictures; cut blank ends off."""
    (count,) = struct.unpack_from(form.order + "H", block, form.first)
    link = form.first + 2 + 12 * count
    if link + 4 > len(block):
        return bytes(block)
    (at,) = struct.unpack_from(form.order + "I", block, link)
    struct.pack_into(form.order + "I", block, link, 0)
    if at <= link or at >= len(block):
        return bytes(block)
    try:
        found = {e.tag: e for e, _ in _entries.located(bytes(block), form, at)}
    except struct.error:
        return bytes(block)
    spans = [(at, at + 2 + 12 * struct.unpack_from(form.order + "H", block, at)[0] + 4)]
    for where, size in _STREAMS:
        if where in found and size in found:
            start, length = (_entries.whole(found[tag], form.order) for tag in (where, size))
            spans.append((start, start + length))
    return _blanked(
        block, [span for span in spans if link + 4 <= span[0] and span[1] <= len(block)]
    )


def _blanked(block: bytearray, spans: list[tuple[int, int]]) -> bytes:
    for start, end in spans:
        block[start:end] = bytes(end - start)
    for start, end in sorted(spans, reverse=True):
        if end == len(block):
            del block[start:]
    return bytes(block)


def orientation_only(value: int) -> bytes:
    """The smallest block that tells an orientation."""
    return from_directory(Directory((_entries.numbers(_ifd.ORIENTATION, SHORT, "<", value),)), "<")


def from_directory(directory: Directory, order: str) -> bytes:
    """A block of its own, of tags in byte order ``order``."""
    mark = b"II" if order == "<" else b"MM"
    return mark + struct.pack(order + "HI", 42, 8) + _entries.write(directory, order, 8)

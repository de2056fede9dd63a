"""Image file directories: the tag tables that TIFF, EXIF and multi-picture blocks are made of."""

from __future__ import annotations

import struct
from typing import NamedTuple

ORIENTATION = 0x0112
_SIDES = {0x0100, 0x0101}
_LAST_KIND = 18
MPF_IMAGES = 0xB001

_KINDS = {1: "B", 3: "H", 4: "I", 16: "Q"}
_MAX_VALUES = 64


class Layout(NamedTuple):
    """How one file stores its directories."""

    order: str
    big: bool
    first: int


def layout(block: bytes) -> Layout:
    """Byte order, BigTIFF or not, and where the first directory is; ValueError if not TIFF."""
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None or len(block) < 8:
        raise ValueError("not a TIFF header")
    magic = struct.unpack_from(order + "H", block, 2)[0]
    if magic == 43:
        return Layout(order, True, struct.unpack_from(order + "Q", block, 8)[0])
    return Layout(order, False, struct.unpack_from(order + "I", block, 4)[0])


def directory(block: bytes, form: Layout, at: int) -> tuple[dict[int, tuple[int, ...]], int]:
    """Whole-number tags of the directory at ``at`` and where the next one is (0: none).

    struct.error when the directory lies past the end of ``block``; a single tag that does is
    left out, as is one of another type.
    """
    count_code, entry, pointer = ("Q", 20, "Q") if form.big else ("H", 12, "I")
    (count,) = struct.unpack_from(form.order + count_code, block, at)
    at += struct.calcsize("=" + count_code)
    (after,) = struct.unpack_from(form.order + pointer, block, at + count * entry)
    tags: dict[int, tuple[int, ...]] = {}
    for where in range(at, at + count * entry, entry):
        tag, kind = struct.unpack_from(form.order + "HH", block, where)
        values = _values(block, form, kind, where + 4)
        if values:
            tags.setdefault(tag, values)
    return tags, after


def _values(block: bytes, form: Layout, kind: int, where: int) -> tuple[int, ...]:
    code, pointer = _KINDS.get(kind), "Q" if form.big else "I"
    (count,) = struct.unpack_from(form.order + pointer, block, where)
    where += struct.calcsize("=" + pointer)
    if code is None or count == 0:
        # A type of no interest here; MPF's version and entries are of such a type.
        return ()
    count = min(count, _MAX_VALUES)
    size = struct.calcsize("=" + code) * count
    if size > struct.calcsize("=" + pointer):
        (where,) = struct.unpack_from(form.order + pointer, block, where)
    if where + size > len(block):
        return ()
    return struct.unpack_from(f"{form.order}{count}{code}", block, where)


def chain(block: bytes, form: Layout) -> tuple[int, ...]:
    """Where each directory is, at least the first; a loop or a broken link ends the chain."""
    return links(block, form)[0]


def links(block: bytes, form: Layout) -> tuple[tuple[int, ...], bool]:
    """The `chain`, and whether it ends in a link that leads out of ``block``."""
    seen: dict[int, None] = {}
    at = form.first
    while at and at not in seen:
        try:
            tags, after = directory(block, form, at)
        except struct.error:
            break
        if seen and not (tags.keys() >= _SIDES and _is_directory(block, form, at)):
            # A broken link leads anywhere, and what it finds there is no page.
            break
        seen[at] = None
        at = after
    return tuple(seen) or (form.first,), bool(seen) and at != 0 and at not in seen


def _is_directory(block: bytes, form: Layout, at: int) -> bool:
    """Whether all entries are of a type that there is: elsewhere they hardly are."""
    count_code, entry = ("Q", 20) if form.big else ("H", 12)
    (count,) = struct.unpack_from(form.order + count_code, block, at)
    at += struct.calcsize("=" + count_code)
    kinds = (
        struct.unpack_from(form.order + "H", block, where + 2)[0]
        for where in range(at, at + count * entry, entry)
    )
    return all(1 <= kind <= _LAST_KIND for kind in kinds)


def unlinked(block: bytes, form: Layout, at: int) -> bytes:
    """``block`` with the directory at ``at`` as the last one of its chain."""
    count_code, entry, nbytes = ("Q", 20, 8) if form.big else ("H", 12, 4)
    (count,) = struct.unpack_from(form.order + count_code, block, at)
    link = at + struct.calcsize("=" + count_code) + count * entry
    return block[:link] + bytes(nbytes) + block[link + nbytes :]


def tag_value(block: bytes, tag: int) -> int | None:
    """First value of ``tag`` in the first directory; None if absent or the block is broken."""
    try:
        form = layout(block)
        return directory(block, form, form.first)[0].get(tag, (None,))[0]
    except (struct.error, ValueError):
        return None


def orientation(exif: bytes | None) -> int:
    """EXIF orientation 1..8 of a block, with or without its ``Exif`` prefix; 1 if none or bad."""
    value = tag_value(exif.removeprefix(b"Exif\0\0"), ORIENTATION) if exif else None
    return valid_orientation(value)


def valid_orientation(value: object) -> int:
    return value if isinstance(value, int) and 1 <= value <= 8 else 1

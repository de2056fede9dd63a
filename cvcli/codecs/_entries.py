"""Tags of image file directories as they are stored, to be read and written whole.

`_ifd` looks up whole numbers; this carries every type, and directories within directories.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import NamedTuple

from cvcli.codecs._ifd import Layout

EXIF_IFD, GPS_IFD, INTEROP_IFD = 0x8769, 0x8825, 0xA005
SUB_DIRECTORIES = frozenset((EXIF_IFD, GPS_IFD, INTEROP_IFD))
SHORT, LONG, RATIONAL, BYTE, ASCII, UNDEFINED = 3, 4, 5, 1, 2, 7
# Bytes of a value of each type, and of the units in which its byte order goes.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
_SIZES |= {16: 8, 17: 8, 18: 8}
_UNITS = _SIZES | {5: 4, 10: 4}
_DEEPEST = 3


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One tag: its type, the number of values, and their bytes in the file's order."""

    tag: int
    kind: int
    count: int
    data: bytes


class Directory(NamedTuple):
    """Tags of one directory, and the directories that some of them point to."""

    entries: tuple[Entry, ...]
    subs: tuple[tuple[int, Directory], ...] = ()

    def get(self, tag: int) -> Entry | None:
        return next((entry for entry in self.entries if entry.tag == tag), None)


def located(block: bytes, form: Layout, at: int) -> list[tuple[Entry, int]]:
    """Each tag of the directory at ``at`` and where its values start.

    struct.error when the directory lies past the end of ``block``; a tag that does is left out.
    """
    head, width, pointer = ("Q", 20, "Q") if form.big else ("H", 12, "I")
    (number,) = struct.unpack_from(form.order + head, block, at)
    at += struct.calcsize("=" + head)
    if at + number * width > len(block):
        raise struct.error("directory past the end")
    inline = struct.calcsize("=" + pointer)
    found = []
    for where in range(at, at + number * width, width):
        tag, kind = struct.unpack_from(form.order + "HH", block, where)
        (count,) = struct.unpack_from(form.order + pointer, block, where + 4)
        start, size = where + 4 + inline, _SIZES.get(kind, 0) * count
        if size > inline:
            (start,) = struct.unpack_from(form.order + pointer, block, start)
        if size and start + size <= len(block):
            found.append((Entry(tag, kind, count, block[start : start + size]), start))
    return found


def read(block: bytes, form: Layout, at: int, depth: int = 0) -> Directory:
    """The directory at ``at`` with those that its EXIF, GPS and interoperability tags point to."""
    entries: list[Entry] = []
    subs: dict[int, Directory] = {}
    for entry, _ in located(block, form, at):
        if entry.tag not in SUB_DIRECTORIES:
            entries.append(entry)
        elif depth < _DEEPEST and entry.tag not in subs and entry.kind in (4, 13, 16, 18):
            try:
                target = whole(entry, form.order)
                subs[entry.tag] = read(block, form, target, depth + 1)
            except struct.error:
                continue
    return Directory(tuple(entries), tuple(subs.items()))


def whole(entry: Entry, order: str) -> int:
    """First value of a tag of whole numbers."""
    size = _SIZES[entry.kind]
    return int.from_bytes(entry.data[:size], "little" if order == "<" else "big")


def numbers(tag: int, kind: int, order: str, *values: int) -> Entry:
    """Tag of SHORT, LONG or RATIONAL values; a rational takes two numbers."""
    code = {SHORT: "H", LONG: "I", RATIONAL: "I"}[kind]
    count = len(values) // 2 if kind == RATIONAL else len(values)
    return Entry(tag, kind, count, struct.pack(f"{order}{len(values)}{code}", *values))


def reordered(directory: Directory, source: str, target: str) -> Directory:
    """The same values in another byte order; opaque bytes stay as they are."""
    if source == target:
        return directory
    entries = tuple(replace(entry, data=_turned(entry)) for entry in directory.entries)
    subs = ((tag, reordered(sub, source, target)) for tag, sub in directory.subs)
    return Directory(entries, tuple(subs))


def _turned(entry: Entry) -> bytes:
    unit, data = _UNITS[entry.kind], entry.data
    return b"".join(data[i : i + unit][::-1] for i in range(0, len(data), unit))


def write(directory: Directory, order: str, base: int, after: int = 0) -> bytes:
    """Bytes of a directory that starts at ``base`` (even) of a classic TIFF, values behind it.

    ``after`` is where the next directory of the chain starts.
    """
    names = {tag for tag, _ in directory.subs}
    kept = [entry for entry in directory.entries if entry.tag not in names]
    table = [(e.tag, e.kind, e.count, e.data) for e in kept]
    values_at = base + 2 + 12 * (len(kept) + len(names)) + 4
    values = b""
    for tag, sub in directory.subs:
        start = values_at + len(values)
        values += write(sub, order, start)
        table.append((tag, LONG, 1, struct.pack(order + "I", start)))
    rows = b""
    for tag, kind, count, data in sorted(table):
        if len(data) > 4:
            start = values_at + len(values)
            values += data + b"\0" * (len(data) % 2)
            data = struct.pack(order + "I", start)
        rows += struct.pack(order + "HHI", tag, kind, count) + data.ljust(4, b"\0")
    return struct.pack(order + "H", len(table)) + rows + struct.pack(order + "I", after) + values

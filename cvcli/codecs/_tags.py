"""Metadata of TIFF files: tags of a page that don't describe its pixels, read and put in."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from cvcli.codecs import _entries, _exif, _ifd
from cvcli.codecs._entries import ASCII, BYTE, LONG, RATIONAL, SHORT, UNDEFINED, Directory, Entry
from cvcli.codecs._metadata import Density, Metadata, iptc_resource
from cvcli.errors import ImageError

FIELDS = frozenset(("exif", "xmp", "icc", "resources", "density", "comments"))
_DESCRIPTION, _X, _Y, _UNIT = 270, 282, 283, 296
_XMP, _IPTC, _RESOURCES, _ICC = 700, 33723, 34377, 34675
_STRIPS, _STRIP_SIZES = 273, 279
_RESOLUTION = frozenset((_X, _Y, _UNIT))
# How the pixels are stored, and what has a field of its own in `Metadata`.
_PIXELS = frozenset((*range(254, 260), *range(262, 267), *range(273, 274), *range(277, 282)))
_PIXELS |= {284, 288, 289, 290, 291, 292, 293, 300, 317, *range(320, 348), *range(512, 533)}
_OWN = _RESOLUTION | {_XMP, _IPTC, _RESOURCES, _ICC}
_RAW = frozenset(range(50706, 51200))
_GEOGRAPHIC = frozenset((33550, 33922, 34264, 34735, 34736, 34737))
_UNITS = {1: "", 2: "inch", 3: "cm"}
_MOST = 1 << 32


def read(data: bytes, form: _ifd.Layout, at: int) -> Metadata:
    """Metadata of the page whose directory is at ``at``."""
    try:
        page = _entries.read(data, form, at)
    except struct.error:
        return Metadata()
    resources = _data(page, _RESOURCES)
    iptc = _data(page, _IPTC)
    if resources is None and iptc is not None:
        resources = iptc_resource(iptc)
    found = Metadata(
        _described(page, form.order),
        _data(page, _XMP),
        _data(page, _ICC),
        resources,
        _density(page, form.order),
    )
    if any(entry.tag in _GEOGRAPHIC for entry in page.entries):
        return found.losing("the place on a map (GeoTIFF) is dropped, as pixels move")
    return found


def _data(page: Directory, tag: int) -> bytes | None:
    entry = page.get(tag)
    return entry.data if entry else None


def _described(page: Directory, order: str) -> bytes | None:
    """An EXIF block of the tags that describe the picture."""
    no = _PIXELS | _OWN | _RAW | _GEOGRAPHIC
    kept = tuple(entry for entry in page.entries if entry.tag not in no)
    if not page.subs and all(entry.tag == _ifd.ORIENTATION for entry in kept):
        return None
    return _exif.from_directory(Directory(kept, page.subs), order)


def _density(page: Directory, order: str) -> Density | None:
    x, y = (_ratio(page.get(tag), order) for tag in (_X, _Y))
    unit = page.get(_UNIT)
    name = _UNITS.get(_entries.whole(unit, order) if unit else 2)
    if not x or not y or name is None or (x, y, name) == (1, 1, ""):
        return None
    return Density(x, y, name)


def _ratio(entry: Entry | None, order: str) -> float:
    if entry is None or entry.kind != RATIONAL:
        return 0
    above, below = struct.unpack_from(order + "II", entry.data)
    return above / below if below else 0


def attach(file: bytes, metadata: Metadata) -> bytes:
    """The file with its tags."""
    return joined([file], [metadata])


def joined(files: Sequence[bytes], each: Iterable[Metadata]) -> bytes:
    """One file of pages, each from a file of one page in strips, with its metadata."""
    out = bytearray(b"II*\0\0\0\0\0")
    link = 4
    for file, metadata in zip(files, each, strict=True):
        form = _ifd.layout(file)
        page = _entries.reordered(_entries.read(file, form, form.first), form.order, "<")
        out += b"\0" * (len(out) % 2)
        page = _shifted(page, len(out) - 8)
        out += file[8 : _end_of_strips(page, len(out) - 8)]
        out += b"\0" * (len(out) % 2)
        if len(out) >= _MOST:
            raise ImageError("larger than the 4 GB of a TIFF file")
        struct.pack_into("<I", out, link, len(out))
        link = len(out) + 2 + 12 * _written(page, metadata, out)
    return bytes(out)


def _written(page: Directory, metadata: Metadata, out: bytearray) -> int:
    """Append a page's directory; return how many tags it has."""
    whole = _with_metadata(page, metadata)
    out += _entries.write(whole, "<", len(out))
    return len(whole.entries) + len(whole.subs)


def _offsets(page: Directory, tag: int) -> list[int]:
    entry = page.get(tag)
    if entry is None or entry.kind not in (SHORT, LONG, 16):
        raise ImageError("can't encode TIFF: a page without strips")
    code = {SHORT: "H", LONG: "I"}.get(entry.kind, "Q")
    return list(struct.unpack(f"<{entry.count}{code}", entry.data))


def _shifted(page: Directory, by: int) -> Directory:
    moved = _entries.numbers(_STRIPS, LONG, "<", *(at + by for at in _offsets(page, _STRIPS)))
    kept = (entry for entry in page.entries if entry.tag != _STRIPS)
    return Directory((*kept, moved))


def _end_of_strips(page: Directory, by: int) -> int:
    """Where the last strip ends in the file that it comes from."""
    pairs = zip(_offsets(page, _STRIPS), _offsets(page, _STRIP_SIZES), strict=True)
    return max(at - by + size for at, size in pairs)


def _with_metadata(page: Directory, metadata: Metadata) -> Directory:
    described = Directory(())
    if metadata.exif:
        form = _ifd.layout(metadata.exif)
        described = _entries.read(metadata.exif, form, form.first)
        described = _entries.reordered(described, form.order, "<")
    own = [*_resolution(metadata, described), *_blocks(metadata)]
    no = _PIXELS | _OWN
    upright = _entries.numbers(_ifd.ORIENTATION, SHORT, "<", 1)
    own += [e for e in described.entries if e.tag not in no and e != upright]
    if metadata.comments and not described.get(_DESCRIPTION):
        text = b"\n".join(metadata.comments).replace(b"\0", b"") + b"\0"
        own.append(Entry(_DESCRIPTION, ASCII, len(text), text))
    kept = {entry.tag: entry for entry in page.entries if entry.tag not in _RESOLUTION}
    return Directory(tuple((kept | {entry.tag: entry for entry in own}).values()), described.subs)


def _resolution(metadata: Metadata, described: Directory) -> list[Entry]:
    from fractions import Fraction

    density = metadata.density
    if density is None:
        return [entry for entry in described.entries if entry.tag in _RESOLUTION]
    unit = "cm" if density.unit == "m" else density.unit
    x, y = density.per(unit) if unit else (density.x, density.y)
    number = {name: number for number, name in _UNITS.items()}[unit]
    pairs = [Fraction(value).limit_denominator(10000).as_integer_ratio() for value in (x, y)]
    entries = [
        _entries.numbers(tag, RATIONAL, "<", *(min(part, _MOST - 1) for part in pair))
        for tag, pair in zip((_X, _Y), pairs, strict=True)
    ]
    return [*entries, _entries.numbers(_UNIT, SHORT, "<", number)]


def _blocks(metadata: Metadata) -> list[Entry]:
    blocks = [
        (_XMP, BYTE, metadata.xmp),
        (_IPTC, UNDEFINED, metadata.iptc),
        (_RESOURCES, BYTE, metadata.resources),
        (_ICC, UNDEFINED, metadata.icc),
    ]
    return [Entry(tag, kind, len(body), body) for tag, kind, body in blocks if body]

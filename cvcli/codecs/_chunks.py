"""Metadata of PNG files: chunks in front of the pixels (EXIF may stand behind), read and put in."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from cvcli.codecs import _exif
from cvcli.codecs._metadata import Density, Metadata

FIELDS = frozenset(("exif", "xmp", "icc", "density", "comments", "texts", "colour"))
KINDS = frozenset((b"eXIf", b"iCCP", b"pHYs", b"tEXt", b"zTXt", b"iTXt"))
# With the bytes that each must have.
COLOUR = {b"cICP": 4, b"sRGB": 1, b"gAMA": 4, b"cHRM": 32, b"mDCV": 24, b"cLLI": 8}
_TEXTS = frozenset((b"tEXt", b"zTXt", b"iTXt"))
_XMP, _COMMENT = b"XML:com.adobe.xmp", b"Comment"
# How programs without eXIf keep EXIF: hexadecimal digits behind a name and a length.
_HEX_EXIF = (b"Raw profile type exif", b"Raw profile type APP1")
_LONGEST = 1 << 26
_HEAD = 33


def read(chunks: Iterable[tuple[bytes, bytes]]) -> Metadata:
    """Metadata of the chunks (name, body) of a file; what is malformed is noted as lost."""
    found, texts = Metadata(), []
    colour: dict[bytes, bytes] = {}
    for kind, body in chunks:
        if kind == b"eXIf":
            found = found.losing(exif=found.exif or _exif.bare(body))
        elif kind == b"iCCP":
            found = _with_profile(found, body)
        elif kind == b"pHYs" and len(body) == 9:
            x, y, unit = struct.unpack(">IIB", body)
            density = Density(x, y, "m" if unit == 1 else "") if x and y else None
            found = found.losing(density=density)
        elif COLOUR.get(kind) == len(body):
            colour.setdefault(kind, body)
        elif kind == b"iTXt" and body.startswith(_XMP + b"\0") and found.xmp is None:
            found = found.losing(xmp=_international(body))
        elif kind in _TEXTS and (exif := hex_exif(kind, body)) is not None:
            found = found.losing(exif=found.exif or exif)
        elif kind in _TEXTS:
            texts.append((kind, body))
    if not texts and not colour:
        return found
    return found.losing(texts=tuple(texts), colour=tuple(colour.items()))


def _with_profile(found: Metadata, body: bytes) -> Metadata:
    _, _, packed = body.partition(b"\0")
    profile = inflated(packed[1:])
    if profile is None:
        return found.losing("a malformed ICC profile is dropped")
    return found.losing(icc=found.icc or profile)


def inflated(packed: bytes) -> bytes | None:
    """Unpacked bytes; None if they are broken or absurdly many."""
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, _LONGEST)
    except zlib.error:
        return None
    return data if unpacker.eof else None


def _international(body: bytes) -> bytes | None:
    """Text of an iTXt chunk."""
    _, _, rest = body.partition(b"\0")
    if len(rest) < 2:
        return None
    text = rest[2:].split(b"\0", 2)[-1]
    return inflated(text) if rest[0] else text


def hex_exif(kind: bytes, body: bytes) -> bytes | None:
    """EXIF of a text chunk that holds it as digits; None for any other text."""
    name, _, text = body.partition(b"\0")
    if name not in _HEX_EXIF or kind == b"iTXt":
        return None
    plain = inflated(text[1:]) if kind == b"zTXt" else text
    try:
        digits = b"".join((plain or b"").split()[2:])
        block = bytes.fromhex(digits.decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        return None
    return _exif.bare(block) if block.startswith((_exif.PREFIX, b"II", b"MM")) else None


def attach(file: bytes, metadata: Metadata) -> bytes:
    """The file with its metadata behind the header chunk, in front of palette and pixels."""
    blocks = b"".join(chunk(kind, body) for kind, body in _bodies(metadata))
    return file[:_HEAD] + blocks + file[_HEAD:] if blocks else file


def chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk with its length and check sum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _bodies(metadata: Metadata) -> Iterator[tuple[bytes, bytes]]:
    colour = dict(metadata.colour)
    if metadata.icc:
        # A file may have one of the two.
        colour.pop(b"sRGB", None)
        yield b"iCCP", b"ICC Profile\0\0" + zlib.compress(metadata.icc)
    for kind in COLOUR:
        if kind in colour:
            yield kind, colour[kind]
    if metadata.density is not None:
        yield b"pHYs", _density(metadata.density)
    if metadata.exif:
        yield b"eXIf", metadata.exif
    if metadata.xmp:
        yield b"iTXt", _XMP + b"\0\0\0\0\0" + metadata.xmp
    yield from metadata.texts
    for comment in metadata.comments:
        yield _comment(comment)


def _density(density: Density) -> bytes:
    x, y = density.per("m") if density.unit else (density.x, density.y)
    values = [min(max(1, round(value)), 0x7FFFFFFF) for value in (x, y)]
    return struct.pack(">IIB", *values, 1 if density.unit else 0)


def _comment(comment: bytes) -> tuple[bytes, bytes]:
    """A comment as text; tEXt is Latin-1 and iTXt UTF-8, and neither holds a NUL."""
    plain = comment.replace(b"\0", b"")
    if not plain.isascii() and _is_utf8(plain):
        return b"iTXt", _COMMENT + b"\0\0\0\0\0" + plain
    return b"tEXt", _COMMENT + b"\0" + plain


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True

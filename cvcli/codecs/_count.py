"""How many pictures a file holds, by reading no more of it than that takes."""

from __future__ import annotations

import struct
from typing import IO

from cvcli.codecs import _ifd
from cvcli.errors import ImageError

# Enough for whatever tells that a file holds one picture only.
_HEAD_NBYTES = 1 << 16
_PNG, _ANIMATED_WEBP = b"\x89PNG\r\n\x1a\n", 0x02


def count(file: IO[bytes]) -> int:
    """Pictures in a file that was opened at its start; 1 for what is no image.

    The directories of a TIFF are jumped along, as documents may be large. Raises OSError as the
    file does.
    """
    head = file.read(_HEAD_NBYTES)
    if head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return _pages(file, head)
    return 1 if _holds_one(head) else _frames(head + file.read())


def _frames(data: bytes) -> int:
    from cvcli.codecs import probe

    try:
        return probe(data, None).frames
    except ImageError:
        return 1


def _holds_one(head: bytes) -> bool:
    """Whether the start of a file settles that there is no second picture."""
    if head.startswith(_PNG):
        before, pixels, _ = head.partition(b"IDAT")
        return bool(pixels) and b"acTL" not in before
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return head[12:16] != b"VP8X" or not head[20] & _ANIMATED_WEBP
    return head[4:8] == b"ftyp" and b"avis" not in head[:64]


def _pages(file: IO[bytes], head: bytes) -> int:
    try:
        form = _ifd.layout(head)
    except (struct.error, ValueError):
        return 1
    few, entry, pointer = ("Q", 20, "Q") if form.big else ("H", 12, "I")
    seen: set[int] = set()
    at = form.first
    while at and at not in seen:
        try:
            entries = _number(file, at, form.order + few)
            after = at + struct.calcsize("=" + few) + entries * entry
            following = _number(file, after, form.order + pointer)
        except (struct.error, OverflowError, OSError):
            break
        seen.add(at)
        at = following
    return max(1, len(seen))


def _number(file: IO[bytes], at: int, code: str) -> int:
    file.seek(at)
    (value,) = struct.unpack(code, file.read(struct.calcsize(code)))
    return int(value)

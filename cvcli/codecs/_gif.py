"""GIF files: each picture with a palette of its own, its very colours where they are few enough."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cvcli.codecs import _palette
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage

    from cvcli.codecs._base import Pixels

# What becomes of a picture when the next one comes: it stays, or its place is cleared.
_STAYS, _CLEARED = 1, 2
_CLEAR_PLACE = 255
_EXTENSION, _PICTURE, _TRAILER = 0x21, 0x2C, 0x3B


class _Part(NamedTuple):
    """The rectangle of a picture that is written, and where it lies."""

    pixels: Pixels
    x: int
    y: int
    disposal: int


def refuse_cut(data: bytes) -> None:
    """Raise ImageError if the data just end, which Pillow takes for the end of the pictures."""
    if ends(data)[1]:
        raise ImageError("truncated GIF data")


def count(data: bytes) -> int | None:
    """Pictures begun in a file that is cut, of which Pillow tells no certain number; else None."""
    found, cut = ends(data)
    begun = len(data) > (found[-1] if found else 0)
    return max(1, len(found) + begun) if cut else None


def ends(data: bytes) -> tuple[list[int], bool]:
    """Where each whole picture ends, and whether the data end without an end mark."""
    found: list[int] = []
    at = 13 + _table(data[10])
    while at < len(data) and data[at] != _TRAILER:
        kind = data[at]
        if kind == _EXTENSION:
            at += 2
        elif kind == _PICTURE and at + 10 < len(data):
            at += 11 + _table(data[at + 9])
        else:
            break
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1
        if kind == _PICTURE and at <= len(data):
            found.append(at)
    return found, at >= len(data) or data[at] == _PICTURE


def _table(flags: int) -> int:
    """Bytes of a colour table, by the flags that announce it."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def encode(
    pictures: Sequence[Pixels],
    comments: Iterable[bytes] = (),
    durations: Sequence[float] = (),
    loop: int | None = None,
) -> bytes:
    """GIF of pictures (h, w, 1..4) of uint8 and one size, durations in ms; ``loop`` 0 is endless.

    More than half opaque counts as opaque. Pictures without alpha only store what changes.
    """
    height, width = pictures[0].shape[:2]
    parts = [struct.pack("<6sHHBBB", b"GIF89a", width, height, 0, 0, 0)]
    if loop is not None:
        parts.append(b"!\xff\x0bNETSCAPE2.0" + struct.pack("<BBHB", 3, 1, loop & 0xFFFF, 0))
    parts += [b"!\xfe" + _blocks(comment) for comment in comments]
    times = list(durations) or [0.0] * len(pictures)
    for part, time in zip(_changes(pictures), times, strict=True):
        parts.append(_frame(part, time))
    return b"".join(parts) + b";"


def _blocks(data: bytes) -> bytes:
    cut = [data[at : at + 255] for at in range(0, len(data), 255)]
    return b"".join(bytes((len(part),)) + part for part in cut) + b"\0"


def _changes(pictures: Sequence[Pixels]) -> Iterable[_Part]:
    if len(pictures) == 1 or any(picture.shape[2] in (2, 4) for picture in pictures):
        disposal = _CLEARED if len(pictures) > 1 else 0
        return [_Part(picture, 0, 0, disposal) for picture in pictures]
    first = _Part(pictures[0], 0, 0, _STAYS)
    pairs = zip(pictures[1:], pictures[:-1], strict=True)
    return [first, *(_changed(picture, before) for picture, before in pairs)]


def _changed(picture: Pixels, before: Pixels) -> _Part:
    if picture.shape != before.shape:
        return _Part(picture, 0, 0, _STAYS)
    differs = (picture != before).any(axis=2)
    rows, columns = (differs.any(axis=axis).nonzero()[0] for axis in (1, 0))
    top, bottom = (rows[0], rows[-1] + 1) if len(rows) else (0, 1)
    left, right = (columns[0], columns[-1] + 1) if len(columns) else (0, 1)
    return _Part(picture[top:bottom, left:right], int(left), int(top), _STAYS)


def _frame(part: _Part, duration: float) -> bytes:
    image, clear = _with_palette(part.pixels)
    table, data = _compressed(image)
    flags = part.disposal << 2 | (clear is not None)
    hundredths = min(max(0, round(duration / 10)), 0xFFFF)
    control = struct.pack("<4BHBB", 0x21, 0xF9, 4, flags, hundredths, clear or 0, 0)
    size = (len(table) // 3).bit_length() - 2
    place = struct.pack("<BHHHHB", _PICTURE, part.x, part.y, *image.size, 0x80 | size)
    return control + place + table + data


def _compressed(image: PilImage) -> tuple[bytes, bytes]:
    """Colour table and compressed places of a palette image, out of a file of Pillow's."""
    file = io.BytesIO()
    image.save(file, "GIF", optimize=False, interlace=False)
    data = file.getvalue()
    table = data[13 : 13 + _table(data[10])]
    at = 13 + len(table)
    while data[at] == _EXTENSION:
        at += 2
        while data[at]:
            at += 1 + data[at]
        at += 1
    return table, data[at + 10 : -1]


def _with_palette(pixels: Pixels) -> tuple[PilImage, int | None]:
    """A palette image, and the place in its palette that is transparent."""
    import numpy as np
    from PIL import Image

    clear = None
    if pixels.shape[2] in (2, 4):
        clear = pixels[:, :, -1] < 128
        pixels = pixels[:, :, :-1]
    if pixels.shape[2] == 1 and clear is None:
        # Readers take the palette that each place is its own gray of for none.
        gray = np.repeat(np.arange(_palette.MOST, dtype=np.uint8), 3).reshape(-1, 3)
        return _palette.pillow_image(_palette.Indexed(pixels[:, :, 0], gray)), None
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, 2)
    if clear is None or not clear.any():
        return _reduced(pixels, _palette.MOST), None
    # One colour less, as the clear pixels need a place; their own colour must not count.
    shown = pixels[~clear]
    filler = shown[0] if len(shown) else np.zeros(3, np.uint8)
    image = _reduced(np.where(clear[:, :, None], filler, pixels), _CLEAR_PLACE)
    palette = (image.getpalette() or [])[: 3 * _CLEAR_PLACE]
    places = np.where(clear, _CLEAR_PLACE, np.asarray(image)).astype(np.uint8)
    result = Image.frombytes("P", image.size, places.tobytes())
    palette += [0] * (3 * _CLEAR_PLACE - len(palette))
    result.putpalette(palette + pixels[clear][0].tolist())
    return result, _CLEAR_PLACE


def _reduced(pixels: Pixels, most: int) -> PilImage:
    import numpy as np
    from PIL import Image

    found = _palette.indexed(pixels)
    if found is not None and len(found.colours) <= most:
        return _palette.pillow_image(found)
    return Image.fromarray(np.ascontiguousarray(pixels)).quantize(most)

"""JPEG: baseline, progressive, arithmetic and lossless, gray, RGB and CMYK, 8 to 16 bits.

Pixels are libjpeg-turbo's with the accurate DCT and smooth chroma upsampling, as in Pillow. More
than 8 bits a sample become uint16 over its whole range. CMYK becomes RGB.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from cvcli.codecs import _app_segments, _ifd, _quality
from cvcli.codecs._base import (
    Coding,
    Header,
    Saving,
    alpha_refusal,
    borrowed,
    dtype_refusal,
    pixel_packed,
    side_refusal,
)
from cvcli.codecs._metadata import Metadata
from cvcli.codecs._metadata import carried as carried_fields
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

RANK = 0
_LEAST_ROOM, _MOST_ROOM = 1 << 16, 1 << 26
_thread = threading.local()
SUFFIXES = dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), "JPEG")
# Batch output is often an input again: 75 (libjpeg's) shows after two rounds, 95 (OpenCV's) is
# twice the bytes.
QUALITY = 90
# libjpeg's JPEG_MAX_DIMENSION: the format counts to 65535, but most readers refuse those.
MAX_SIDE = 65500

_MODES = {1: "L", 3: "RGB", 4: "CMYK"}
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset(range(0xD0, 0xD9)) | {0x01}
_SOS, _EOI, _DQT, _DHT, _APP1, _APP2 = 0xDA, 0xD9, 0xDB, 0xC4, 0xE1, 0xE2
_GAIN_MAP = b' hdrgm:Version="'


@dataclass(slots=True)
class _Markers:
    """What the markers before the first scan say."""

    frame: tuple[int, int, int, int] | None = None  # precision, height, width, components
    exif: bytes | None = None
    images: int = 1
    gain_map: bool = False
    coding: Coding = field(default_factory=Coding)


def matches(data: bytes) -> bool:
    return data.startswith(b"\xff\xd8\xff")


def reads() -> dict[str, str]:
    # A multi-picture file is a JPEG with more behind it.
    return SUFFIXES | {".mpo": "JPEG"}


def writes() -> dict[str, str]:
    return SUFFIXES


def versions() -> dict[str, str]:
    import imagecodecs

    return {"libjpeg-turbo": imagecodecs.jpeg8_version().split(" ")[-1].split("/")[0]}


def probe(data: bytes) -> Header:
    """Header from the markers up to the first scan; ImageError if they are short or senseless."""
    markers = _read_markers(data)
    if markers.frame is None:
        raise ImageError("corrupt JPEG header: no frame before the first scan")
    precision, height, width, components = markers.frame
    if components not in _MODES or not 8 <= precision <= 16 or (components == 4 and precision > 8):
        raise ImageError(f"{precision}-bit JPEG of {components} components isn't supported")
    dtype = "uint8" if precision == 8 else "uint16"
    spec = ImageSpec(height, width, min(components, 3), dtype)
    # The pictures behind the first are frames, but a gain map and its like are not.
    frames = 1 if markers.gain_map else markers.images
    turn, mode = _ifd.orientation(markers.exif), _MODES[components]
    return Header("JPEG", spec, turn, frames, mode, markers.coding)


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker, start and end of each segment's body, up to the first scan's; ImageError if short."""
    at = 2
    while (at := data.find(b"\xff", at)) >= 0:
        while data[at : at + 1] == b"\xff":
            at += 1
        if at + 3 > len(data):
            break
        kind = data[at]
        if kind == 0 or kind in _BARE:
            at += 1
            continue
        if kind == _EOI:
            raise ImageError("corrupt JPEG header: it ends before the first scan")
        start, end = at + 3, at + 1 + struct.unpack_from(">H", data, at + 1)[0]
        if end > len(data):
            break
        yield kind, start, end
        if kind == _SOS:
            return
        at = end
    raise ImageError("truncated JPEG header")


def _read_markers(data: bytes) -> _Markers:
    markers, frame, tables = _Markers(), b"", dict[int, tuple[int, ...]]()
    codes_nbytes = 0
    for kind, start, end in _segments(data):
        body = data[start:end]
        if kind in _SOF and len(body) >= 6:
            markers.frame, frame = struct.unpack_from(">BHHB", body), body
        elif kind == _DQT:
            tables |= _quality.tables(body)
        elif kind == _DHT:
            codes_nbytes += len(body)
        elif kind == _APP1:
            markers.gain_map |= _GAIN_MAP in body
            if markers.exif is None and body.startswith(b"Exif\0\0"):
                markers.exif = body
        elif kind == _APP2 and body.startswith(b"MPF\0"):
            markers.images = max(1, _ifd.tag_value(body[4:], _ifd.MPF_IMAGES) or 1)
    if frame:
        markers.coding = _quality.coding(frame, tables, codes_nbytes)
    return markers


def metadata(data: bytes) -> Metadata:
    bodies = ((kind, data[start:end]) for kind, start, end in _segments(data))
    found = _app_segments.read(bodies)
    if found.xmp and _GAIN_MAP in found.xmp:
        return replace(found, cut=("the HDR gain map is dropped",))
    return found


def carried(metadata: Metadata, format: str) -> Metadata:
    return _app_segments.limited(carried_fields(metadata, format, _app_segments.FIELDS))


def stored_channels(spec: ImageSpec, format: str) -> int:
    return spec.channels


def decode(data: bytes, header: Header, out: Pixels) -> None:
    """Decode into ``out``; ImageError when the data end before the end-of-image marker.

    libjpeg only warns of that and fills with gray. Behind the marker anything may follow.
    """
    *_, scan = _segments(data)
    if data.rfind(b"\xff\xd9", scan[2]) < 0:
        raise ImageError("truncated JPEG data")
    if header.mode == "CMYK":
        from cvcli.codecs import pillow

        return pillow.decode(data, header, out)
    import imagecodecs

    imagecodecs.jpeg8_decode(data, out=borrowed(out))
    frame = _read_markers(data).frame if header.spec.dtype == "uint16" else None
    if frame is not None:
        _stretch(out, frame[0])
    return None


def _stretch(out: Pixels, precision: int) -> None:
    """Spread samples of ``precision`` bits over all 16, so that white is 65535."""
    import numpy as np

    top = (1 << precision) - 1
    out[...] = (out.astype(np.uint32) * 65535 + top // 2) // top


def refusal(spec: ImageSpec, format: str) -> str | None:
    return (
        alpha_refusal(spec, format)
        or dtype_refusal(spec, format, ("uint8",))
        or side_refusal(spec, format, MAX_SIDE)
    )


def encode(image: Pixels, format: str, saving: Saving) -> bytes:
    """Baseline JPEG as the source was coded, else 4:2:0 of quality 90; gray from one channel."""
    import imagecodecs

    packed = pixel_packed(image)
    pixels = packed[:, :, 0] if packed.shape[2] == 1 else packed
    coding = saving.coding
    sampling = coding.sampling if image.shape[2] == 3 else None
    if saving.quality is None and coding.tables:
        file: bytes | bytearray = _with_tables(pixels, coding, sampling)
    else:
        file = imagecodecs.jpeg8_encode(
            pixels,
            level=saving.quality or coding.level or QUALITY,
            subsampling=sampling,
            optimize=coding.optimized,
            out=_room(image.nbytes),
        )
    return _app_segments.attach(file, saving.metadata)


def _with_tables(pixels: Pixels, coding: Coding, sampling: str | None) -> bytes:
    """By Pillow, which takes quantisation tables."""
    import numpy as np
    from PIL import Image

    whole = Image.fromarray(np.ascontiguousarray(pixels))
    # Tables of camera makers differ for the two chroma components at times; libjpeg has two.
    tables = [list(table) for table in coding.tables[: pixels.ndim - 1]]
    names = {"444": 0, "422": 1, "420": 2}
    code = -1 if pixels.ndim == 2 else names.get(sampling or "420", 2)
    with _memory_file() as file:
        whole.save(file, "JPEG", subsampling=code, qtables=tables, optimize=coding.optimized)
        file.seek(0)
        return file.read()


def _memory_file() -> BinaryIO:
    """Where Pillow encodes without holding the interpreter's lock, as it does into a real file."""
    import io
    import os

    # Linux has it.
    create = getattr(os, "memfd_create", None)
    return io.BytesIO() if create is None else os.fdopen(create("cvcli-jpeg"), "w+b")


def _room(nbytes: int) -> bytearray:
    """This thread's room for a file: new memory for each costs a tenth of the encoder's time.

    A quarter of the pixels' bytes is enough for most; the encoder takes its own for the others.
    """
    wanted = min(max(nbytes // 4, _LEAST_ROOM), _MOST_ROOM)
    room: bytearray | None = getattr(_thread, "room", None)
    if room is None or len(room) < wanted:
        room = _thread.room = bytearray(wanted)
    return room

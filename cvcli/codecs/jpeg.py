"""JPEG: baseline, progressive, arithmetic and lossless, gray, RGB and CMYK, 8 to 16 bits.

Pixels are libjpeg-turbo's with the accurate DCT and smooth chroma upsampling, as in Pillow. More
than 8 bits a sample become uint16 over its whole range. CMYK becomes RGB,
unless the header asks for its four channels.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from cvcli.codecs import _app_segments, _dct, _ifd, _quality
from cvcli.codecs._base import (
    Coding,
    Header,
    Parts,
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
    from cvcli.core.turn import Turn

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
_SOF_PROGRESSIVE = 0xC2
_SOS, _EOI, _DQT, _DHT, _APP1, _APP2 = 0xDA, 0xD9, 0xDB, 0xC4, 0xE1, 0xE2
_APP0, _APP14 = 0xE0, 0xEE
_PILLOW_SAMPLINGS = {"444": 0, "422": 1, "420": 2}
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
    codes_nbytes = process = 0
    for kind, start, end in _segments(data):
        body = data[start:end]
        if kind in _SOF and len(body) >= 6:
            markers.frame, frame, process = struct.unpack_from(">BHHB", body), body, kind
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
        markers.coding = replace(
            _quality.coding(frame, tables, codes_nbytes),
            progressive=process == _SOF_PROGRESSIVE,
            unit=_dct.unit(process, frame),
        )
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
    if header.shrink > 1:
        return _decode_small(data, header, out)
    if header.mode == "CMYK":
        from cvcli.codecs import pillow

        return pillow.decode(data, header, out)
    import imagecodecs

    imagecodecs.jpeg8_decode(data, out=borrowed(out))
    frame = _read_markers(data).frame if header.spec.dtype == "uint16" else None
    if frame is not None:
        _stretch(out, frame[0])
    return None


def _decode_small(data: bytes, header: Header, out: Pixels) -> None:
    """By Pillow, which has libjpeg compute fewer samples of each block."""
    import numpy as np

    from cvcli.codecs import pillow

    with pillow.opened(data, "JPEG") as image:
        # It takes the largest factor that leaves at least this.
        image.draft(None, (image.width // header.shrink, image.height // header.shrink))
        out[...] = np.asarray(image).reshape(out.shape)


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


def encode(image: Pixels, format: str, saving: Saving) -> Parts:
    """JPEG as the source was coded, else baseline, 4:2:0 and of quality 90."""
    import imagecodecs

    packed = pixel_packed(image)
    pixels = packed[:, :, 0] if packed.shape[2] == 1 else packed
    coding = saving.coding
    sampling = coding.sampling if image.shape[2] == 3 else None
    kept = saving.quality is None and coding.tables
    gradual = coding.progressive and (sampling is None or sampling in _PILLOW_SAMPLINGS)
    if kept or gradual or saving.inks:
        file: bytes | bytearray = _by_pillow(pixels, saving, sampling)
    else:
        file = imagecodecs.jpeg8_encode(
            pixels,
            level=saving.quality or coding.level or QUALITY,
            subsampling=sampling,
            optimize=coding.optimized,
            out=_room(image.nbytes),
        )
    return _app_segments.attached(memoryview(file), saving.metadata)


def moved(data: bytes, turn: Turn, metadata: Metadata) -> bytes:
    """The file of a turn that `turn_refusal` has passed, the coefficients being the source's own.

    ImageError for a broken file. What tells of the colour space stays; ``metadata`` replace the
    others.
    """
    spec = probe(data).spec
    file = _dct.moved(data, (spec.width, spec.height), turn)
    jfif = adobe = b""
    for kind, start, end in _segments(data):
        if kind == _APP0 and data.startswith(b"JFIF\0", start) and end - start >= 14:
            # Without the thumbnail, which would lie as the source does.
            jfif = b"\xff\xe0\0\x10" + data[start : start + 12] + b"\0\0"
        elif kind == _APP14 and data.startswith(b"Adobe", start):
            adobe = data[start - 4 : end]
    return _app_segments.attach(file[:2] + jfif + adobe + file[2:], metadata)


def turn_refusal(header: Header, turn: Turn) -> str | None:
    """Why a JPEG can't take a turn without being decoded; None if it can."""
    return _dct.refusal(header.coding.unit, turn)


def _by_pillow(pixels: Pixels, saving: Saving, sampling: str | None) -> bytes:
    """By Pillow, which takes quantisation tables and CMYK, and writes progressive files."""
    import numpy as np
    from PIL import Image

    coding = saving.coding
    how: dict[str, object] = {"quality": saving.quality or coding.level or QUALITY}
    # Tables of camera makers differ for the two chroma components at times; libjpeg has two, and
    # all inks have one.
    count = 1 if saving.inks else pixels.ndim - 1
    if saving.quality is None and coding.tables:
        how = {"qtables": [list(table) for table in coding.tables[:count]]}
    # Inks are no chroma, to be subsampled.
    code = 0 if saving.inks else _PILLOW_SAMPLINGS.get(sampling or "420", 2)
    how |= {"subsampling": -1 if pixels.ndim == 2 else code, "optimize": coding.optimized}
    packed = np.ascontiguousarray(pixels)
    whole = Image.fromarray(packed)
    if saving.inks:
        whole = Image.frombytes("CMYK", whole.size, packed.tobytes())
    with _memory_file() as file:
        whole.save(file, "JPEG", progressive=coding.progressive, **how)
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

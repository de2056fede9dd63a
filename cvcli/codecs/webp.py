"""WebP: lossy and lossless, with and without alpha; of an animation the first frame."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from cvcli.codecs import _ifd, _riff
from cvcli.codecs._base import (
    Coding,
    Header,
    Saving,
    borrowed,
    dtype_refusal,
    gray_as_rgb,
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
SUFFIXES = {".webp": "WEBP"}
MAX_SIDE = 16383
# What Pillow and sharp use; `LOSSLESS` asks for the lossless mode instead of a useless lossy 100.
QUALITY = 80
LOSSLESS = 100

# Effort 0..6. 2 takes 0.4 of the time of libwebp's 4 for 5 % more bytes; lossless gains nothing
# above 1.
_LOSSY_METHOD, _LOSSLESS_METHOD = 2, 1


def matches(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def reads() -> dict[str, str]:
    return SUFFIXES


def writes() -> dict[str, str]:
    return SUFFIXES


def versions() -> dict[str, str]:
    import imagecodecs

    return {"libwebp": imagecodecs.webp_version().split(" ")[-1]}


def probe(data: bytes) -> Header:
    """Header from the chunk table; ImageError if it is short or holds no image."""
    chunks = list(_riff.chunks(data))
    first: dict[bytes, int] = {}
    for kind, start in chunks:
        first.setdefault(kind, start)
    try:
        width, height, alpha, animated = _image(data, first)
    except struct.error as error:
        raise ImageError("truncated WEBP header") from error
    frames = sum(kind == b"ANMF" for kind, _ in chunks) if animated else 1
    exif = _riff.body(data, first[b"EXIF"]) if b"EXIF" in first else None
    spec = ImageSpec(height, width, 4 if alpha else 3, "uint8")
    mode = "RGBA" if alpha else "RGB"
    coding = Coding(lossless=b"VP8L" in first or _first_frame_is_lossless(data, chunks))
    plays = _riff.body(data, first[b"ANIM"])[4:6] if b"ANIM" in first else b""
    turn, count = _ifd.orientation(exif), int.from_bytes(plays, "little")
    return Header("WEBP", spec, turn, max(1, frames), mode, coding, count)


def _first_frame_is_lossless(data: bytes, chunks: list[tuple[bytes, int]]) -> bool:
    start = next((start for kind, start in chunks if kind == b"ANMF"), None)
    return start is not None and data[start + 16 : start + 20] == b"VP8L"


def _image(data: bytes, first: dict[bytes, int]) -> tuple[int, int, bool, bool]:
    """Width, height, has alpha, is animated."""
    if b"VP8X" in first:
        flags, size = struct.unpack_from("<B3x6s", data, first[b"VP8X"])
        width, height = (int.from_bytes(size[i : i + 3], "little") + 1 for i in (0, 3))
        return (
            width,
            height,
            bool(flags & _riff.ALPHA) or b"ALPH" in first,
            bool(flags & _riff.ANIMATED),
        )
    if b"VP8L" in first:
        magic, bits = struct.unpack_from("<BI", data, first[b"VP8L"])
        if magic == 0x2F:
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bool(bits >> 28 & 1), False
    if b"VP8 " in first:
        magic, width, height = struct.unpack_from("<3x3sHH", data, first[b"VP8 "])
        if magic == b"\x9d\x01\x2a":
            return width & 0x3FFF, height & 0x3FFF, False, False
    raise ImageError("truncated WEBP header" if len(data) < 30 else "corrupt WEBP header")


def metadata(data: bytes) -> Metadata:
    return _riff.read(data)


def carried(metadata: Metadata, format: str) -> Metadata:
    return carried_fields(metadata, format, _riff.FIELDS)


def stored_channels(spec: ImageSpec, format: str) -> int:
    return max(3, spec.channels + 2 * (spec.channels == 2))


def refuse_cut(data: bytes) -> None:
    """Raise ImageError if the file is shorter than its RIFF header says."""
    if len(data) < 8 + struct.unpack_from("<I", data, 4)[0]:
        raise ImageError("truncated WEBP data")


def decode(data: bytes, header: Header, out: Pixels) -> None:
    """Decode into ``out``; ImageError when the file is shorter than its RIFF header says."""
    refuse_cut(data)
    if any(kind == b"ANMF" for kind, _ in _riff.chunks(data)):
        from cvcli.codecs import pillow

        # A frame may cover only a part of the canvas; Pillow composes it.
        return pillow.decode(data, header, out)
    import imagecodecs

    imagecodecs.webp_decode(data, hasalpha=header.spec.channels == 4, out=borrowed(out))
    return None


def refusal(spec: ImageSpec, format: str) -> str | None:
    return dtype_refusal(spec, format, ("uint8",)) or side_refusal(spec, format, MAX_SIDE)


def encode(image: Pixels, format: str, saving: Saving) -> bytes:
    """Lossy with exact alpha; lossless at quality 100 or as the source. Gray is stored as RGB."""
    import imagecodecs

    if image.shape[2] < 3:
        image = gray_as_rgb(image)
    how = options(saving)
    file = imagecodecs.webp_encode(
        pixel_packed(image),
        level=how["quality"],
        lossless=how["lossless"],
        method=how["method"],
    )
    return _riff.attach(bytes(file), saving.metadata, image.shape[1], image.shape[0])


def options(saving: Saving) -> dict[str, Any]:
    """Quality, kind and effort, by libwebp's names."""
    quality = saving.quality
    lossless = saving.coding.lossless if quality is None else quality == LOSSLESS
    if lossless:
        # The quality of lossless files is an effort: 100 is slow for a percent or two.
        return {"quality": 75, "lossless": True, "method": _LOSSLESS_METHOD}
    level = QUALITY if quality is None else quality
    return {"quality": level, "lossless": False, "method": _LOSSY_METHOD}

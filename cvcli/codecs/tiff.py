"""TIFF and BigTIFF: gray and RGB of 8 and 16 bits and float through libtiff, the rest by Pillow.

Pillow cuts 16-bit colour to 8 bits and knows no float colour, so the directory is read here. Half
and double floats become float32, premultiplied alpha is undone, and the stored pixels are what is
decoded: the orientation tag is only reported, as for any format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cvcli.codecs import _ifd, _palette
from cvcli.codecs import _tags as _page_tags
from cvcli.codecs._base import Coding, Header, Saving, borrowed, dtype_refusal, pixel_packed
from cvcli.codecs._frames import Frame
from cvcli.codecs._metadata import Metadata
from cvcli.codecs._metadata import carried as carried_fields
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

RANK = 0
SUFFIXES = dict.fromkeys((".tiff", ".tif"), "TIFF")

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_SAMPLES, _PLANAR, _EXTRA, _FORMAT = 277, 284, 338, 339
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB = 0, 1, 2
_PREMULTIPLIED, _OPACITY = 1, 2
# Raw, LZW, both deflates, PackBits, LZMA, Zstandard: what decodes to the very samples.
_PLAIN = frozenset((1, 5, 8, 32946, 32773, 34925, 50000))
# The compressions that are kept; LZW, which every reader knows, stands for the others.
_WRITTEN = {1: "none", 5: "lzw", 8: "deflate", 32946: "deflate", 32773: "packbits"}
_WRITTEN |= {34925: "lzma", 50000: "zstd"}
_PREDICTED = frozenset(("lzw", "deflate", "lzma", "zstd"))
_DTYPES = {(8, 1): "uint8", (16, 1): "uint16"} | {(bits, 3): "float32" for bits in (16, 32, 64)}
_DEEP_MODES = {("uint16", 1): "I;16", ("float32", 1): "F"}

Tags = dict[int, tuple[int, ...]]


def matches(data: bytes) -> bool:
    return data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def reads() -> dict[str, str]:
    return SUFFIXES


def writes() -> dict[str, str]:
    return SUFFIXES


def versions() -> dict[str, str]:
    import imagecodecs

    return {"libtiff": imagecodecs.tiff_version().split(" ")[-1]}


def _layout(data: bytes) -> _ifd.Layout:
    try:
        return _ifd.layout(data)
    except (struct.error, ValueError) as error:
        raise ImageError("truncated TIFF header") from error


def _tags(data: bytes, form: _ifd.Layout, at: int) -> Tags:
    """Tags of the page whose directory is at ``at``."""
    try:
        return _ifd.directory(data, form, at)[0]
    except struct.error as error:
        raise ImageError("truncated TIFF header") from error


def _direct(tags: Tags) -> tuple[int, str] | None:
    """Channels and dtype when libtiff's samples are the pixels; None leaves the file to Pillow."""
    samples = tags.get(_SAMPLES, (1,))[0]
    photometric = tags.get(_PHOTOMETRIC, (_WHITE_IS_ZERO,))[0]
    dtype = _DTYPES.get((tags.get(_BITS, (1,))[0], tags.get(_FORMAT, (1,))[0]))
    if dtype is None or tags.get(_COMPRESSION, (1,))[0] not in _PLAIN:
        return None
    if photometric == _WHITE_IS_ZERO:
        return (1, dtype) if dtype == "uint16" and samples == 1 else None
    colours = {_BLACK_IS_ZERO: 1, _RGB: 3}.get(photometric)
    # Pillow knows what else a fourth sample of 8 bits may be.
    extra = 0 if dtype == "uint8" and tags.get(_EXTRA) != (_OPACITY,) else 1
    return (samples, dtype) if colours and colours <= samples <= colours + extra else None


def probe(data: bytes) -> Header:
    """Header from the first directory; ImageError when it lies past the end of the file."""
    form = _layout(data)
    tags = _tags(data, form, form.first)
    return _probe_page(data, tags, 0, len(_ifd.chain(data, form)))


def _probe_page(data: bytes, tags: Tags, page: int, frames: int) -> Header:
    turn = _ifd.valid_orientation(tags.get(_ifd.ORIENTATION, (1,))[0])
    width, height = (tags.get(tag, (0,))[0] for tag in (_WIDTH, _HEIGHT))
    direct = _direct(tags)
    coding = Coding(compression=tags.get(_COMPRESSION, (1,))[0])
    if direct is not None:
        channels, dtype = direct
        mode = _DEEP_MODES.get((dtype, channels), ("L", "LA", "RGB", "RGBA")[channels - 1])
        spec = ImageSpec(height, width, channels, dtype)
        return Header("TIFF", spec, turn, frames, mode, coding)
    from cvcli.codecs import pillow

    try:
        image = pillow.opened(data, "TIFF")
        pillow.turn_to(image, page)
        # Pillow tells the size after its own turning, which `decode` takes back.
        spec = replace(pillow.spec(image), height=height, width=width)
    except (ImageError, SyntaxError, OSError, LookupError, TypeError, ValueError) as error:
        samples, bits = (tags.get(tag, (1,))[0] for tag in (_SAMPLES, _BITS))
        kind = f"{samples} channels of {bits} bits, compression {coding.compression}"
        raise ImageError(f"TIFF of {kind} isn't supported") from error
    return Header("TIFF", spec, turn, frames, image.mode, coding)


def frames(data: bytes, header: Header) -> Iterator[Frame]:
    """Pages in order, each of its own size and kind; ImageError if some are cut off."""
    form = _layout(data)
    places, cut = _ifd.links(data, form)
    if cut:
        raise ImageError("truncated TIFF data")
    for number, at in enumerate(places):
        tags = _tags(data, form, at)
        own = _probe_page(data, tags, number, header.frames)
        read = partial(decode_page, data, own, tags, number)
        yield Frame(own, read, metadata=_page_tags.read(data, form, at))


def decode(data: bytes, header: Header, out: Pixels) -> None:
    """Decode page 0 into ``out`` as it is stored, not turned; ImageError if others are cut off."""
    form = _layout(data)
    if _ifd.links(data, form)[1]:
        raise ImageError("truncated TIFF data")
    decode_page(data, header, _tags(data, form, form.first), 0, out)


def decode_page(data: bytes, header: Header, tags: Tags, page: int, out: Pixels) -> None:
    """Decode a page by its tags, whatever becomes of those behind it."""
    if _direct(tags) is None:
        return _decode_by_pillow(data, header, page, out)
    import imagecodecs
    import numpy as np

    bits, samples = tags[_BITS][0], tags.get(_SAMPLES, (1,))[0]
    planes = samples > 1 and tags.get(_PLANAR, (1,))[0] == 2
    if planes or bits != out.itemsize * 8:
        pixels = imagecodecs.tiff_decode(data, index=page)
        out[...] = np.moveaxis(pixels, 0, -1) if planes else pixels.reshape(out.shape)
    else:
        imagecodecs.tiff_decode(data, index=page, out=borrowed(out))
    finish(out, header, tags)
    return None


def finish(out: Pixels, header: Header, tags: Tags) -> None:
    """Make pixels of samples as libtiff gives them, in place."""
    import numpy as np

    if tags.get(_PHOTOMETRIC, (_WHITE_IS_ZERO,))[0] == _WHITE_IS_ZERO:
        np.invert(out, out=out)
    if out.shape[2] in (2, 4) and tags.get(_EXTRA, (0,))[0] == _PREMULTIPLIED:
        _unpremultiply(out, header.spec.top)


def _unpremultiply(out: Pixels, top: float) -> None:
    import numpy as np

    alpha = out[:, :, -1:].astype(np.float64)
    colour = out[:, :, :-1] * np.divide(top, alpha, out=np.zeros_like(alpha), where=alpha > 0)
    out[:, :, :-1] = colour if out.dtype.kind == "f" else np.minimum(np.rint(colour), top)


def _decode_by_pillow(data: bytes, header: Header, page: int, out: Pixels) -> None:
    from PIL import Image

    from cvcli.codecs import pillow

    turn = Image.Transpose
    back = {
        2: turn.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: turn.FLIP_TOP_BOTTOM,
        5: turn.TRANSPOSE,
        6: turn.ROTATE_90,
        7: turn.TRANSVERSE,
        8: turn.ROTATE_270,
    }.get(header.orientation)
    image = pillow.read(data, header, page)
    # Pillow turns a TIFF when it loads it.
    out[...] = pillow.pixels(image if back is None else image.transpose(back), header.spec)


def refusal(spec: ImageSpec, format: str) -> str | None:
    return dtype_refusal(spec, format, ("uint8", "uint16", "float32"))


def metadata(data: bytes) -> Metadata:
    form = _ifd.layout(data)
    return _page_tags.read(data, form, form.first)


def carried(metadata: Metadata, format: str) -> Metadata:
    return carried_fields(metadata, format, _page_tags.FIELDS)


def stored_channels(spec: ImageSpec, format: str) -> int:
    return spec.channels


def encode(image: Pixels, format: str, saving: Saving) -> bytes:
    """Compressed as the source was, else by LZW with a predictor: half of raw for photographs."""
    return _page_tags.attach(page(image, saving), saving.metadata)


def page(image: Pixels, saving: Saving) -> bytes:
    """File of one page without metadata."""
    few = _palette.tiff_of(image, saving.mode, saving.coding.compression)
    if few is not None:
        return few
    import imagecodecs

    packed = pixel_packed(image)
    pixels = packed[:, :, 0] if packed.shape[2] == 1 else packed
    compression = _WRITTEN.get(saving.coding.compression or 0, "lzw")
    file = imagecodecs.tiff_encode(
        pixels,
        photometric="separated" if saving.inks else "rgb" if image.shape[2] > 2 else "minisblack",
        extrasample="unassalpha" if image.shape[2] in (2, 4) and not saving.inks else None,
        compression=compression,
        predictor=compression in _PREDICTED,
        # libtiff skips pad bytes without writing them: in memory of ours they are zero, so one
        # image always gives one file. LZW at its worst adds a half.
        out=bytearray(image.nbytes * 3 // 2 + 65536),
    )
    return bytes(file)


def join(files: Sequence[bytes], each: Sequence[Metadata]) -> bytes:
    """One file of the pages that `page` made."""
    return _page_tags.joined(files, each)

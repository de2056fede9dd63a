"""Every other format that Pillow knows, and the odd files of the formats that have a codec here.

Pillow's modes become what a viewer shows: bilevel 0/255, palettes RGB or RGBA, CMYK, YCbCr, HSV
and LAB RGB, premultiplied alpha undone. ``I;16`` stays uint16 and ``F`` float32; 32-bit integers
(mode ``I``, also of 16-bit PGM) become uint16 and must fit it.
"""

from __future__ import annotations

import io
import struct
import threading
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from cvcli.codecs import _convert, _exif, _gif, _ifd
from cvcli.codecs._base import (
    Header,
    Saving,
    alpha_refusal,
    dtype_refusal,
    gray_as_rgb,
    side_refusal,
)
from cvcli.codecs._metadata import Density, Metadata
from cvcli.codecs._metadata import carried as carried_fields
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from types import ModuleType

    from PIL.Image import Image as PilImage

    from cvcli.codecs._base import Pixels

RANK = 1

# Not pictures (containers of data, metadata or video), or drawn by an outside program.
_NEVER = frozenset(("EPS", "WMF", "PDF", "MPEG", "BUFR", "GRIB", "HDF5", "IPTC", "MCIDAS"))
# Written only at fixed sizes (ICNS), as palettes or bits (the others), or as float (SPIDER).
_NOT_WRITTEN = frozenset(("ICNS", "BLP", "MSP", "PALM", "XBM", "SPIDER"))
# Formats of a codec of their own; a multi-picture JPEG counts as JPEG.
_ELSEWHERE = frozenset(("JPEG", "MPO", "PNG", "TIFF", "WEBP"))
_LAYERED = frozenset(("PSD",))

_CHANNELS = {"1": 1, "L": 1, "I": 1, "F": 1, "LA": 2, "La": 2, "RGBA": 4, "RGBa": 4, "PA": 4}
_WRITE_MODES = {
    (1, "uint8"): "L",
    (2, "uint8"): "LA",
    (3, "uint8"): "RGB",
    (4, "uint8"): "RGBA",
    (1, "uint16"): "I;16",
    (1, "float32"): "F",
}
# The longest side that is written and then read again; PCX rounds the bytes of a row to an even
# number, and libavif reads no side longer than this.
_SIDES = {"AVIF": 32768, "GIF": 65535, "ICO": 256, "PCX": 65534, "SGI": 65535, "TGA": 65535}
# What Pillow writes into each of its formats.
_FIELDS = {
    "AVIF": frozenset(("exif", "xmp", "icc")),
    "BMP": frozenset(("density",)),
    "DIB": frozenset(("density",)),
    "GIF": frozenset(("comments",)),
    "JPEG2000": frozenset(("comments",)),
}
_lock = threading.Lock()


@cache
def _pil() -> ModuleType:
    """PIL.Image with every plugin loaded, and Pillow's doubts kept off the terminal."""
    from PIL import Image

    with _lock:
        Image.init()
        # What matters of a bad file is raised; catch_warnings isn't safe among threads.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        import logging

        logging.getLogger("PIL").addHandler(logging.NullHandler())
    return Image


def matches(data: bytes) -> bool:
    return True


@cache
def reads() -> dict[str, str]:
    readable = set(_pil().OPEN) - _NEVER - _ELSEWHERE
    return _usual_first({s: f for s, f in _pil().EXTENSION.items() if f in readable})


@cache
def writes() -> dict[str, str]:
    writable = set(_pil().SAVE) - _NOT_WRITTEN
    return {suffix: format for suffix, format in reads().items() if format in writable}


def _usual_first(suffixes: dict[str, str]) -> dict[str, str]:
    named = {s: f for s, f in suffixes.items() if s[1:] == f.lower()}
    return named | suffixes


def versions() -> dict[str, str]:
    import PIL

    return {"Pillow": PIL.__version__}


def opened(data: bytes, format: str) -> PilImage:
    """The image of a file of this format, its pixels not loaded."""
    return _open(data, (format,))


def spec(image: PilImage) -> ImageSpec:
    """What `pixels` gives of an image."""
    channels, dtype = _shape(image)
    return ImageSpec(image.height, image.width, channels, dtype)


def _open(data: bytes, formats: tuple[str, ...] | None = None) -> PilImage:
    """Image of the first plugin that takes the data.

    Not `PIL.Image.open`: its size guard is one setting for the whole process, and it warns.
    """
    image = _pil()
    signed = None
    for format in formats or [f for f in image.ID if f not in _NEVER]:
        factory, accept = image.OPEN[format]
        if accept is not None and accept(data[:16]) is not True:
            continue
        try:
            opened: PilImage = factory(io.BytesIO(data), "")
            return opened
        except (struct.error, SyntaxError, LookupError, TypeError, ValueError, ArithmeticError):
            signed = format if accept is not None else signed
    if signed:
        raise ImageError(f"truncated or corrupt {signed} header")
    raise ImageError("not an image, or of a format that isn't supported")


def probe(data: bytes) -> Header:
    """Header by whichever plugin takes the data; ImageError when none does."""
    image = _open(data)
    format = image.format or "?"
    frames = 1 if format in _LAYERED else _count(image, data)
    turn = _quietly(lambda: image.getexif().get(_ifd.ORIENTATION, 1), 1)
    turn, plays = _ifd.valid_orientation(turn), _plays(image)
    return Header(format, spec(image), turn, max(1, frames), image.mode, plays=plays)


def _count(image: PilImage, data: bytes) -> int:
    begun = _gif.count(data) if image.format == "GIF" else None
    return begun or _quietly(lambda: getattr(image, "n_frames", 1), 1)


def _plays(image: PilImage) -> int:
    """How often an animation plays, 0 for endlessly; GIF counts how often it is repeated."""
    loop = image.info.get("loop")
    if image.format != "GIF":
        return loop if isinstance(loop, int) else 0
    return 1 if loop is None else loop + 1 if loop else 0


def _quietly(read: Any, otherwise: int) -> Any:
    """``read()``, or ``otherwise`` when a broken block of metadata makes it fail."""
    try:
        return read()
    except Exception:
        return otherwise


def _shape(image: PilImage) -> tuple[int, str]:
    """Channels and dtype after `pixels`."""
    mode = image.mode
    if mode == "I" or mode.startswith("I;16"):
        return 1, "uint16"
    if mode == "F":
        return 1, "float32"
    channels = _CHANNELS.get(mode, 3)
    palette_alpha = mode == "P" and image.palette is not None and image.palette.mode == "RGBA"
    # A key colour, or an opacity for each palette entry.
    keyed = "transparency" in image.info and mode in ("1", "L", "P", "RGB")
    return channels + (palette_alpha or keyed), "uint8"


def read(data: bytes, header: Header, page: int = 0) -> PilImage:
    """A loaded picture of the file, in Pillow's own mode."""
    if header.format == "GIF":
        _gif.refuse_cut(data)
    image = _open(data, (header.format,) if header.format in _pil().OPEN else None)
    if page:
        turn_to(image, page)
    image.load()
    return image


def turn_to(image: PilImage, page: int) -> None:
    """Seek; before Pillow 13 the palette of the page left behind would get in the way."""
    image.seek(page)
    if image.mode not in ("P", "PA"):
        image.palette = None


def pixels(image: PilImage, spec: ImageSpec) -> Pixels:
    """The pixels of a loaded image as an array (h, w, c) of ``spec``."""
    import numpy as np

    if spec.dtype == "uint8":
        mode = ("L", "LA", "RGB", "RGBA")[spec.channels - 1]
        if image.mode == "CMYK" and spec.channels == 4:
            mode = "CMYK"
        elif image.mode == "LAB":
            image = _from_lab(image)
        elif image.mode == "CMYK" and (profile := image.info.get("icc_profile")):
            image = _convert.cmyk_to_rgb(image, profile) or image
        array = np.asarray(image if image.mode == mode else image.convert(mode))
    else:
        array = np.asarray(image)
    if spec.dtype == "uint16" and array.dtype.itemsize > 2:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high > 65535:
            raise ImageError(f"integer pixels {low} to {high} don't fit 16 bits")
    return array.reshape(array.shape[0], array.shape[1], -1)


def _from_lab(image: PilImage) -> PilImage:
    from PIL import ImageCms

    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(image, lab, srgb, outputMode="RGB")
    assert converted is not None
    return converted


def decode(data: bytes, header: Header, out: Pixels) -> None:
    """Decode frame 0 into ``out``."""
    out[...] = pixels(read(data, header), header.spec)


def refusal(spec: ImageSpec, format: str) -> str | None:
    """Found out by writing a small image and reading it back, once for each kind of pixel."""
    if format in _SIDES and (reason := side_refusal(spec, format, _SIDES[format])):
        return reason
    if _stored_channels(format, spec.channels, spec.dtype):
        return None
    if not any(_survives(format, channels, spec.dtype) for channels in (1, 2, 3, 4)):
        return dtype_refusal(spec, format, ())
    if spec.dtype == "uint8" and spec.channels in (2, 4):
        return alpha_refusal(spec, format)
    return f"{format} can't hold {spec.channels}-channel {spec.dtype} pixels"


def _stored_channels(format: str, channels: int, dtype: str) -> int | None:
    """Channels that keep an image whole: its own, or RGB(A) for gray; None when none do."""
    tries = (channels, channels + 2) if channels < 3 else (channels,)
    return next((count for count in tries if _survives(format, count, dtype)), None)


@cache
def _survives(format: str, channels: int, dtype: str) -> bool:
    """Whether size, dtype and at least the channels come back."""
    import numpy as np

    sample = np.zeros((16, 16, channels), dtype)
    sample[4:] = 1 if dtype == "float32" else np.iinfo(dtype).max
    try:
        spec = probe(_save(sample, format, Saving())).spec
    except Exception:
        return False
    kept = (channels, channels + 2) if channels < 3 else (channels,)
    return (spec.height, spec.width, spec.dtype) == (16, 16, dtype) and spec.channels in kept


def metadata(data: bytes) -> Metadata:
    """What Pillow tells of a file without loading its pixels."""
    info = _open(data).info
    exif, xmp, icc, comment = (info.get(k) for k in ("exif", "xmp", "icc_profile", "comment"))
    comment = comment.encode() if isinstance(comment, str) else comment
    return Metadata(
        _exif.bare(exif) if isinstance(exif, bytes) else None,
        xmp if isinstance(xmp, bytes) else None,
        icc if isinstance(icc, bytes) else None,
        None,
        _density(info.get("dpi")),
        (comment,) if isinstance(comment, bytes) and comment else (),
    )


def _density(dpi: Any) -> Density | None:
    try:
        x, y = map(float, dpi)
    except (TypeError, ValueError):
        return None
    return Density(x, y, "inch") if x > 0 and y > 0 else None


def carried(metadata: Metadata, format: str) -> Metadata:
    return carried_fields(metadata, format, _FIELDS.get(format, frozenset()))


def stored_channels(spec: ImageSpec, format: str) -> int:
    return _stored_channels(format, spec.channels, spec.dtype) or spec.channels


def encode(image: Pixels, format: str, saving: Saving) -> bytes:
    """File of ``image``; a quality counts for AVIF only. GIF reduces to a palette."""
    if _stored_channels(format, image.shape[2], image.dtype.name) != image.shape[2]:
        image = gray_as_rgb(image)
    return _save(image, format, saving)


def _save(image: Pixels, format: str, saving: Saving) -> bytes:
    import numpy as np

    if format == "GIF":
        return _gif.encode([image], saving.metadata.comments)
    pil = _pil()
    array = np.ascontiguousarray(image)
    mode = _WRITE_MODES[array.shape[2], array.dtype.name]
    size = (array.shape[1], array.shape[0])
    file = io.BytesIO()
    extra = options(format, size, saving)
    pil.frombuffer(mode, size, array, "raw", mode, 0, 1).save(file, format, **extra)
    return file.getvalue()


def options(format: str, size: tuple[int, int], saving: Saving) -> dict[str, Any]:
    """What Pillow's writer of the format is to be told."""
    known = saving.metadata
    if format == "AVIF":
        blocks = {"exif": known.exif, "xmp": known.xmp, "icc_profile": known.icc}
        given: dict[str, Any] = {name: block for name, block in blocks.items() if block}
        return given | ({} if saving.quality is None else {"quality": saving.quality})
    if format in ("BMP", "DIB"):
        return {"dpi": known.density.per("inch") if known.density else (0, 0)}
    if format == "JPEG2000" and known.comments:
        return {"comment": known.comments[0]}
    return {"sizes": [size]} if format == "ICO" else {}

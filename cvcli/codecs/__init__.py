"""Image files to arrays and back: one module a codec, found by listing this folder.

The content of a file decides its format, never its suffix. Everything here may be called from
many threads at once; libraries are imported by the first call that needs them. Each failure of a
file is an ImageError, whose sentence leaves the name of the file to the caller.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, cast

from cvcli.codecs._base import Codec, Header, library_errors, spec_of
from cvcli.codecs._repair import repairable, repaired
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError, ParameterError, UsageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "Header",
    "decode",
    "encodable",
    "encode",
    "format_by_name",
    "format_for_suffix",
    "probe",
    "readable",
    "readable_suffixes",
    "recognised",
    "repairable",
    "repaired",
    "suffix_for_format",
    "versions",
]

# Shorter than any header: plugins would stumble over it.
_SMALLEST = 8
# Above every camera (the largest give 400 megapixels), 1.5 GB as RGB.
DEFAULT_MAX_PIXELS = 500_000_000


@cache
def _codecs() -> tuple[Codec, ...]:
    names = (m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    modules = [cast(Codec, importlib.import_module(f"{__name__}.{name}")) for name in names]
    return tuple(sorted(modules, key=lambda codec: codec.RANK))


def _codec_of(data: bytes) -> Codec:
    return next(codec for codec in _codecs() if codec.matches(data))


def _writer(format: str) -> Codec:
    for codec in _codecs():
        if format in codec.writes().values():
            return codec
    raise ImageError(f"{format} can't be written")


def probe(data: bytes, max_pixels: int | None = DEFAULT_MAX_PIXELS) -> Header:
    """Header of a whole file in memory, without decoding pixels.

    Raises ImageError for an empty file, no image, a short or senseless header, no pixels at all,
    or more than ``max_pixels`` pixels (None: no limit).
    """
    if not data:
        raise ImageError("empty file")
    if len(data) < _SMALLEST:
        raise ImageError("not an image, or of a format that isn't supported")
    codec = _codec_of(data)
    with library_errors("image", "decode"):
        header = codec.probe(data)
    spec = header.spec
    count = spec.height * spec.width
    if count < 1:
        raise ImageError(f"{header.format} image of no pixels ({spec.width}x{spec.height})")
    if max_pixels is not None and count > max_pixels:
        size = f"{spec.width}x{spec.height}"
        raise ImageError(
            f"{size} is {count} pixels, more than the limit of {max_pixels}",
            tip=f"raise the limit with --max-pixels {count} if you trust the file",
        )
    return header


def decode(data: bytes, header: Header, out: Pixels) -> None:
    """Write the pixels of frame 0 into ``out``, C-contiguous, of ``header.spec``'s shape and dtype.

    Raises ImageError when the data are truncated or corrupt; ``out`` then holds anything.
    """
    spec = header.spec
    if out.shape != spec.shape or out.dtype.name != spec.dtype:
        raise ImageError(f"{header.format} decodes to {spec}, not {out.shape} {out.dtype}")
    with library_errors(header.format, "decode"):
        _codec_of(data).decode(data, header, out)


def encode(
    image: Pixels, format: str, *, quality: int | None = None, source: Header | None = None
) -> bytes:
    """File of an image (h, w, c) of uint8, uint16 or float32; rows may lie apart.

    ``quality`` is 1..100: JPEG 90, WebP 80 (100 is lossless) and AVIF 75 unless given, without
    meaning elsewhere. ``source`` is the header of the file that the image came from; no format
    needs it so far. Equal images give equal bytes. Raises ImageError when the format can't hold
    the image, with the words of `encodable`, and ParameterError for a bad quality.
    """
    if quality is not None and not 1 <= quality <= 100:
        raise ParameterError(f"quality must be in 1..100, got {quality}")
    reason = encodable(spec_of(image), format)
    if reason:
        raise ImageError(reason)
    with library_errors(format, "encode"):
        return _writer(format).encode(image, format, quality)


def encodable(spec: ImageSpec, format: str) -> str | None:
    """Why ``format`` would not keep an image of ``spec`` whole; None when it would.

    Lossy compression and the palettes of GIF count as whole; losing alpha or depth does not.
    """
    if spec.height < 1 or spec.width < 1 or not 1 <= spec.channels <= 4:
        return f"{format} can't hold an image of {spec.width}x{spec.height}x{spec.channels}"
    try:
        return _writer(format).refusal(spec, format)
    except ImageError as error:
        return str(error)


def format_for_suffix(suffix: str) -> str | None:
    """Format that is written for a suffix such as ``.JPG``; None when none is."""
    lower = suffix.lower()
    if not lower:
        return None
    return next((c.writes()[lower] for c in _codecs() if lower in c.writes()), None)


def suffix_for_format(format: str) -> str:
    """The usual suffix of a format that can be written, such as ``.jpg``."""
    return next(s for s, f in _writer(format).writes().items() if f == format)


def format_by_name(name: str) -> str:
    """Format of a name that a user types: ``jpg``, ``JPEG``, ``tif``; UsageError when unknown."""
    lower = name.lower().removeprefix(".")
    names = {f.lower(): f for codec in _codecs() for f in codec.writes().values()}
    names |= {s[1:]: f for codec in _codecs() for s, f in codec.writes().items()}
    if lower in names:
        return names[lower]
    import difflib

    near = difflib.get_close_matches(lower, names, 1)
    tip = f"did you mean {near[0]}? " if near else ""
    formats = ", ".join(sorted({f.lower() for f in names.values()}))
    raise UsageError(f"no format is called {name!r}", tip=f"{tip}formats: {formats}")


@cache
def readable(suffix: str) -> bool:
    """Whether a folder scan picks up files of this suffix, such as ``.JPG``.

    The common formats are looked at first: the others take a library that is slow to load.
    """
    lower = suffix.lower()
    return bool(lower) and any(lower in codec.reads() for codec in _codecs())


@cache
def readable_suffixes() -> frozenset[str]:
    """Lower-case suffixes of the formats that can be read: what a folder scan picks up."""
    return frozenset(suffix for codec in _codecs() for suffix in codec.reads())


def versions() -> dict[str, str]:
    """Version of each library behind the codecs."""
    import imagecodecs

    found = {"imagecodecs": imagecodecs.__version__}
    for codec in _codecs():
        found |= codec.versions()
    return found


def recognised(head: bytes) -> bool:
    """Whether a file that starts with these bytes (at least 16) is of one of the common formats."""
    common = min(codec.RANK for codec in _codecs())
    return any(codec.matches(head) for codec in _codecs() if common == codec.RANK)

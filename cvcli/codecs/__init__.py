"""Image files to arrays and back: one module a codec, found by listing this folder.

The content of a file decides its format, never its suffix. Everything here may be called from
many threads at once; libraries are imported by the first call that needs them. Each failure of a
file is an ImageError, whose sentence leaves the name of the file to the caller.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, cast

from cvcli.codecs import _convert, _deep
from cvcli.codecs import _metadata as _kept
from cvcli.codecs._base import Codec, Header, Parts, library_errors, saving_of, spec_of
from cvcli.codecs._convert import WHITE, Colour, parse_colour
from cvcli.codecs._count import count
from cvcli.codecs._frames import SERIES, Frame, holds_all
from cvcli.codecs._lossless import QUALITY as LOSSLESS_QUALITY
from cvcli.codecs._lossless import has_inks, inked, is_lossless, keeps_inks, moved, turn_refusal
from cvcli.codecs._magic import format_of
from cvcli.codecs._metadata import INKS, Metadata, Strip
from cvcli.codecs._salvage import salvage, salvageable
from cvcli.codecs._series import frames, whole
from cvcli.codecs._shrink import shrinks, shrunk
from cvcli.codecs._srgb import to_srgb
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError, ParameterError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cvcli.codecs._base import Pixels

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "LOSSLESS_QUALITY",
    "SERIES",
    "WHITE",
    "Colour",
    "Frame",
    "Header",
    "Metadata",
    "Parts",
    "Strip",
    "converted",
    "count",
    "decode",
    "encodable",
    "encode",
    "encode_all",
    "encode_parts",
    "fit",
    "format_by_name",
    "format_for_suffix",
    "frames",
    "has_inks",
    "holds_all",
    "inked",
    "is_lossless",
    "keeping_tip",
    "keeps_inks",
    "metadata",
    "moved",
    "parse_colour",
    "prepared",
    "probe",
    "readable",
    "readable_suffixes",
    "recognised",
    "salvage",
    "salvageable",
    "shrinks",
    "shrunk",
    "suffix_for_format",
    "to_srgb",
    "turn_refusal",
    "versions",
    "whole",
]

# Answers about sizes of images: of many files most are alike.
_KEPT = 256
# Shorter than any header: plugins would stumble over it.
_SMALLEST = 8
# The only format that tells channels that are planes of their own from channels of pixels.
_PLANAR = "NPY"
# What is proposed for images that another format can't hold.
_ROOMY = ("png", "tiff", "npy")
# Above every camera (the largest give 400 megapixels), 1.5 GB as RGB.
DEFAULT_MAX_PIXELS = 500_000_000


@cache
def _codecs() -> tuple[Codec, ...]:
    names = (m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg and m.name[0] != "_")
    modules = [cast(Codec, importlib.import_module(f"{__name__}.{name}")) for name in names]
    return tuple(sorted(modules, key=lambda codec: codec.RANK))


def _codec_of(data: bytes) -> Codec:
    return next(codec for codec in _codecs() if codec.matches(data))


@cache
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


def metadata(data: bytes, header: Header) -> Metadata:
    """What a file says beside its pixels; never fails: what can't be read is noted as lost."""
    try:
        found = _codec_of(data).metadata(data)
    except Exception:
        return Metadata(lost=("malformed metadata is dropped",))
    return with_cuts(found, data, header)


def with_cuts(found: Metadata, data: bytes, header: Header) -> Metadata:
    """Metadata that names what the pixels lose on reading."""
    if header.mode != "CMYK" or has_inks(header):
        cut = _deep.loss(data, header.format, header.spec.dtype)
        return replace(found, cut=(*found.cut, cut)) if cut else found
    profile = (found.icc or b"")[16:20] == b"CMYK"
    means = "through its profile" if profile else "without a profile"
    return replace(found, icc=None, cut=(*found.cut, f"CMYK becomes RGB, {means}"))


def prepared(
    found: Metadata,
    source: Header,
    spec: ImageSpec,
    format: str,
    *,
    strip: Strip = "none",
    upright: bool = True,
) -> Metadata:
    """Metadata for an output of ``spec`` in ``format``: true of it, and what the format can hold.

    ``strip`` drops what tells of people and places (``private``) or all. With ``upright`` the
    pixels have been turned as ``source`` asks; without, the orientation is kept.
    """
    writer = _writer(format)
    left = 1 if upright else source.orientation
    found = _kept.stripped(found, strip)
    found = _kept.fitted(
        found,
        (spec.width, spec.height),
        INKS if has_inks(source) else writer.stored_channels(spec, format),
        was=source.orientation,
        left=left,
    )
    return writer.carried(found, format)


def encode(
    image: Pixels,
    format: str,
    *,
    quality: int | None = None,
    source: Header | None = None,
    metadata: Metadata | None = None,
    planar: bool = False,
) -> bytes:
    """File of an image (h, w, c) of uint8, uint16 or float32; rows may lie apart.

    A ``planar`` one is (c, h, w).
    ``quality`` is 1..100, without meaning for lossless formats. Without one the coding of
    ``source``, the header of the file that the image came from, is kept where the formats agree:
    quality and subsampling of JPEG, lossless WebP, compression of TIFF, palettes and bits of PNG
    and TIFF; else JPEG takes 90, WebP 80 (100 is lossless) and AVIF 75. ``metadata`` has been
    `prepared`. Equal images give equal bytes. Raises ImageError when the format can't hold the
    image, with the words of `encodable`, and ParameterError for a bad quality.
    """
    return b"".join(
        encode_parts(
            image, format, quality=quality, source=source, metadata=metadata, planar=planar
        )
    )


def encode_parts(
    image: Pixels,
    format: str,
    *,
    quality: int | None = None,
    source: Header | None = None,
    metadata: Metadata | None = None,
    planar: bool = False,
) -> Parts:
    """The file that `encode` gives, in parts, to be used before the thread encodes again."""
    if quality is not None and not 1 <= quality <= 100:
        raise ParameterError(f"quality must be in 1..100, got {quality}")
    inks = source is not None and has_inks(source)
    reason = None if inks else encodable(spec_of(image, planar), format)
    if reason:
        raise ImageError(reason)
    saving = saving_of(quality, source, format, metadata or Metadata(), planar)
    saving = replace(saving, inks=inks)
    with library_errors(format, "encode"):
        file = _writer(format).encode(image, format, saving)
    return (file,) if isinstance(file, bytes) else file


def encode_all(
    pictures: Sequence[Pixels],
    format: str,
    *,
    quality: int | None = None,
    sources: Sequence[Header],
    each: Sequence[Metadata],
    durations: Sequence[float],
) -> bytes:
    """File of several pictures: an animation, or pages of a TIFF, which may differ in size.

    ``sources`` and ``each`` hold the header and the metadata of each picture, of which an
    animation takes the first; durations are in ms. Otherwise as `encode`.
    """
    from cvcli.codecs import _joined

    for picture in pictures:
        if reason := encodable(spec_of(picture), format):
            raise ImageError(reason)
    savings = [
        saving_of(quality, source, format, known)
        for source, known in zip(sources, each, strict=True)
    ]
    with library_errors(format, "encode"):
        return _joined.encode(pictures, format, savings, durations, sources[0].plays)


@lru_cache(maxsize=_KEPT)
def fit(spec: ImageSpec, format: str) -> tuple[ImageSpec, tuple[str, ...]]:
    """What ``format`` can hold of an image of ``spec``, and a sentence for each loss.

    Raises ImageError when it can hold nothing like it.
    """
    for target in _convert.candidates(spec):
        if encodable(target, format) is None:
            reasons = _convert.losses(spec, target, lambda held: encodable(held, format))
            return target, reasons
    raise ImageError(encodable(spec, format) or f"{format} can't be written", keeping_tip(spec))


def keeping_tip(spec: ImageSpec) -> str | None:
    """A tip that names the formats which keep an image of ``spec`` whole; None if none does."""
    names = [name for name in _ROOMY if encodable(spec, name.upper()) is None]
    listed = " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    return f"--format {listed} keeps them, or an OUTPUT with that suffix" if names else None


def converted(image: Pixels, spec: ImageSpec, background: Colour = WHITE) -> Pixels:
    """``image`` as the channels and dtype of ``spec``, which `fit` gave: scaled and flattened."""
    return _convert.converted(image, spec, background)


@lru_cache(maxsize=_KEPT)
def encodable(spec: ImageSpec, format: str) -> str | None:
    """Why ``format`` would not keep an image of ``spec`` whole; None when it would.

    Lossy compression and the palettes of GIF count as whole; losing alpha or depth does not.
    """
    if spec.height < 1 or spec.width < 1 or not 1 <= spec.channels <= 4:
        return f"{format} can't hold an image of {spec.width}x{spec.height}x{spec.channels}"
    if spec.planar and format != _PLANAR:
        return f"{format} can't hold planar pixels"
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
    """Whether a file that starts with these bytes (at least 32) is an image beyond doubt."""
    common = min(codec.RANK for codec in _codecs())
    if any(codec.matches(head) for codec in _codecs() if common == codec.RANK):
        return True
    format = format_of(head)
    return format is not None and any(format in codec.reads().values() for codec in _codecs())

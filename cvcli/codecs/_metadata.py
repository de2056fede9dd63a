"""What a file says beside its pixels, in a form that every container here can take.

Blocks are kept as bytes and only edited where they would no longer be true of the output. What
can't be read or kept is named in ``lost``, and never fails an image.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cvcli.codecs import _exif

Strip = Literal["none", "private", "all"]

_PER_METRE = {"inch": 1 / 0.0254, "cm": 100.0, "m": 1.0}
INKS = -4
"""What stands for the channels of CMYK, which are as many as those of RGBA."""
_ICC_SPACES = {b"GRAY": (1, 2), b"RGB ": (3, 4), b"CMYK": (INKS,)}
_ICC_LEAST = 128
_RESOURCE = b"8BIM"
_IPTC, _OLD_THUMBNAIL, _THUMBNAIL = 0x0404, 0x0409, 0x040C
_XMP_ORIENTATION = re.compile(rb"(tiff:Orientation(?:\s*=\s*[\"']|>))[2-8](?=[\"'<])")
_XMP_THUMBNAILS = (b"<xmp:Thumbnails>", b"</xmp:Thumbnails>")


class Density(NamedTuple):
    """Pixels a unit of length; without a unit (``""``) only their ratio means anything."""

    x: float
    y: float
    unit: str

    def per(self, unit: str) -> tuple[float, float]:
        """Pixels a ``unit``: inch, cm or m."""
        if unit == self.unit:
            return self.x, self.y
        factor = _PER_METRE[self.unit] / _PER_METRE[unit]
        return self.x * factor, self.y * factor


@dataclass(frozen=True, slots=True)
class Metadata:
    """``exif`` is a TIFF block without prefix, ``xmp`` a packet, ``icc`` a profile.

    ``resources`` are Photoshop's (IPTC among them); ``colour`` and ``texts`` are PNG chunks of
    those kinds as (name, body); ``packets`` continue an XMP packet of JPEG. ``cut`` names what
    the pixels lose as they are read, which counts even if all metadata are stripped.
    """

    exif: bytes | None = None
    xmp: bytes | None = None
    icc: bytes | None = None
    resources: bytes | None = None
    density: Density | None = None
    comments: tuple[bytes, ...] = ()
    texts: tuple[tuple[bytes, bytes], ...] = ()
    colour: tuple[tuple[bytes, bytes], ...] = ()
    packets: tuple[bytes, ...] = ()
    lost: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()

    def losing(self, *reasons: str, **changes: object) -> Metadata:
        """A copy with some fields changed and the reasons noted."""
        return replace(self, lost=self.lost + reasons, **changes)  # type: ignore[arg-type]

    @property
    def iptc(self) -> bytes | None:
        """The IPTC record among the resources."""
        parts = resource_parts(self.resources or b"")
        return next((body for number, _, body in parts if number == _IPTC), None)


_NAMES = {
    "exif": "EXIF",
    "xmp": "XMP",
    "icc": "the ICC profile",
    "resources": "IPTC",
    "density": "the resolution",
    "comments": "a comment",
    "texts": "text",
    "colour": "gamma or chromaticity",
}


def carried(metadata: Metadata, format: str, fields: frozenset[str]) -> Metadata:
    """What a format of these fields can take, the others noted as lost."""
    missing = [name for name in _NAMES if name not in fields and getattr(metadata, name)]
    if not missing:
        return metadata
    told = [name for name in missing if name != "colour" or _tells_more(metadata)]
    reasons = [f"{format} can't hold {_NAMES[name]}" for name in told]
    plain = Metadata()
    return metadata.losing(*reasons, **{name: getattr(plain, name) for name in missing})


def _tells_more(metadata: Metadata) -> bool:
    """Whether the colour chunks say more than a profile, or than what is assumed without one."""
    kinds = {kind for kind, _ in metadata.colour}
    return b"cICP" in kinds or not (metadata.icc or b"sRGB" in kinds)


def stripped(metadata: Metadata, strip: Strip) -> Metadata:
    """Without what tells of people and places (``private``), or without anything (``all``)."""
    if strip == "none":
        return metadata
    if strip == "all":
        return Metadata()
    kept = {name: getattr(metadata, name) for name in ("icc", "density", "colour")}
    return Metadata(**kept, lost=tuple(reason for reason in metadata.lost if "ICC" in reason))


def fitted(
    metadata: Metadata, size: tuple[int, int], channels: int, *, was: int, left: int
) -> Metadata:
    """Metadata made true of an output of (width, height) pixels.

    ``was`` is the orientation that the source needed, ``left`` what the output still needs.
    """
    metadata = _with_true_exif(metadata, *size, left)
    if was > 4 and left == 1 and metadata.density is not None:
        x, y, unit = metadata.density
        metadata = replace(metadata, density=Density(y, x, unit))
    if metadata.xmp is not None:
        xmp = _without(metadata.xmp, *_XMP_THUMBNAILS)
        if was != left:
            xmp = _XMP_ORIENTATION.sub(rb"\g<1>1", xmp)
        metadata = replace(metadata, xmp=xmp)
    if metadata.resources is not None:
        metadata = replace(metadata, resources=_without_thumbnails(metadata.resources) or None)
    fault = icc_fault(metadata.icc, channels) if metadata.icc is not None else None
    return metadata.losing(fault, icc=None) if fault else metadata


def _with_true_exif(metadata: Metadata, width: int, height: int, orientation: int) -> Metadata:
    exif = metadata.exif
    if exif:
        try:
            exif = _exif.corrected(exif, width, height, upright=orientation == 1)
            return replace(metadata, exif=exif)
        except (struct.error, ValueError, IndexError):
            metadata = metadata.losing("malformed EXIF is dropped")
    block = None if orientation == 1 else _exif.orientation_only(orientation)
    return metadata if metadata.exif is block else replace(metadata, exif=block)


def _without(text: bytes, begin: bytes, end: bytes) -> bytes:
    """The text without what is between such marks, and without the marks."""
    parts, at = [], 0
    while (start := text.find(begin, at)) >= 0 and (stop := text.find(end, start)) >= 0:
        parts.append(text[at:start])
        at = stop + len(end)
    return b"".join(parts) + text[at:]


def icc_fault(profile: bytes, channels: int) -> str | None:
    """Why a profile doesn't suit an image of so many channels; None if it does."""
    if len(profile) < _ICC_LEAST or profile[36:40] != b"acsp":
        return "a malformed ICC profile is dropped"
    space = profile[16:20]
    if channels in _ICC_SPACES.get(space, ()):
        return None
    kind = space.decode("latin-1").strip()
    colours = "CMYK" if channels == INKS else "gray" if channels < 3 else "RGB"
    return f"the ICC profile is for {kind} and the pixels are {colours}, so it is dropped"


def resource_parts(block: bytes) -> list[tuple[int, bytes, bytes]]:
    """Photoshop resources as (number, padded name, body); a broken one ends the list."""
    parts, at = [], 0
    while block[at : at + 4] == _RESOURCE and at + 12 <= len(block):
        number = int.from_bytes(block[at + 4 : at + 6], "big")
        name_end = at + 6 + (block[at + 6] + 2) // 2 * 2
        size = int.from_bytes(block[name_end : name_end + 4], "big")
        start = name_end + 4
        if start + size > len(block):
            break
        parts.append((number, block[at + 6 : name_end], block[start : start + size]))
        at = start + size + size % 2
    return parts


def resource(number: int, body: bytes, name: bytes = b"\0\0") -> bytes:
    """One Photoshop resource."""
    head = _RESOURCE + number.to_bytes(2, "big") + name + len(body).to_bytes(4, "big")
    return head + body + b"\0" * (len(body) % 2)


def iptc_resource(record: bytes) -> bytes:
    """An IPTC record as a Photoshop resource."""
    return resource(_IPTC, record)


def _without_thumbnails(block: bytes) -> bytes:
    parts = resource_parts(block)
    stale = (_OLD_THUMBNAIL, _THUMBNAIL)
    if not any(number in stale for number, _, _ in parts):
        return block
    kept = (resource(number, body, name) for number, name, body in parts if number not in stale)
    return b"".join(kept)

"""What the codecs of a GPU take, told from a file's header; pixels then never cross the bus.

Only what they decode to libjpeg-turbo's pixels, but for a level here and there, and only that
way: whether an image goes there depends on the file alone, never on what it shares a batch with,
so that equal runs give equal bytes.
"""

from __future__ import annotations

from cvcli.codecs import _app_segments, jpeg
from cvcli.codecs._base import Header, Parts
from cvcli.codecs._metadata import Metadata
from cvcli.codecs.gpu.nvimage import (
    Coder,
    DeviceImage,
    Recipe,
    borrow,
    installed,
    preload,
    version,
)
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

__all__ = [
    "Coder",
    "DeviceImage",
    "Recipe",
    "borrow",
    "installed",
    "preload",
    "recipe",
    "refusal",
    "version",
    "with_metadata",
]

_FORMAT = "JPEG"
# Baseline and extended, by Huffman codes: the hardware engine takes no others.
_CODINGS = frozenset((0xC0, 0xC1))
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_APP14, _SOS, _ADOBE = 0xEE, 0xDA, b"Adobe"
_SAMPLINGS = frozenset(("444", "422", "420", "440"))
# Smaller ones differ by more at their edges, and cost the CPU next to nothing.
_LEAST_SIDE = 32


def refusal(data: bytes, header: Header) -> str | None:
    """Why the GPU's decoder must not be given a file; None if it gives the pixels that are meant.

    A truncated file is refused, as that decoder would not tell.
    """
    spec = header.spec
    if header.format != _FORMAT:
        return f"it is {header.format}"
    # Gray comes out wrong of the hardware engine (nvImageCodec 0.9).
    if spec.dtype != "uint8" or header.mode != "RGB":
        return f"a JPEG of {header.mode} {spec.dtype}"
    if min(spec.height, spec.width) < _LEAST_SIDE:
        return "so small an image"
    if header.coding.sampling not in _SAMPLINGS:
        return "a JPEG of unusual chroma sampling"
    try:
        return _odd(data)
    except ImageError as error:
        return str(error)


def _odd(data: bytes) -> str | None:
    """What in the markers would lead the GPU's decoder astray, or leave it at a loss."""
    scan = 0
    for kind, start, scan in jpeg._segments(data):  # noqa: B007
        if kind in _SOF:
            if kind not in _CODINGS:
                return "a JPEG of progressive or rare coding"
            if data[start + 6 : start + 13 : 3] == b"RGB":
                return "a JPEG of RGB components"
        elif (
            kind == _APP14
            and data.startswith(_ADOBE, start)
            and data[start + 11 : start + 12] == b"\0"
        ):
            return "a JPEG of RGB components"
    return None if data.rfind(b"\xff\xd9", scan) >= 0 else "truncated JPEG data"


def recipe(
    spec: ImageSpec, format: str, quality: int | None, source: Header | None
) -> Recipe | None:
    """How the GPU is to encode an image of ``spec``; None where only the CPU does it right.

    Quality, sampling and optimized codes are those of the CPU's encoder. Quantisation tables that
    are no quality's are kept only there.
    """
    if format != _FORMAT or spec.dtype != "uint8" or spec.planar or spec.channels != 3:
        return None
    if max(spec.height, spec.width) > jpeg.MAX_SIDE:
        return None
    coding = source.coding if source is not None and source.format == format else None
    if coding is None:
        return Recipe(quality or jpeg.QUALITY, "420", False)
    if coding.progressive or (quality is None and coding.tables):
        return None
    sampling = coding.sampling or "420"
    if sampling not in _SAMPLINGS:
        return None
    return Recipe(quality or coding.level or jpeg.QUALITY, sampling, coding.optimized)


def with_metadata(file: memoryview, metadata: Metadata) -> Parts:
    """A file that the GPU has encoded with metadata that has been `prepared`, in parts."""
    return _app_segments.attached(file, metadata)

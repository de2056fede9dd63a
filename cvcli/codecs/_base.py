"""What every codec shares: the header of a file, the codec protocol, the shape of an error."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from cvcli.codecs._metadata import Metadata
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[Any]

Parts = tuple[bytes | memoryview, ...]
"""A file in parts, one behind the other; large ones are not joined, which would copy them."""

# What it has to say of a file becomes an error here; where nobody listens, Python would print it.
logging.getLogger("imagecodecs").addHandler(logging.NullHandler())

_SHORT = re.compile(
    r"truncated|too small|end of (stream|file)|premature|not enough image|got \d+ bytes, exp", re.I
)


@dataclass(frozen=True, slots=True)
class Coding:
    """How a file was coded, so that `encode` can do likewise.

    ``level`` is the JPEG quality 1..100 that its tables stand for, ``tables`` are those tables,
    row by row, where no quality gives exactly them; ``sampling`` is 444, 422, 420, 411 or 440;
    ``optimized`` says that its codes were made for it, which takes time and saves some bytes;
    ``compression`` is a number of TIFF's; ``lossless`` tells WebP's two kinds apart.
    ``progressive`` and ``unit`` are JPEG's: the latter is the width and height of what can only be
    moved as a whole, None where the coding is one that `cvcli.codecs._dct` doesn't read.
    """

    level: int | None = None
    tables: tuple[tuple[int, ...], ...] = ()
    sampling: str | None = None
    optimized: bool = False
    compression: int | None = None
    lossless: bool = False
    progressive: bool = False
    unit: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Saving:
    """How to write a file: a ``quality`` that is asked for, or else the ``coding`` to keep.

    ``mode`` is the source's own pixel layout; ``metadata`` has been fitted to the output; a
    ``planar`` image comes as (channels, height, width); ``inks`` says that four channels are CMYK.
    """

    quality: int | None = None
    coding: Coding = field(default_factory=Coding)
    mode: str = ""
    metadata: Metadata = field(default_factory=Metadata)
    planar: bool = False
    inks: bool = False


def saving_of(
    quality: int | None,
    source: Header | None,
    format: str,
    known: Metadata,
    planar: bool = False,
) -> Saving:
    """How an image is to be saved: as its source was coded, if that was the same format."""
    if source is None:
        return Saving(quality, metadata=known, planar=planar)
    coding = source.coding if source.format == format else Coding()
    return Saving(quality, coding, source.mode, known, planar)


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says it holds, read without decoding a pixel.

    ``format`` is Pillow's name of what the content is, whatever the suffix says; ``spec`` is what
    `decode` writes; ``orientation`` is the EXIF value 1..8 that the pixels still need (1 when the
    file has none or an invalid one); ``mode`` is Pillow's name of the file's own pixel layout;
    ``plays`` counts the plays of an animation, 0 for no end. ``shrink`` is the factor by which
    `decode` makes the sides smaller, the spec being that of the smaller image.
    """

    format: str
    spec: ImageSpec
    orientation: int
    frames: int
    mode: str
    coding: Coding = field(default_factory=Coding)
    plays: int = 0
    shrink: int = 1


class Codec(Protocol):
    """What a module in this folder offers; `RANK` orders them, the most specific first."""

    RANK: int

    def matches(self, data: bytes) -> bool:
        """Whether the first bytes are this codec's."""

    def reads(self) -> Mapping[str, str]:
        """Lower-case suffix to format name, the usual suffix of a format first."""

    def writes(self) -> Mapping[str, str]:
        """Like `reads`, for the formats that `encode` takes."""

    def versions(self) -> Mapping[str, str]:
        """Library name to version."""

    def probe(self, data: bytes) -> Header:
        """Header of a file that `matches`; ImageError, or any exception of a library."""

    def decode(self, data: bytes, header: Header, out: Pixels) -> None:
        """Write frame 0 into ``out`` of ``header.spec``; ImageError, or a library's exception."""

    def refusal(self, spec: ImageSpec, format: str) -> str | None:
        """Why an image of ``spec`` would not survive in ``format``; None when it would."""

    def metadata(self, data: bytes) -> Metadata:
        """What the file says beside its pixels; what is malformed is left out and noted."""

    def carried(self, metadata: Metadata, format: str) -> Metadata:
        """What a file of ``format`` can hold of it, the rest noted as lost."""

    def stored_channels(self, spec: ImageSpec, format: str) -> int:
        """Channels that an image of ``spec`` has in the file."""

    def encode(self, image: Pixels, format: str, saving: Saving) -> bytes | Parts:
        """File of an image that `refusal` has passed.

        Parts of it may be memory that the next call of the same thread uses again.
        """


@contextmanager
def library_errors(format: str, task: str) -> Iterator[None]:
    """Turn whatever a library raises into an ImageError of one line."""
    try:
        yield
    except ImageError:
        raise
    except MemoryError as error:
        raise ImageError(f"not enough memory to {task} {format} data") from error
    except ImportError as error:
        tip = "pip install --upgrade imagecodecs pillow"
        raise ImageError(f"can't {task} {format}: {error}", tip) from error
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, UnicodeDecodeError):
            # It tells of the library's own message, whose memory was gone.
            reason = "its decoder gave up"
        if task != "decode":
            raise ImageError(f"can't {task} {format}: {reason}") from error
        if _SHORT.search(reason):
            raise ImageError(f"truncated {format} data") from error
        raise ImageError(f"corrupt {format} data: {reason}") from error


def borrowed(out: Pixels) -> Pixels:
    """The memory of ``out`` (h, w, c) for imagecodecs to decode into; gray as (h, w).

    It owns nothing: imagecodecs 2026.3 never lets go of the array of a decode that fails, which
    would keep a whole batch, and lets go of a gray one of 3 axes twice, which ends the process.
    """
    import ctypes

    import numpy as np

    memory = (ctypes.c_char * out.nbytes).from_address(out.ctypes.data)
    shape = out.shape[:2] if out.shape[2] == 1 else out.shape
    return np.frombuffer(memoryview(memory), out.dtype).reshape(shape)


def pixel_packed(image: Pixels) -> Pixels:
    """``image`` (h, w, c) with pixels back to back; rows may stay apart. Copies only if it must."""
    import numpy as np

    size = image.itemsize
    apart = image.strides[1:] != (image.shape[2] * size, size) or image.strides[0] <= 0
    return np.array(image, order="C") if apart else image


def gray_as_rgb(image: Pixels) -> Pixels:
    """Gray or gray with alpha (h, w, 1|2) as RGB or RGBA."""
    import numpy as np

    return np.concatenate([image[:, :, :1]] * 3 + [image[:, :, 1:]], axis=2)


def spec_of(image: Pixels, planar: bool = False) -> ImageSpec:
    """Spec of an (h, w, c) array, or (c, h, w) if planar; ImageError for any other shape."""
    if image.ndim != 3:
        raise ImageError(f"an image has 3 axes (height, width, channels), got {image.ndim}")
    if planar:
        channels, height, width = image.shape
    else:
        height, width, channels = image.shape
    return ImageSpec(height, width, channels, image.dtype.name, planar)


def dtype_refusal(spec: ImageSpec, format: str, dtypes: tuple[str, ...]) -> str | None:
    return None if spec.dtype in dtypes else f"{format} can't hold {spec.dtype} pixels"


def alpha_refusal(spec: ImageSpec, format: str) -> str | None:
    return f"{format} can't hold an alpha channel" if spec.channels in (2, 4) else None


def side_refusal(spec: ImageSpec, format: str, limit: int) -> str | None:
    if max(spec.height, spec.width) <= limit:
        return None
    return f"{format} can't hold {spec.width}x{spec.height} pixels: at most {limit} a side"

"""NPY, NumPy's file of one array: every dtype and layout that an image can have, as it is.

The header is taken apart here, never evaluated, and pickled objects are refused. Three axes are
(height, width, channels) where the last has at most 4, else (channels, height, width) where the
first has: a planar image. Two axes are a gray image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cvcli.codecs._base import Header, Parts, Saving, dtype_refusal
from cvcli.codecs._metadata import Metadata
from cvcli.codecs._metadata import carried as carried_fields
from cvcli.core.spec import ITEMSIZE, MAX_CHANNELS, ImageSpec
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

RANK = 0
SUFFIXES = {".npy": "NPY"}
GRAY_MODE = "HW"
"""The mode of a file without an axis of channels."""

_MAGIC = b"\x93NUMPY"
# Where the length of the text stands, by version; its bytes are Latin-1, or UTF-8 in 3.
_LENGTHS = {1: (8, 10), 2: (8, 12), 3: (8, 12)}
# NumPy itself takes no longer text.
_LONGEST = 10_000
_ALIGNMENT = 64
# What Python takes for space in an expression.
_SPACE = " \t\n\r\f"
_GAP = f"[{_SPACE}]*"
_LENGTH = f"(?:0|[1-9][0-9]{{0,17}})L?{_GAP}"
_SHAPE = rf"\((?:{_GAP}{_LENGTH},)*{_GAP}(?:{_LENGTH})?\)"
_FIELD = re.compile(
    rf"{_GAP}(['\"])(descr|fortran_order|shape)\1{_GAP}:{_GAP}"
    rf"('[^'\\\n]*'|\"[^\"\\\n]*\"|True|False|{_SHAPE}){_GAP}(?:,|$)"
)
_DTYPE = re.compile(r"[<>|=]?(u1|u2|f2|f4|f8)")
_READ_AS = {"u1": "uint8", "u2": "uint16", "f2": "float32", "f4": "float32", "f8": "float32"}


@dataclass(frozen=True, slots=True)
class _Array:
    """What a header says; the samples start at ``begin``."""

    descr: str
    columns_first: bool
    shape: tuple[int, ...]
    begin: int


def matches(data: bytes) -> bool:
    return data[: len(_MAGIC)] == _MAGIC


def reads() -> Mapping[str, str]:
    return SUFFIXES


def writes() -> Mapping[str, str]:
    return SUFFIXES


def versions() -> Mapping[str, str]:
    import numpy as np

    return {"numpy": np.__version__}


def probe(data: bytes) -> Header:
    """Header from the text before the samples, which need not be there."""
    array = _array(data)
    kind = _DTYPE.fullmatch(array.descr)
    if kind is None:
        tip = "save it as uint8, uint16 or float32"
        raise ImageError(f"NPY of dtype {array.descr!r} isn't supported", tip)
    return Header("NPY", _spec(array.shape, _READ_AS[kind[1]]), 1, 1, _mode(array.shape))


def _array(data: bytes) -> _Array:
    begin, end = _text_range(data)
    fields = _fields(data[begin:end].decode("latin-1"))
    if fields.keys() != {"descr", "fortran_order", "shape"}:
        raise ImageError("corrupt NPY header")
    descr, order, shape = (fields[name] for name in ("descr", "fortran_order", "shape"))
    if descr[0] not in "'\"" or order not in ("True", "False") or shape[0] != "(":
        raise ImageError("corrupt NPY header")
    lengths = tuple(int(digits) for digits in re.findall(r"\d+", shape))
    return _Array(descr[1:-1], order == "True", lengths, end)


def _text_range(data: bytes) -> tuple[int, int]:
    if len(data) < 12:
        raise ImageError("truncated NPY header")
    major, minor = data[6:8]
    if major not in _LENGTHS or minor != 0:
        raise ImageError(f"NPY of version {major}.{minor} isn't supported")
    start, begin = _LENGTHS[major]
    length = int.from_bytes(data[start:begin], "little")
    if length > _LONGEST:
        raise ImageError(f"corrupt NPY header: its text has {length} bytes, more than {_LONGEST}")
    if begin + length > len(data):
        raise ImageError("truncated NPY header")
    return begin, begin + length


def _fields(text: str) -> dict[str, str]:
    """The entries of a dictionary as they are written; ImageError for anything else."""
    text = text.strip(_SPACE)
    if not (text.startswith("{") and text.endswith("}")):
        raise ImageError("corrupt NPY header")
    found: dict[str, str] = {}
    rest, at = text[1:-1].rstrip(_SPACE), 0
    while at < len(rest):
        match = _FIELD.match(rest, at)
        if match is None:
            tip = "save one plain array of uint8, uint16 or float32" if "descr" in rest else None
            raise ImageError("NPY header that describes no plain array", tip)
        found[match[2]] = match[3]
        at = match.end()
    return found


def _spec(shape: tuple[int, ...], dtype: str) -> ImageSpec:
    if len(shape) == 2:
        return ImageSpec(*shape, 1, dtype)
    if len(shape) == 3 and 1 <= shape[2] <= MAX_CHANNELS:
        return ImageSpec(*shape, dtype)
    if len(shape) == 3 and 1 <= shape[0] <= MAX_CHANNELS:
        return ImageSpec(shape[1], shape[2], shape[0], dtype, planar=True)
    axes = "x".join(map(str, shape)) or "no axes"
    tip = f"save (height, width, channels), or (channels, height, width), of 1 to {MAX_CHANNELS}"
    raise ImageError(f"NPY of {axes} is no image", f"{tip} channels")


def _mode(shape: tuple[int, ...]) -> str:
    return GRAY_MODE if len(shape) == 2 else ""


def decode(data: bytes, header: Header, out: Pixels) -> None:
    """Copy the samples, whatever their order; half and double floats become float32."""
    import numpy as np

    array = _array(data)
    dtype = np.dtype(array.descr)
    count = out.size
    if len(data) - array.begin < count * dtype.itemsize:
        raise ImageError("truncated NPY data")
    samples = np.frombuffer(data, dtype, count, array.begin)
    shaped = samples.reshape(array.shape, order="F" if array.columns_first else "C")
    with np.errstate(over="ignore", invalid="ignore"):
        out[...] = shaped.reshape(out.shape)


def refusal(spec: ImageSpec, format: str) -> str | None:
    return dtype_refusal(spec, format, tuple(ITEMSIZE))


def metadata(data: bytes) -> Metadata:
    doubles = _array(data).descr.endswith("f8")
    return Metadata(cut=("float64 pixels are read as float32",) if doubles else ())


def carried(metadata: Metadata, format: str) -> Metadata:
    return carried_fields(metadata, format, frozenset())


def stored_channels(spec: ImageSpec, format: str) -> int:
    return spec.channels


def encode(image: Pixels, format: str, saving: Saving) -> Parts:
    """Version 1.0, little endian, rows first: always 3 axes, but gray has 2 if its source had."""
    import numpy as np

    if saving.mode == GRAY_MODE and not saving.planar and image.shape[2] == 1:
        image = image[:, :, 0]
    packed = np.ascontiguousarray(image, image.dtype.newbyteorder("<"))
    return _head(packed), packed.reshape(-1).view(np.uint8).data


def _head(array: Pixels) -> bytes:
    descr = f"{'|' if array.itemsize == 1 else '<'}{array.dtype.kind}{array.itemsize}"
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {array.shape}, }}"
    start = _LENGTHS[1][1]
    padded = -(-(start + len(text) + 1) // _ALIGNMENT) * _ALIGNMENT - start
    return _MAGIC + b"\1\0" + padded.to_bytes(2, "little") + f"{text:<{padded - 1}}\n".encode()

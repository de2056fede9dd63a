"""JPEG files moved without decoding them: flips, quarter turns and crops of whole blocks.

A block of 8x8 samples is kept as frequencies, quantised. To mirror it is to negate those that are
odd on that axis, to transpose it to swap the two axes, so no frequency is computed anew. What
can be moved are the units of ITU-T T.81, a block of each component or more where they are
sampled differently; one that the image's edge or a crop cuts stays whole only at the right and
bottom of the result, as blocks are counted from the other corner.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.core.turn import Turn

# Huffman-coded: baseline, extended, progressive.
_PROCESSES = (0xC0, 0xC1, 0xC2)
_BLOCK = 8
_FAULTS = {
    -1: "truncated JPEG data",
    -2: "corrupt JPEG data: its coefficients can't be read",
    -3: "this kind of JPEG can't be moved without loss",
    -4: "not enough memory",
}
_SLACK = 1 << 16
# As in the struct of ``kernels/jpeg/transcode.cpp``.
_PLACES = ("x", "y", "width", "height", "flip_x", "flip_y", "transpose")


def unit(process: int, frame: bytes) -> tuple[int, int] | None:
    """Width and height of a unit, by the frame's marker and body; None if it can't be read."""
    factors = frame[7 : 6 + 3 * frame[5] : 3]
    if process not in _PROCESSES or frame[0] not in (8, 12) or len(factors) != frame[5]:
        return None
    if len(factors) == 1:
        return _BLOCK, _BLOCK
    return _BLOCK * max(f >> 4 for f in factors), _BLOCK * max(f & 15 for f in factors)


def refusal(unit: tuple[int, int] | None, turn: Turn) -> str | None:
    """Why a file of such units can't take a turn without loss; None if it can."""
    if unit is None:
        return "JPEG that is arithmetic-coded or lossless can't be moved without decoding it"
    axes = (
        ("x", unit[0], turn.x, turn.width, turn.flip_x),
        ("y", unit[1], turn.y, turn.height, turn.flip_y),
    )
    for name, side, start, length, flipped in axes:
        edge = start + length if flipped else start
        if edge % side:
            return (
                f"only whole blocks of {unit[0]}x{unit[1]} px can be moved without loss, and an "
                f"edge at {name}={edge} of the stored image cuts through one"
            )
    return None


class _Move(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int32) for name in ("source_width", "source_height", *_PLACES))


@cache
def _library() -> ctypes.CDLL:
    import cvcli

    for folder in cvcli.__path__:
        for path in sorted((Path(folder) / "lib").glob("*cvcli_jpeg.*")):
            library = ctypes.CDLL(str(path))
            library.cvcli_jpeg_move.restype = ctypes.c_int64
            return library
    raise ImageError(
        "the compiled library (cvcli_jpeg) is missing from the installation",
        tip="reinstall cvcli with a C++ compiler on the PATH",
    )


def moved(data: bytes, size: tuple[int, int], turn: Turn) -> bytes:
    """The file of a JPEG of (width, height) px, moved, with no application segments.

    The quantisation tables, sampling factors, scans and restarts are the source's, transposed
    where it is; so are code tables that suit every image. `refusal` has passed the turn.
    Raises ImageError for a broken file.
    """
    move = _Move(*size, *(getattr(turn, name) for name in _PLACES))
    room = len(data) + len(data) // 8 + _SLACK
    while True:
        out = (ctypes.c_char * room)()
        length = _library().cvcli_jpeg_move(
            data, ctypes.c_int64(len(data)), ctypes.byref(move), out, ctypes.c_int64(room)
        )
        if length < 0:
            raise ImageError(_FAULTS.get(length, _FAULTS[-2]))
        if length <= room:
            return bytes(memoryview(out)[:length])
        room = length

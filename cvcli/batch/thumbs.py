"""Small pictures of images, to be put into a page."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import cvcli.codecs as codecs
from cvcli.batch.places import Place
from cvcli.batch.storage import storage_of
from cvcli.errors import CvcliError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE = 144
# What is larger takes too long for a picture beside a line of text.
_MOST_PIXELS = 100_000_000


def thumbnail(path: Place) -> str | None:
    """Return an image file as a small ``data:`` address, upright; None if it can't be read."""
    import numpy as np

    try:
        data, _ = storage_of(path).read(path, stamped=False)
        header = codecs.probe(data, _MOST_PIXELS)
        pixels = np.empty(header.spec.shape, header.spec.dtype)
        codecs.decode(data, header, pixels)
        if header.spec.planar:
            pixels = pixels.transpose(1, 2, 0)
        small = _as_bytes(_shrunk(_upright(pixels, header.orientation)))
        alpha = small.shape[2] in (2, 4)
        kind, quality = ("PNG", None) if alpha else ("JPEG", 75)
        file = codecs.encode(np.ascontiguousarray(small), kind, quality=quality)
    except (CvcliError, MemoryError):
        return None
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file).decode('ascii')}"


def _upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Return pixels as they are to be seen, by the orientation of the EXIF standard."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    rows = -1 if orientation in (3, 4, 7, 8) else 1
    columns = -1 if orientation in (2, 3, 6, 7) else 1
    return pixels[::rows, ::columns]


def _shrunk(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return pixels averaged over squares, so that no side is over `SIDE`."""
    import numpy as np

    height, width = pixels.shape[:2]
    step = -(-max(height, width) // SIDE)
    if step == 1:
        return pixels
    rows, columns = max(1, height // step), max(1, width // step)
    y, x = min(step, height), min(step, width)
    parts = pixels[: rows * y, : columns * x].reshape(rows, y, columns, x, -1)
    mean: NDArray[Any] = parts.mean(axis=(1, 3), dtype=np.float32).astype(pixels.dtype)
    return mean


def _as_bytes(pixels: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    if pixels.dtype == np.uint16:
        pixels = pixels >> 8
    elif pixels.dtype == np.float32:
        pixels = np.nan_to_num(pixels.clip(0, 1)) * 255
    return pixels.astype(np.uint8)

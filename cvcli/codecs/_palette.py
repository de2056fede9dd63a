"""Few colours and bits: images that were stored as them are stored as them again."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage

    from cvcli.codecs._base import Pixels

MOST = 256
# TIFF's compressions, those of bits alone among them, by Pillow's names.
_CODINGS = {1: "raw", 5: "tiff_lzw", 8: "tiff_adobe_deflate", 32946: "tiff_adobe_deflate"}
_CODINGS |= {32773: "packbits"}
_BIT_CODINGS = _CODINGS | {2: "tiff_ccitt", 3: "group3", 4: "group4"}


class Indexed(NamedTuple):
    """Places in a palette (h, w), and its colours (n, 3 or 4)."""

    places: Pixels
    colours: Pixels


def indexed(image: Pixels) -> Indexed | None:
    """An RGB or RGBA image of uint8 by its colours; None if they are more than a palette holds."""
    import numpy as np
    from PIL import Image

    whole = np.ascontiguousarray(image)
    counted = Image.fromarray(whole).getcolors(MOST)
    if counted is None:
        return None
    colours = np.array([colour for _, colour in counted], np.uint8)
    values, packed = _packed(colours[None])[0], _packed(whole)
    order = np.argsort(values)
    places = np.searchsorted(values[order], packed).astype(np.uint8)
    return Indexed(places, colours[order])


def _packed(image: Pixels) -> Pixels:
    """One number for each pixel (h, w)."""
    import numpy as np

    packed: Pixels = np.zeros(image.shape[:2], np.uint32)
    for channel in range(image.shape[2]):
        packed |= image[:, :, channel].astype(np.uint32) << 8 * channel
    return packed


def pillow_image(found: Indexed) -> PilImage:
    """A palette image without its opacities."""
    from PIL import Image

    image = Image.frombytes("P", found.places.shape[::-1], found.places.tobytes())
    image.putpalette(found.colours[:, :3].tobytes())
    return image


def bits(image: Pixels) -> PilImage | None:
    """A gray image of black and white alone; None for any other."""
    import numpy as np
    from PIL import Image

    if image.shape[2] != 1 or image.dtype != np.uint8 or not ((image == 0) | (image == 255)).all():
        return None
    return Image.fromarray(np.ascontiguousarray(image[:, :, 0])).convert("1")


def _stored(image: Pixels, mode: str) -> tuple[PilImage, dict[str, Any]] | None:
    if mode == "1":
        black_and_white = bits(image)
        return None if black_and_white is None else (black_and_white, {})
    if mode != "P" or image.shape[2] < 3 or image.dtype.name != "uint8":
        return None
    found = indexed(image)
    if found is None:
        return None
    opacities = {"transparency": found.colours[:, 3].tobytes()} if image.shape[2] == 4 else {}
    return pillow_image(found), opacities


def png_of(image: Pixels, mode: str) -> bytes | None:
    """PNG of a palette or of bits, if ``mode`` says that the source was one and it still fits."""
    stored = _stored(image, mode)
    return None if stored is None else _saved(stored[0], "PNG", **stored[1])


def tiff_of(image: Pixels, mode: str, compression: int | None) -> bytes | None:
    """TIFF likewise; a TIFF palette knows no opacity."""
    stored = _stored(image, mode) if image.shape[2] != 4 else None
    if stored is None:
        return None
    names = _BIT_CODINGS if mode == "1" else _CODINGS
    default = "group4" if mode == "1" else "tiff_lzw"
    return _saved(stored[0], "TIFF", compression=names.get(compression or 0, default))


def _saved(image: PilImage, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()

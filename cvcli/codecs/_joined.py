"""Writing files of several pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cvcli.codecs import _apng, _chunks, _gif, _riff, pillow, png, tiff, webp
from cvcli.codecs._base import Saving, gray_as_rgb
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels


def encode(
    pictures: Sequence[Pixels],
    format: str,
    savings: Sequence[Saving],
    durations: Sequence[float],
    plays: int,
) -> bytes:
    """One file of all pictures; ``plays`` 0 is endless."""
    if format == "TIFF":
        pages = [tiff.page(*pair) for pair in zip(pictures, savings, strict=True)]
        return tiff.join(pages, [saving.metadata for saving in savings])
    saving = savings[0]
    if len({picture.shape[:2] for picture in pictures}) > 1:
        raise ImageError(f"{format} can't hold pictures of different sizes")
    alike = _of_one_kind(pictures)
    if format == "GIF":
        # GIF counts how often it is repeated, and once needs no count.
        loop = None if plays == 1 else max(0, plays - 1)
        return _gif.encode(alike, saving.metadata.comments, durations, loop)
    if format == "PNG":
        files = [png.encode(picture, format, Saving()) for picture in alike]
        return _chunks.attach(_apng.joined(files, durations, plays), saving.metadata)
    if format == "WEBP":
        return _webp(alike, saving, durations, plays)
    return _by_pillow(alike, format, durations, pillow.options(format, (0, 0), saving))


def _of_one_kind(pictures: Sequence[Pixels]) -> list[Pixels]:
    """Pictures with the channels of the richest: gray as RGB, and opaque alpha where one has it."""
    import numpy as np

    counts = {picture.shape[2] for picture in pictures}
    if len(counts) == 1:
        return list(pictures)
    coloured, clear = bool(counts & {3, 4}), bool(counts & {2, 4})
    alike = []
    for picture in pictures:
        if clear and picture.shape[2] in (1, 3):
            top = np.iinfo(picture.dtype).max if picture.dtype.kind == "u" else 1
            alpha = np.full_like(picture[:, :, :1], top)
            picture = np.concatenate([picture, alpha], axis=2)
        alike.append(gray_as_rgb(picture) if coloured and picture.shape[2] < 3 else picture)
    return alike


def _webp(pictures: list[Pixels], saving: Saving, durations: Sequence[float], plays: int) -> bytes:
    if pictures[0].shape[2] < 3:
        pictures = [gray_as_rgb(picture) for picture in pictures]
    options = webp.options(saving) | {"loop": plays, "exact": True}
    file = _by_pillow(pictures, "WEBP", durations, options)
    return _riff.attach(file, saving.metadata, pictures[0].shape[1], pictures[0].shape[0])


def _by_pillow(
    pictures: list[Pixels], format: str, durations: Sequence[float], options: dict[str, Any]
) -> bytes:
    import numpy as np
    from PIL import Image

    images = [Image.fromarray(np.ascontiguousarray(p)) for p in pictures]
    times = [max(1, round(duration)) for duration in durations]
    file = io.BytesIO()
    images[0].save(file, format, save_all=True, append_images=images[1:], duration=times, **options)
    return file.getvalue()

"""Which images of a run take the GPU's codecs: told by each file and what is asked for it."""

from __future__ import annotations

from cvcli.batch.album import Album, Picture
from cvcli.batch.slots import Way
from cvcli.codecs import gpu


def way_of(album: Album, picture: Picture, data: bytes, quality: int | None) -> Way:
    """Return the way of a picture where the GPU's codecs may be used.

    They take files of one picture; what is converted to sRGB or to what the output holds, which
    the CPU does, takes its codecs.
    """
    recipe = None
    if album.expected == 1 and picture.stored == picture.plan.target and not album.care.lossless:
        recipe = gpu.recipe(picture.stored, album.format, quality, picture.header)
    return Way(data if reason_of(album, picture, data) is None else None, recipe)


def reason_of(album: Album, picture: Picture, data: bytes) -> str | None:
    """Return why the CPU decodes an image, None if the GPU does."""
    if picture.header.frames > 1 or album.expected > 1:
        return "it holds several pictures"
    if album.care.to_srgb:
        return "it is converted to sRGB"
    if picture.header.shrink > 1:
        return "it is decoded small"
    return gpu.refusal(data, picture.header)

"""Decoded pixels converted to sRGB through the profile that came with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvcli.codecs import _convert
from cvcli.codecs._metadata import Metadata, icc_fault

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels


def to_srgb(pixels: Pixels, found: Metadata) -> Metadata:
    """Convert decoded pixels in place through their profile; the metadata that is then true.

    Without a profile they are taken for sRGB. One that LittleCMS refuses stays and is noted.
    """
    if found.icc is None:
        told = {kind for kind, _ in found.colour}
        if b"cICP" in told or (b"gAMA" in told and b"sRGB" not in told):
            return found.losing("only ICC profiles are converted to sRGB, not gamma or cICP chunks")
        return found
    channels = pixels.shape[2]
    try:
        if icc_fault(found.icc, channels) is None:
            _convert.to_srgb(pixels, found.icc)
            return found.losing(icc=None, colour=())
    except Exception:
        return found.losing("the ICC profile can't be used, so nothing is converted to sRGB")
    return found

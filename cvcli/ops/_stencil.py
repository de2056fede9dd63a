"""What the operators on neighbourhoods share."""

from __future__ import annotations

from cvcli.core.spec import ImageSpec
from cvcli.core.stencil import Edges
from cvcli.ops._params import Border, Color, pixel

LARGEST = 127
"""Pixels on a side of the largest window."""


def edges_of(image: ImageSpec, border: Border, value: Color = 0) -> Edges:
    """Return what lies outside an image by a rule and the colour of a constant one."""
    fill = pixel(value, image.channels, image.top) if border == "constant" else ()
    return Edges(border, fill, image)

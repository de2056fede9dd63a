import math
from typing import Annotated

from cvcli.core.move import Move, gather, reversed_indices
from cvcli.core.passes import Lowered
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param
from cvcli.ops._warp import Interp, warped


@operator(
    cases=(
        {"angle": 90},
        {"angle": 180},
        {"angle": -90},
        {"angle": 0},
        {"angle": 30},
        {"angle": -200.5, "expand": True, "interp": "bicubic", "value": (9, 8, 7, 200)},
        {"angle": 45, "interp": "nearest", "border": "reflect101", "expand": True},
    )
)
def rotate(
    image: ImageSpec,
    angle: Annotated[float, Param("Counter-clockwise.", unit="degrees")],
    expand: Annotated[bool, Param("Whether the result is to hold the whole image.")] = False,
    interp: Annotated[Interp, Param("How to make pixels from their neighbours.")] = "bilinear",
    border: Annotated[Border, Param("What lies outside the image.")] = "constant",
    value: Annotated[
        Color, Param("Colour of a constant border: one value for all, or one a channel.")
    ] = 0,
) -> Lowered:
    """Turn the image counter-clockwise.

    Multiples of 90 degrees move the pixels and change none; width and height swap at 90 and 270.
    Other angles turn the image about its centre, as warp-affine does it: into its own size, or
    with expand into the smallest that holds it all. CV-CUDA's rotate turns about a corner, and
    leaves pixels outside the image unwritten.
    """
    if angle % 90 == 0:
        return _quarters(image, int(angle // 90 % 4))
    turn = math.radians(math.fmod(angle, 360))
    cos, sin = math.cos(turn), math.sin(turn)
    width, height = _canvas(image, abs(cos), abs(sin)) if expand else (image.width, image.height)
    x, y = (width - 1) / 2, (height - 1) / 2
    left = (image.width - 1) / 2 - (cos * x - sin * y)
    top = (image.height - 1) / 2 - (sin * x + cos * y)
    to_source = cos, -sin, left, sin, cos, top, 0.0, 0.0, 1.0
    return warped(image, (width, height), to_source, interp, border, value)


def _quarters(image: ImageSpec, turns: int) -> Move:
    transpose = turns % 2 == 1
    height, width = (image.width, image.height) if transpose else (image.height, image.width)
    y = reversed_indices(height) if turns in (1, 2) else None
    x = reversed_indices(width) if turns in (2, 3) else None
    return gather(image, y=y, x=x, transpose=transpose)


def _canvas(image: ImageSpec, cos: float, sin: float) -> tuple[int, int]:
    """Return width and height of what holds the turned image; rounding errors add no pixel."""
    width = math.ceil(image.width * cos + image.height * sin - 1e-6)
    height = math.ceil(image.width * sin + image.height * cos - 1e-6)
    return width, height

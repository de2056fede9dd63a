from typing import Annotated

import cvcli.core.border as borders
from cvcli.core.move import Move, gather
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param, pixel

# More than any format holds on a side that is padded at all, and few enough to add up safely.
_MOST = 10_000_000


@operator(
    cases=(
        {"top": 1, "bottom": 2, "left": 3, "right": 4},
        {"left": 5, "value": (7, 3, 9, 200)},
        {"top": 3, "bottom": 5, "left": 7, "right": 2, "border": "replicate"},
        {"top": 20, "left": 30, "border": "reflect"},
        {"bottom": 20, "right": 30, "border": "reflect101"},
        {"top": 3, "bottom": 5, "left": 7, "right": 2, "border": "wrap"},
    )
)
def pad(
    image: ImageSpec,
    top: Annotated[int, Param("Rows to add above.", min=0, max=_MOST, unit="px")] = 0,
    bottom: Annotated[int, Param("Rows to add below.", min=0, max=_MOST, unit="px")] = 0,
    left: Annotated[int, Param("Columns to add on the left.", min=0, max=_MOST, unit="px")] = 0,
    right: Annotated[int, Param("Columns to add on the right.", min=0, max=_MOST, unit="px")] = 0,
    border: Annotated[Border, Param("What the new pixels are.")] = "constant",
    value: Annotated[
        Color, Param("Colour of a constant border: one value for all, or one a channel.")
    ] = 0,
) -> Move:
    """Add a border around the image.

    The border is a constant colour, or made from the image: replicate (aaa|abcd|ddd), reflect
    (cba|abcd|dcb), reflect101 (dcb|abcd|cba) or wrap (bcd|abcd|abc). A colour of one value goes to
    every channel, alpha too; with three values the border of an image with alpha is opaque.
    """
    fill = pixel(value, image.channels, image.top) if border == "constant" else ()
    return gather(
        image,
        y=borders.extend(image.height, top, bottom, border),
        x=borders.extend(image.width, left, right, border),
        fill=fill,
    )

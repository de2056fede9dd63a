from typing import Annotated

from cvcli.core.passes import Pattern
from cvcli.core.patterns.box import Box
from cvcli.core.patterns.separable import Separable
from cvcli.core.spec import ImageSpec
from cvcli.core.stencil import box_half
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param, Window, sides_of
from cvcli.ops._stencil import LARGEST, edges_of


@operator(
    cases=(
        {"size": 7},
        {"size": (3, 5), "border": "constant", "value": 40},
        {"size": (9, 1), "border": "wrap"},
        {"size": 33, "border": "reflect"},
    )
)
def averageblur(
    image: ImageSpec,
    size: Annotated[
        Window,
        Param("Odd size of the window, or its width and height.", min=1, max=LARGEST, unit="px"),
    ],
    border: Annotated[Border, Param("What lies outside the image.")] = "reflect101",
    value: Annotated[Color, Param("Colour of a constant border.")] = 0,
) -> Pattern:
    """Blur with the mean of a window.

    The mean of integers is exact, rounded once; that of floats is two sums in float32, rows first.
    All channels are treated alike, alpha too. CV-CUDA's default border is constant.
    """
    radius_x, radius_y = (side // 2 for side in sides_of(size))
    edges = edges_of(image, border, value)
    if image.dtype == "float32":
        return Separable(image, edges, box_half(radius_x), box_half(radius_y))
    return Box(image, edges, radius_x, radius_y)

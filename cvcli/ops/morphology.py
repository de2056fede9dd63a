from typing import Annotated, Literal

from cvcli.core.patterns.rectangle import Rectangle, rectangles
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param, Window, sides_of
from cvcli.ops._stencil import LARGEST, edges_of

Operation = Literal["erode", "dilate", "open", "close"]
# Whether each pass looks for the largest sample.
_PASSES: dict[str, tuple[bool, ...]] = {
    "erode": (False,),
    "dilate": (True,),
    "open": (False, True),
    "close": (True, False),
}


@operator(
    cases=(
        {"operation": "dilate"},
        {"operation": "erode", "size": (5, 3)},
        {"operation": "open", "size": (1, 7), "border": "wrap"},
        {"operation": "close", "border": "constant", "value": (9, 200, 30, 77)},
        {"operation": "erode", "size": 5, "iterations": 4, "border": "replicate"},
    )
)
def morphology(
    image: ImageSpec,
    operation: Annotated[Operation, Param("open erodes, then dilates; close the reverse.")],
    size: Annotated[
        Window,
        Param("Odd size of the rectangle, or its width and height.", min=1, max=LARGEST, unit="px"),
    ] = 3,
    iterations: Annotated[int, Param("How often to erode or dilate in turn.", min=1, max=20)] = 1,
    border: Annotated[Border, Param("What lies outside the image.")] = "reflect101",
    value: Annotated[Color, Param("Colour of a constant border.")] = 0,
) -> tuple[Rectangle, ...]:
    """Erode to the smallest or dilate to the largest sample of a rectangle.

    Each channel on its own, alpha too. replicate, reflect and reflect101 give the same as OpenCV's
    and CV-CUDA's default of a border that never wins; a constant here has its value. Several
    iterations are one with a larger rectangle, as in OpenCV: open erodes that often, then dilates
    that often. In float images -0 is below 0 and NaN above infinity.
    """
    radius_x, radius_y = (side // 2 * iterations for side in sides_of(size))
    edges = edges_of(image, border, value)
    return tuple(
        part
        for largest in _PASSES[operation]
        for part in rectangles(image, edges, radius_x, radius_y, largest=largest)
    )

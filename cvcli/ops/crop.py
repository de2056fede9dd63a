from typing import Annotated, Literal

from cvcli.core.move import Move, gather, indices
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Param

Gravity = Literal[
    "northwest", "north", "northeast", "west", "center", "east", "southwest", "south", "southeast"
]


@operator(
    exclusive=(("gravity", "x"), ("gravity", "y")),
    cases=(
        {"width": 1, "height": 1},
        {"width": 7, "height": 5, "x": 3, "y": 2},
        {"width": 6, "height": 4, "gravity": "center"},
        {"width": 5, "height": 3, "gravity": "southeast"},
    ),
)
def crop(
    image: ImageSpec,
    width: Annotated[int, Param("Width of the result.", min=1, unit="px")],
    height: Annotated[int, Param("Height of the result.", min=1, unit="px")],
    x: Annotated[int | None, Param("Left edge, 0 by default.", min=0, unit="px")] = None,
    y: Annotated[int | None, Param("Top edge, 0 by default.", min=0, unit="px")] = None,
    gravity: Annotated[Gravity | None, Param("Where to take it from, instead of x and y.")] = None,
) -> Move:
    """Cut a rectangle out of the image.

    Give its corner with x and y, or a gravity such as center. A rectangle that is not wholly
    inside the image is an error.
    """
    if width > image.width or height > image.height:
        raise _outside(image, f"{width}x{height}")
    left = x or 0 if gravity is None else _place(gravity, "west", "east", image.width - width)
    top = y or 0 if gravity is None else _place(gravity, "north", "south", image.height - height)
    if left + width > image.width or top + height > image.height:
        raise _outside(image, f"{width}x{height} at {left},{top}")
    return gather(image, y=indices(height) + top, x=indices(width) + left)


def _place(gravity: str, low: str, high: str, slack: int) -> int:
    """Return the offset on one axis; what is odd in the middle goes to the high side."""
    if low in gravity:
        return 0
    return slack if high in gravity else slack // 2


def _outside(image: ImageSpec, rectangle: str) -> ParameterError:
    return ParameterError(
        f"the rectangle {rectangle} must be inside the image, got {image.width}x{image.height}"
    )

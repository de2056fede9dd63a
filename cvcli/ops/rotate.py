from typing import Annotated

from cvcli.core.move import Move, gather, reversed_indices
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(cases=({"angle": 90}, {"angle": 180}, {"angle": -90}, {"angle": 0}))
def rotate(
    image: ImageSpec,
    angle: Annotated[
        float, Param("Counter-clockwise.", multiple=90, unit="degrees, a multiple of 90")
    ],
) -> Move:
    """Turn the image counter-clockwise by a multiple of 90 degrees.

    The pixels are moved, not resampled; width and height swap at 90 and 270 degrees.
    """
    turns = int(angle // 90) % 4
    transpose = turns % 2 == 1
    height, width = (image.width, image.height) if transpose else (image.height, image.width)
    y = reversed_indices(height) if turns in (1, 2) else None
    x = reversed_indices(width) if turns in (2, 3) else None
    return gather(image, y=y, x=x, transpose=transpose)

from typing import Annotated

from cvcli.core.move import Move, gather, reversed_indices
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(cases=({"axis": 0}, {"axis": 1}, {"axis": -1}))
def flip(
    image: ImageSpec,
    axis: Annotated[int, Param("0 reverses the rows, > 0 the columns, < 0 both.")],
) -> Move:
    """Mirror the image.

    Axis 0 flips around the x axis (upside down), 1 around the y axis (left to right), and -1
    around both, which is a half turn.
    """
    y = reversed_indices(image.height) if axis <= 0 else None
    x = reversed_indices(image.width) if axis != 0 else None
    return gather(image, y=y, x=x)

from typing import Annotated

from cvcli.core.passes import Pattern
from cvcli.core.patterns.median import Median
from cvcli.core.patterns.median_small import MedianSmall
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Param

_LARGEST_NETWORK = 5


@operator(cases=({"size": 3}, {"size": 5}, {"size": 7}, {"size": 17}))
def median_blur(
    image: ImageSpec,
    size: Annotated[int, Param("Side of the square, an odd number.", min=3, max=31, unit="px")],
) -> Pattern:
    """Replace each sample by the median of the square around it, channel by channel.

    Takes away specks and keeps edges. Outside the image its edge goes on, as in OpenCV's
    medianBlur. Alpha is filtered too. Floats are ordered as IEEE 754 does in total, NaN last.
    """
    if size % 2 == 0:
        raise ParameterError(f"size must be odd, got {size}")
    return MedianSmall(image, size) if size <= _LARGEST_NETWORK else Median(image, size)

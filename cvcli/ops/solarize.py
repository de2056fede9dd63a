from typing import Annotated

from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Level, Param, level


@operator(cases=({}, {"threshold": 100}, {"threshold": "0%"}, {"threshold": "100%"}))
def solarize(
    image: ImageSpec,
    threshold: Annotated[Level, Param("The lowest value to invert, or a share as 50%.")] = "50%",
) -> Pointwise:
    """Invert all samples at or above a threshold.

    White is 255, 65535 or 1.0 by dtype. Alpha is left alone.
    """
    return Pointwise("solarize", (level(threshold, image.top), image.top))

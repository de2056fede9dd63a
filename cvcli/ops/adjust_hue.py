from typing import Annotated

from cvcli.core.move import identity
from cvcli.core.passes import Lowered
from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(cases=({"factor": 0.2}, {"factor": -0.5}, {"factor": 0}))
def adjust_hue(
    image: ImageSpec,
    factor: Annotated[
        float, Param("Part of a whole turn to shift hues by, red to green to blue.", -0.5, 0.5)
    ],
) -> Lowered:
    """Turn the hue of colours; saturation and value, as in HSV, stay.

    As torchvision defines it. Integers round half to even, where torchvision and CV-CUDA cut the
    fraction off. Gray images and alpha stay as they are.
    """
    if image.channels < 3:
        return identity(image)
    shifts = (1 + (sixths - 1 + 6 * factor) % 6 for sixths in (5, 3, 1))
    return Pixelwise("adjust_hue", (*shifts, 0.0), image.channels, image.dtype)

from typing import Annotated

from cvcli.core.move import identity
from cvcli.core.passes import Lowered
from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(cases=({"factor": 1.7}, {"factor": 0}, {"factor": 0.3}))
def adjust_saturation(
    image: ImageSpec,
    factor: Annotated[float, Param("0 gives gray, 1 the image as it is.", min=0)],
) -> Lowered:
    """Make colours stronger or paler.

    Computes factor * v + (1 - factor) * (0.2989 R + 0.587 G + 0.114 B), as torchvision does, cut
    to the range of the dtype (0 to 1 for float32). Integers round half to even, where torchvision
    and CV-CUDA cut the fraction off. Gray images and alpha stay as they are.
    """
    if image.channels < 3:
        return identity(image)
    return Pixelwise("adjust_saturation", (factor, image.top), image.channels, image.dtype)

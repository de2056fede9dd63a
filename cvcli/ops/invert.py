from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator


@operator()
def invert(image: ImageSpec) -> Pointwise:
    """Make the negative: white minus each sample.

    White is 255, 65535 or 1.0 by dtype. Alpha is left alone.
    """
    return Pointwise("invert", (image.top,))

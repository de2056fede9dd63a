from cvcli.core.patterns.lookup import Adapted
from cvcli.core.patterns.tables import Rule
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator


@operator()
def histogrameq(image: ImageSpec) -> Adapted:
    """Equalize the histogram of each channel of an 8-bit image.

    As OpenCV's equalizeHist on each channel: the lowest value goes to 0, the highest to 255, and
    in between values are spread by how many samples are darker. An image of one value keeps it.
    Alpha is left alone.
    """
    if image.dtype != "uint8":
        raise ParameterError(f"dtype must be uint8, got {image.dtype}")
    return Adapted(Rule("equalize"))

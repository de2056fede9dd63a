from typing import Annotated

from cvcli.core.patterns.lookup import Adapted
from cvcli.core.patterns.tables import Rule
from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param

_GRAY = (0.2989, 0.587, 0.114)


@operator(cases=({"factor": 1.5}, {"factor": 0}, {"factor": 0.4}))
def adjust_contrast(
    image: ImageSpec,
    factor: Annotated[float, Param("0 gives plain gray, 1 the image itself.", min=0)],
) -> Adapted:
    """Blend the image with the mean of its brightness.

    Computes factor * v + (1 - factor) * mean, where mean is that of the image as gray, 0.2989 R +
    0.587 G + 0.114 B, as in torchvision; the result is rounded half to even and saturated, where
    torchvision cuts off. Alpha is left alone.
    """
    return Adapted(Rule("contrast", factor=factor), _gray(image))


def _gray(image: ImageSpec) -> tuple[Pixelwise, ...]:
    """Return what leaves of an image only its brightness."""
    if image.channels == 1:
        return ()
    if image.channels == 2:
        return (Pixelwise("channelreorder.Reorder1", (0.0, 0.0, 0.0, 0.0), 1, image.dtype),)
    return (Pixelwise("adjust_contrast", _GRAY, 1, image.dtype),)

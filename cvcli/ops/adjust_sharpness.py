from typing import Annotated

from cvcli.core.patterns.dense import Dense
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param
from cvcli.ops._stencil import edges_of


@operator(cases=({"factor": 2}, {"factor": 0}, {"factor": 0.4}, {"factor": 1}))
def adjust_sharpness(
    image: ImageSpec,
    factor: Annotated[
        float, Param("0 gives the smooth image, 1 the image, above 1 a sharper one.", min=0)
    ],
) -> Dense:
    """Blend the image with a smooth version of it.

    torchvision's definition: the smooth image is the image under 1,1,1;1,5,1;1,1,1 / 13, rounded,
    but for its outermost pixels, which stay; the result is v + (1 - factor) * (smooth - v),
    rounded half to even where torchvision cuts off. All channels are treated alike, alpha too.
    """
    rows = (1, 1, 1), (1, 5, 1), (1, 1, 1)
    return Dense(image, edges_of(image, "replicate"), rows, amount=1 - factor, divisor=13)

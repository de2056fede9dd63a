from typing import Annotated

from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(cases=({"gamma": 2.2}, {"gamma": 0.45, "gain": 1.1}, {"gamma": 1}, {"gamma": 0}))
def gamma_contrast(
    image: ImageSpec,
    gamma: Annotated[float, Param("Exponent; below 1 lightens, above 1 darkens.", min=0)],
    gain: Annotated[float, Param("Factor on the result.", min=0)] = 1.0,
) -> Pointwise:
    """Raise samples to a power.

    Computes white * gain * (v / white) ^ gamma, rounded half to even and saturated for integer
    images; white is 255, 65535 or 1.0 by dtype. CV-CUDA scales uint16 as if white were 255; this
    does not. Alpha is left alone.
    """
    return Pointwise("gamma_contrast", (image.top, gain, gamma))

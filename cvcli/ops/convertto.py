from typing import Annotated, Literal

from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(
    cases=(
        {"dtype": "float32", "scale": 1 / 255},
        {"dtype": "uint8", "scale": 0.5, "offset": 7.25},
        {"dtype": "uint16", "scale": 257},
    )
)
def convertto(
    image: ImageSpec,
    dtype: Annotated[Literal["uint8", "uint16", "float32"], Param("Dtype of the result.")],
    scale: Annotated[float, Param("Factor on every sample.")] = 1.0,
    offset: Annotated[float, Param("Added to every sample, in units of the result.")] = 0.0,
) -> Pixelwise:
    """Change the dtype of the samples.

    Computes v * scale + offset in float32, alpha like any sample; integer results are rounded half
    to even and saturated, NaN gives 0. Nothing is scaled by itself: uint8 images take 257 to
    uint16 and 1/255 = 0.00392156863 to floats of 0 to 1.
    """
    functor = f"convertto.To{dtype.capitalize()}"
    return Pixelwise(functor, (scale, offset), image.channels, dtype)

from typing import Annotated

from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Level, Param, level


@operator(
    cases=(
        {"brightness": 1.2, "contrast": 0.9, "shift": 3, "centre": 100},
        {"contrast": -1.5},
        {"shift": "-12.5%", "brightness": 1.7},
    )
)
def brightness_contrast(
    image: ImageSpec,
    brightness: Annotated[float, Param("Factor on the result.")] = 1.0,
    contrast: Annotated[float, Param("Factor on the distance from the centre.")] = 1.0,
    shift: Annotated[Level, Param("Added at the end, or a share of white as 5%.")] = 0.0,
    centre: Annotated[Level, Param("The value that contrast keeps.")] = "50%",
) -> Pointwise:
    """Change brightness and contrast.

    Computes shift + brightness * (centre + contrast * (v - centre)), rounded half to even and
    saturated for integer images. The default centre is 128, 32768 or 0.5 by dtype. Alpha is left
    alone.
    """
    half = _half(image) if centre == "50%" else level(centre, image.top)
    return Pointwise("brightness_contrast", (brightness, contrast, level(shift, image.top), half))


def _half(image: ImageSpec) -> float:
    """Return the middle of the range: a power of two for integers, as CV-CUDA has it."""
    return 0.5 if image.dtype == "float32" else (image.top + 1) / 2

from typing import Annotated

from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Numbers, Param, numbers_of

_WARM = ((1.1, 0.1, 0.0, 3.0), (0.0, 0.9, 0.2, -4.0), (0.1, 0.0, 1.0, 5.0))


@operator(cases=({"matrix": _WARM}, {"matrix": "0.393,0.769,0.189,0;-1,0,0,1;0,0.5,0.5,0"}))
def color_twist(
    image: ImageSpec,
    matrix: Annotated[
        Numbers, Param("3 rows of 4 numbers: factors of red, green and blue, and what is added.")
    ],
) -> Pixelwise:
    """Mix the colours by an affine map.

    Each colour of the result is m0 * R + m1 * G + m2 * B + m3 with a row of the matrix, in float32
    and in the image's own units, rounded half to even and saturated for integer images. Alpha is
    left alone.
    """
    if image.channels < 3:
        raise ParameterError(f"the image must have 3 or 4 channels, got {image.channels}")
    numbers = numbers_of(matrix)
    if len(numbers) != 12:
        raise ParameterError(f"matrix must be 3 rows of 4 numbers, got {len(numbers)} numbers")
    return Pixelwise("color_twist", numbers, image.channels, image.dtype)

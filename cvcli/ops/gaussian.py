from typing import Annotated

from cvcli.core.patterns.separable import Separable
from cvcli.core.spec import ImageSpec
from cvcli.core.stencil import gaussian_half
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param, Window, sides_of
from cvcli.ops._stencil import LARGEST, edges_of


@operator(
    cases=(
        {"sigma": 1.2},
        {"size": 5},
        {"size": (7, 3), "sigma": 2, "border": "constant", "value": (9, 200, 30, 77)},
        {"size": 31, "border": "wrap"},
        {"size": (1, 17), "sigma": 3.5, "border": "reflect"},
    )
)
def gaussian(
    image: ImageSpec,
    sigma: Annotated[
        float | None, Param("Standard deviation; by default what suits the size.", min=0.01)
    ] = None,
    size: Annotated[
        Window | None,
        Param("Odd size of the kernel, or its width and height.", min=1, max=LARGEST, unit="px"),
    ] = None,
    border: Annotated[Border, Param("What lies outside the image.")] = "reflect101",
    value: Annotated[Color, Param("Colour of a constant border.")] = 0,
) -> Separable:
    """Blur with a Gaussian.

    Give sigma, the kernel's size or both. A size follows from sigma as in OpenCV's GaussianBlur:
    round(6 * sigma + 1) for uint8 images, 8 instead of 6 for others, one more if that is even; a
    sigma from the size as in its getGaussianKernel: 0.3 * ((size - 1) / 2 - 1) + 0.8 an axis.
    Weights are worked out in float64 and sum to 1; for uint8 they are multiples of 2^-16. Rows are
    filtered before columns, in float32, and rounded once. All channels are filtered alike, alpha
    too, as in OpenCV and CV-CUDA; CV-CUDA's default border is constant.
    """
    if sigma is None and size is None:
        raise ParameterError("sigma or size must be given")
    radii = [side // 2 for side in sides_of(size)] if size is not None else _radii(image, sigma)
    half_x, half_y = (
        gaussian_half(sigma or 0.3 * (radius - 1) + 0.8, radius, image.dtype) for radius in radii
    )
    return Separable(image, edges_of(image, border, value), half_x, half_y)


def _radii(image: ImageSpec, sigma: float | None) -> list[int]:
    radius = (round((sigma or 0.0) * (6 if image.dtype == "uint8" else 8) + 1) | 1) // 2
    if 2 * radius + 1 > LARGEST:
        raise ParameterError(
            f"sigma must give a kernel of at most {LARGEST} px, got {2 * radius + 1}",
            tip=f"give --size {LARGEST} too",
        )
    return [radius, radius]

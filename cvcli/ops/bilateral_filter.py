from typing import Annotated

from cvcli.core.patterns.bilateral import Bilateral
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param
from cvcli.ops._stencil import edges_of

_LARGEST = 31


@operator(
    cases=(
        {},
        {"diameter": 7, "sigma_color": 60, "sigma_space": 2, "border": "wrap"},
        {"diameter": 13, "sigma_color": 0.2, "sigma_space": 4},
        {"diameter": 3, "border": "constant", "value": (9, 200, 30, 77)},
    )
)
def bilateral_filter(
    image: ImageSpec,
    diameter: Annotated[
        int,
        Param("Size of the window; 0: 3 * sigma_space.", min=0, max=_LARGEST, unit="px"),
    ] = 5,
    sigma_color: Annotated[
        float, Param("How much colours may differ, in the image's units.", min=0.001)
    ] = 25.0,
    sigma_space: Annotated[
        float, Param("How far pixels reach.", min=0.01, max=1000, unit="px")
    ] = 3.0,
    border: Annotated[Border, Param("What lies outside the image.")] = "reflect101",
    value: Annotated[Color, Param("Colour of a constant border.")] = 0,
) -> Bilateral:
    """Smooth what is alike and keep edges.

    Each pixel becomes the mean of a disc around it, weighed with
    exp(-distance^2 / (2 sigma_space^2) - difference^2 / (2 sigma_color^2)); a difference is the sum
    of the absolute ones of the colour channels, as in OpenCV and CV-CUDA. Alpha is left alone and
    doesn't count; CV-CUDA filters it as a colour. The disc's radius is half the diameter, rounded
    down, at least 1; from a diameter of 0 it is 1.5 sigma_space, rounded.
    """
    radius = diameter // 2 if diameter else min(round(1.5 * sigma_space), _LARGEST // 2)
    edges = edges_of(image, border, value)
    return Bilateral(image, edges, max(1, radius), sigma_color, sigma_space)

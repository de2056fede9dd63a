from typing import Annotated

from cvcli.core.patterns.separable import Separable
from cvcli.core.spec import ImageSpec
from cvcli.core.stencil import gaussian_half
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Param
from cvcli.ops._stencil import edges_of


@operator(
    cases=(
        {},
        {"amount": 0.5, "sigma": 2},
        {"amount": 3, "sigma": 0.6, "border": "replicate"},
    )
)
def sharpen(
    image: ImageSpec,
    amount: Annotated[float, Param("Share of the lost detail that is added.", min=0, max=100)] = 1,
    sigma: Annotated[
        float, Param("Standard deviation of the blur.", min=0.01, max=15, unit="px")
    ] = 1,
    border: Annotated[Border, Param("What lies outside the image.")] = "reflect101",
) -> Separable:
    """Sharpen with an unsharp mask.

    Computes v + amount * (v - blurred), blurred being the image under a Gaussian of radius
    round(4 * sigma), at least 1; in float32, rounded once. All channels are treated alike, alpha
    too.
    """
    half = gaussian_half(sigma, max(1, round(4 * sigma)), image.dtype)
    return Separable(image, edges_of(image, border), half, half, amount)

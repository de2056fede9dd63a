from typing import Annotated, Literal

from cvcli.core.patterns.dense import Dense
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param
from cvcli.ops._stencil import edges_of

_KERNELS = {
    "1": ((0, 1, 0), (1, -4, 1), (0, 1, 0)),
    "3": ((2, 0, 2), (0, -8, 0), (2, 0, 2)),
}


@operator(
    cases=(
        {},
        {"ksize": "3", "border": "replicate"},
        {"scale": -2.5, "border": "constant", "value": (9, 200, 30, 77)},
    )
)
def laplacian(
    image: ImageSpec,
    ksize: Annotated[Literal["1", "3"], Param("Which of the two 3 x 3 kernels.")] = "1",
    scale: Annotated[float, Param("Factor on the result.")] = 1.0,
    border: Annotated[Border, Param("What lies outside the image.")] = "reflect101",
    value: Annotated[Color, Param("Colour of a constant border.")] = 0,
) -> Dense:
    """Find edges with the Laplacian.

    The kernels are OpenCV's: 0,1,0;1,-4,1;0,1,0 and 2,0,2;0,-8,0;2,0,2. Integer results saturate,
    so what is negative becomes 0. All channels are treated alike, alpha too. CV-CUDA's default
    border is constant.
    """
    rows = [[scale * weight for weight in row] for row in _KERNELS[ksize]]
    return Dense(image, edges_of(image, border, value), rows)

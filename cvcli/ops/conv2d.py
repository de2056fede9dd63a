from typing import Annotated

from cvcli.core.patterns.dense import Dense
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param, Rows, rows_of
from cvcli.ops._stencil import edges_of

_LARGEST = 31


@operator(
    cases=(
        {"kernel": "0.1,0.2,0.1;0,-0.5,0;0.3,0.2,0.6"},
        {"kernel": ((1, -2, 0.5, 3, -1.5),), "border": "wrap"},
        {"kernel": "1,0;0,-1", "border": "replicate"},
        {"kernel": ((0.01,) * 11,) * 9, "border": "constant", "value": (9, 200, 30, 77)},
    )
)
def conv2d(
    image: ImageSpec,
    kernel: Annotated[Rows, Param('Weights, such as "0,1,0;1,-4,1;0,1,0".')],
    border: Annotated[Border, Param("What lies outside the image.")] = "reflect101",
    value: Annotated[Color, Param("Colour of a constant border.")] = 0,
) -> Dense:
    """Filter with any kernel.

    A correlation, as OpenCV's filter2D and CV-CUDA's conv2d: the kernel is not turned. Its middle
    is at half its size, rounded down. Products are added in float32 and rounded once. All channels
    are treated alike, alpha too.
    """
    rows = rows_of(kernel)
    if max(len(rows), len(rows[0])) > _LARGEST:
        raise ParameterError(
            f"kernel must have at most {_LARGEST} rows and columns, "
            f"got {len(rows)} rows of {len(rows[0])}"
        )
    return Dense(image, edges_of(image, border, value), rows)

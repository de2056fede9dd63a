from typing import Annotated

from cvcli.core.passes import Lowered
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param, Rows, rows_of
from cvcli.ops._warp import LARGEST, Interp, inverse_of, matrix_of, warped

_TILTED = "1,0.02,3;0.01,1,2;0.0001,0.0001,1"


@operator(
    cases=(
        {"matrix": _TILTED},
        {"matrix": _TILTED, "inverse": True, "border": "replicate", "width": 70, "height": 9},
        {"matrix": "1,0.3,1;-0.2,1,2;0.004,0.002,1", "interp": "nearest", "border": "wrap"},
        {"matrix": _TILTED, "interp": "bicubic", "border": "reflect101", "value": 3},
        {"matrix": "1,0.3,1;-0.2,1,2;-0.02,0.01,1", "inverse": True, "border": "reflect"},
        {"matrix": "2,0,3;0,2,1;0,0,2"},
    )
)
def warp_perspective(
    image: ImageSpec,
    matrix: Annotated[Rows, Param("3 rows of 3 numbers: a,b,c;d,e,f;g,h,i.")],
    width: Annotated[
        int | None, Param("Width of the result, by default the image's.", 1, LARGEST, unit="px")
    ] = None,
    height: Annotated[
        int | None, Param("Height of the result, by default the image's.", 1, LARGEST, unit="px")
    ] = None,
    inverse: Annotated[bool, Param("Whether the matrix leads from the result back.")] = False,
    interp: Annotated[Interp, Param("How to make pixels from their neighbours.")] = "bilinear",
    border: Annotated[Border, Param("What lies outside the image.")] = "constant",
    value: Annotated[
        Color, Param("Colour of a constant border: one value for all, or one a channel.")
    ] = 0,
) -> Lowered:
    """Warp the image by a perspective map.

    Moves what is at x, y to (a x + b y + c) / w, (d x + e y + f) / w with w = g x + h y + i, as
    OpenCV's warpPerspective does; where w is 0 the place is 0, 0. Otherwise as warp-affine.
    CV-CUDA's cubic has a = -0.5, and it takes a matrix without an inverse for one of zeros.
    """
    to_source = matrix_of(rows_of(matrix), 3)
    if not inverse:
        to_source = inverse_of(to_source)
    size = width or image.width, height or image.height
    return warped(image, size, to_source, interp, border, value)

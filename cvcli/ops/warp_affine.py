from typing import Annotated

from cvcli.core.passes import Lowered
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Border, Color, Param, Rows, rows_of
from cvcli.ops._warp import LARGEST, Interp, inverse_of, matrix_of, warped

_TURNED = "0.9,-0.2,10;0.15,1.1,-3"


@operator(
    cases=(
        {"matrix": _TURNED},
        {"matrix": _TURNED, "inverse": True, "border": "replicate", "width": 70, "height": 9},
        {"matrix": "2.5,1,-3;-1,3,5", "inverse": True, "interp": "nearest", "border": "wrap"},
        {"matrix": _TURNED, "interp": "bicubic", "border": "reflect101"},
        {"matrix": "-0.3,0,20;0.1,0.4,9", "border": "reflect", "interp": "bicubic", "height": 40},
        {"matrix": "1,0,2.5;0,1,-3.25", "value": (9, 8, 7, 200)},
    )
)
def warp_affine(
    image: ImageSpec,
    matrix: Annotated[Rows, Param("2 rows of 3 numbers: a,b,c;d,e,f.")],
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
    """Warp the image by an affine map.

    Moves what is at x, y to a x + b y + c, d x + e y + f, as OpenCV's warpAffine does: whole
    numbers are the centres of pixels. With inverse the matrix leads from the result to the image.
    Every pixel of the result takes its value from its place in the image: the nearest pixel (of
    two the one to the right, or below), 2x2 pixels, or 4x4 by Keys' cubic with a = -0.75. Taps
    outside the image follow the border. CV-CUDA's cubic has a = -0.5, and its nearest may take
    the other pixel half way between two.
    """
    to_source = matrix_of(rows_of(matrix), 2)
    if not inverse:
        to_source = inverse_of(to_source)
    size = width or image.width, height or image.height
    return warped(image, size, to_source, interp, border, value)

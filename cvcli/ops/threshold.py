import math
from typing import Annotated, Literal

from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Level, Param, level

Kind = Literal["binary", "binary_inv", "trunc", "tozero", "tozero_inv"]
_KINDS = ("binary", "binary_inv", "trunc", "tozero", "tozero_inv")


@operator(
    cases=(
        {"thresh": 100},
        {"thresh": 100.5, "maxval": 200, "type": "binary_inv"},
        {"thresh": "40%", "type": "trunc"},
        {"thresh": 100, "type": "tozero"},
        {"thresh": -1, "type": "tozero_inv"},
    )
)
def threshold(
    image: ImageSpec,
    thresh: Annotated[Level, Param("The value to compare with, or a share of white as 50%.")],
    maxval: Annotated[Level, Param("What binary types put for true.")] = "100%",
    type: Annotated[Kind, Param("What becomes of samples above and not above thresh.")] = "binary",
) -> Pointwise:
    """Compare each sample with a threshold.

    With v > thresh: binary gives maxval, else 0; binary_inv the reverse; trunc gives thresh, else
    v; tozero gives v, else 0; tozero_inv 0, else v. As in OpenCV, thresh is rounded down for
    integer images. Alpha is left alone.
    """
    limit = level(thresh, image.top)
    if image.dtype != "float32":
        limit = float(math.floor(limit))
    return Pointwise("threshold", (limit, level(maxval, image.top), float(_KINDS.index(type))))

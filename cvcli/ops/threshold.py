import math
from typing import Annotated, Literal

from cvcli.core.passes import Lowered
from cvcli.core.patterns.lookup import Adapted
from cvcli.core.patterns.tables import Rule
from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Level, Param, level

Kind = Literal["binary", "binary_inv", "trunc", "tozero", "tozero_inv"]
_KINDS = ("binary", "binary_inv", "trunc", "tozero", "tozero_inv")
_SAMPLE, _THRESHOLD = -1.0, 256.0


@operator(
    cases=(
        {"thresh": 100},
        {"thresh": 100.5, "maxval": 200, "type": "binary_inv"},
        {"thresh": "40%", "type": "trunc"},
        {"thresh": 100, "type": "tozero"},
        {"thresh": -1, "type": "tozero_inv"},
        {"method": "otsu"},
        {"method": "triangle", "maxval": 200, "type": "binary_inv"},
        {"method": "otsu", "type": "trunc"},
    )
)
def threshold(
    image: ImageSpec,
    thresh: Annotated[Level, Param("The value to compare with, or a share of white.")] = "50%",
    maxval: Annotated[Level, Param("What binary types put for true.")] = "100%",
    type: Annotated[Kind, Param("What becomes of samples above and not above thresh.")] = "binary",
    method: Annotated[
        Literal["fixed", "otsu", "triangle"],
        Param("fixed compares with thresh; otsu and triangle find it from the image."),
    ] = "fixed",
) -> Lowered:
    """Compare each sample with a threshold.

    With v > thresh: binary gives maxval, else 0; binary_inv the reverse; trunc gives thresh, else
    v; tozero gives v, else 0; tozero_inv 0, else v. As in OpenCV, thresh is rounded down for
    integer images. Methods otsu and triangle are OpenCV's too: they take 8-bit gray images and
    don't look at thresh. Alpha is left alone.
    """
    if method != "fixed":
        return _found(image, method, level(maxval, image.top), type)
    limit = level(thresh, image.top)
    if image.dtype != "float32":
        limit = float(math.floor(limit))
    return Pointwise("threshold", (limit, level(maxval, image.top), float(_KINDS.index(type))))


def _found(image: ImageSpec, method: str, maxval: float, type: str) -> Adapted:
    if image.dtype != "uint8" or image.channels > 2:
        raise ParameterError(
            f"method {method} takes 8-bit gray images, got {image}",
            tip="put `cvtcolor --code rgb2gray` before it" if image.channels > 2 else None,
        )
    high = min(max(float(round(maxval)), 0.0), 255.0)
    not_above, above = {
        "binary": (0.0, high),
        "binary_inv": (high, 0.0),
        "trunc": (_SAMPLE, _THRESHOLD),
        "tozero": (0.0, _SAMPLE),
        "tozero_inv": (_SAMPLE, 0.0),
    }[type]
    return Adapted(Rule(method, values=(not_above, above)))

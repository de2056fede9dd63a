from __future__ import annotations

import math
from typing import Annotated, Literal

from cvcli.core.pixelwise import Pixelwise
from cvcli.core.pointwise import has_alpha
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Numbers, Param, numbers_of


@operator(
    exclusive=(("std", "scale"),),
    cases=(
        {"mean": 127.5, "std": 50, "epsilon": 1e-3},
        {"mean": (0.5,), "scale": 2.0, "global_scale": 0.25, "global_shift": 3},
        {"mean": 10, "scale": 1.5, "dtype": "uint8"},
    ),
)
def normalize(
    image: ImageSpec,
    mean: Annotated[Numbers, Param("Taken from the samples: one number, or one a channel.")] = 0.0,
    std: Annotated[
        Numbers | None, Param("Divides them: one number, or one a channel, positive.")
    ] = None,
    scale: Annotated[
        Numbers | None, Param("Multiplies them, instead of std: one number, or one a channel.")
    ] = None,
    global_scale: Annotated[float, Param("Factor on all results.")] = 1.0,
    global_shift: Annotated[float, Param("Added to all results.")] = 0.0,
    epsilon: Annotated[float, Param("Added to the square of std.", min=0)] = 0.0,
    dtype: Annotated[
        Literal["uint8", "uint16", "float32"], Param("Dtype of the result.")
    ] = "float32",
) -> Pixelwise:
    """Bring samples to a common mean and spread.

    Computes (v - mean) * scale * global_scale + global_shift in float32, in the units of the
    image; with std the scale is 1 / sqrt(std^2 + epsilon). The factors of a channel are multiplied
    in float64 first. Integer results are rounded half to even and saturated. Alpha keeps its value
    unless it is given numbers of its own. CV-CUDA's result always has the dtype of its input.
    """
    factors = _scales(image, std, scale, epsilon)
    count = image.channels
    means = _for_channels(image, "mean", mean)
    scales = [factor * global_scale for factor in factors]
    shifts = [global_shift] * count
    given = max(len(numbers_of(value)) for value in (mean, std, scale) if value is not None)
    if has_alpha(count) and given < count:
        means[-1], scales[-1], shifts[-1] = 0.0, 1.0, 0.0
    spare = (0.0,) * (4 - count)
    params = (*means, *spare, *scales, *spare, *shifts, *spare)
    if not all(map(math.isfinite, scales)):
        raise ParameterError("the factor of a channel must be finite, got one that is not")
    return Pixelwise(f"normalize.Normalize{dtype.capitalize()}", params, count, dtype)


def _scales(
    image: ImageSpec, std: Numbers | None, scale: Numbers | None, epsilon: float
) -> list[float]:
    if std is None:
        return _for_channels(image, "scale", 1.0 if scale is None else scale)
    spreads = _for_channels(image, "std", std)
    if min(value * value + epsilon for value in spreads) <= 0.0:
        raise ParameterError("std must be positive, got 0")
    return [1 / math.sqrt(value * value + epsilon) for value in spreads]


def _for_channels(image: ImageSpec, name: str, values: Numbers) -> list[float]:
    """Return one number a channel; alpha, where it gets none, repeats the last."""
    numbers = list(numbers_of(values))
    count = image.channels
    if len(numbers) == 1:
        return numbers * count
    if has_alpha(count) and len(numbers) == count - 1:
        numbers.append(numbers[-1])
    if len(numbers) != count:
        raise ParameterError(
            f"{name} must have 1 number, or one a channel ({count}), got {len(numbers)}"
        )
    return numbers

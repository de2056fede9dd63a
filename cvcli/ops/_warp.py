"""What the warping operators share: their parameters' types, matrices, and the lowering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from cvcli.core.move import pixels
from cvcli.core.passes import Lowered
from cvcli.core.patterns.warp import Matrix, Warp
from cvcli.core.pixelwise import Pixelwise, through
from cvcli.core.resample import alpha_steps
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._params import Border, Color, pixel

Interp = Literal["nearest", "bilinear", "bicubic"]
LARGEST = 10_000_000


def matrix_of(rows: Sequence[Sequence[float]], height: int) -> Matrix:
    """Return a matrix of ``height`` rows of 3 as one of 3 rows; raise `ParameterError`."""
    if (len(rows), len(rows[0])) != (height, 3):
        raise ParameterError(
            f"matrix must be {height} rows of 3 numbers, got {len(rows)} of {len(rows[0])}"
        )
    a, b, c = rows[0]
    d, e, f = rows[1]
    g, h, i = rows[2] if height == 3 else (0.0, 0.0, 1.0)
    return a, b, c, d, e, f, g, h, i


def inverse_of(matrix: Matrix) -> Matrix:
    """Return the inverse, by cofactors; raise `ParameterError` if there is none."""
    a, b, c, d, e, f, g, h, i = matrix
    cofactors = (
        *(e * i - f * h, c * h - b * i, b * f - c * e),
        *(f * g - d * i, a * i - c * g, c * d - a * f),
        *(d * h - e * g, b * g - a * h, a * e - b * d),
    )
    determinant = a * cofactors[0] + b * cofactors[3] + c * cofactors[6]
    if not abs(determinant) > 0 or determinant in (float("inf"), float("-inf")):
        raise ParameterError(f"matrix must have an inverse, got the determinant {determinant:g}")
    return _scaled(cofactors, determinant)


def plain(matrix: Matrix) -> Matrix:
    """Return the same map with a last number of 1, if it can be; raise `ParameterError`."""
    if not any(matrix[6:]):
        raise ParameterError("matrix must have a last row that is not all 0")
    return _scaled(matrix, matrix[8] or max(matrix[6:8], key=abs))


def _scaled(matrix: Matrix, by: float) -> Matrix:
    a, b, c, d, e, f, g, h, i = (value / by for value in matrix)
    return a, b, c, d, e, f, g, h, i


def warped(
    image: ImageSpec,
    size: tuple[int, int],
    matrix: Matrix,
    interp: Interp,
    border: Border,
    value: Color,
) -> Lowered:
    """Return the warp to ``size``, width and height, by a matrix from result to source.

    What mixes pixels multiplies them by their alpha first and divides it back.
    """
    before: tuple[Pixelwise, ...] = ()
    after: tuple[Pixelwise, ...] = ()
    source = image
    if image.channels in (2, 4) and interp != "nearest":
        before, after, source = alpha_steps(image)
    target = replace(source, width=size[0], height=size[1])
    fill = [0.0] * image.channels
    if border == "constant":
        colour = pixels([pixel(value, image.channels, image.top)], image)
        for step in before:
            colour = through(step, colour)
        fill = [float(sample) for sample in colour[0]]
    return (*before, Warp(source, target, plain(matrix), interp, border, fill), *after)

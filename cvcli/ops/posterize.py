from typing import Annotated

from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ITEMSIZE, ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(cases=({"bits": 3}, {"bits": 1}, {"bits": 0}, {"bits": 8}, {"bits": 16}))
def posterize(
    image: ImageSpec,
    bits: Annotated[int, Param("Bits to keep of each sample.", min=0, max=16)],
) -> Pointwise:
    """Keep the highest bits of each sample.

    Integer samples lose their lower bits; as many bits as the dtype has, or more, change nothing.
    Float samples fall on 2^bits even steps from 0. Alpha is left alone.
    """
    levels = float(1 << bits)
    if image.dtype == "float32":
        return Pointwise("posterize", (levels, levels - 1, 1 / levels))
    step = float(1 << max(0, 8 * ITEMSIZE[image.dtype] - bits))
    return Pointwise("posterize", (1 / step, image.top, step))

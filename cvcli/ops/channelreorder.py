from typing import Annotated

from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Order, Param, channels_of


@operator(cases=({"order": (2, 1, 0)}, {"order": 0}, {"order": (0, 0, 0)}, {"order": (1, 1, 0, 3)}))
def channelreorder(
    image: ImageSpec,
    order: Annotated[Order, Param("Source channel of each channel of the result, from 0.")],
) -> Pixelwise:
    """Pick channels: channel i of the result is channel order[i] of the image.

    Channels may be left out or taken several times; the result has as many as the order is long.
    """
    picked = channels_of(order)
    if max(picked) >= image.channels:
        listed = ",".join(map(str, picked))
        raise ParameterError(f"order must name channels below {image.channels}, got {listed}")
    places = (*map(float, picked), *(0.0,) * (4 - len(picked)))
    return Pixelwise(f"channelreorder.Reorder{len(picked)}", places, len(picked), image.dtype)

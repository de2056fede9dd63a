from typing import Annotated, Literal

from cvcli.core.passes import Layout
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(cases=({"layout": "planar"}, {"layout": "interleaved"}), planar=True)
def reformat(
    image: ImageSpec,
    layout: Annotated[
        Literal["planar", "interleaved"],
        Param("planar is NCHW or CHW, interleaved NHWC or HWC."),
    ],
) -> Layout:
    """Change the layout: each channel a plane of its own, or the samples of a pixel together."""
    return Layout(planar=layout == "planar")

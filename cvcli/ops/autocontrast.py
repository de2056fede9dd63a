from cvcli.core.patterns.lookup import Adapted
from cvcli.core.patterns.tables import Rule
from cvcli.core.spec import ImageSpec
from cvcli.ops._operator import operator


@operator()
def autocontrast(image: ImageSpec) -> Adapted:
    """Stretch each channel so that its darkest sample is black and its brightest white.

    Computes v * scale - low * scale with scale = white / (high - low), cut off to a whole number
    for integer images as Pillow's ImageOps.autocontrast does. A channel of one value is left
    alone, and so is alpha; NaN is neither darkest nor brightest.
    """
    return Adapted(Rule("stretch"))

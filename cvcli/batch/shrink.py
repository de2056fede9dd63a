"""Large JPEGs that become small are decoded small, if the chain starts with their reduction.

Computing fewer samples of each block is faster than computing all and averaging them. At least
twice as many as wanted are left for the resize. Whether it is done depends on nothing but the
file's header and the first step, so that a chain still equals its steps.
"""

from __future__ import annotations

from functools import lru_cache, partial

import cvcli.codecs as codecs
from cvcli.batch.orient import oriented
from cvcli.core.chain import Chain, Step
from cvcli.core.passes import Lowered, Plan
from cvcli.core.resample import resample
from cvcli.core.spec import ImageSpec
from cvcli.core.taps import Span
from cvcli.core.turn import Turn, turn_of

# Times the sides of the result that the smaller image still has.
_SPARE = 2


def shrunk(
    chain: Chain, header: codecs.Header, orientation: int, whole: Plan
) -> tuple[codecs.Header, Plan]:
    """Return the header of an image as it is best decoded, and the plan of its pixels then.

    ``whole`` is the plan of the image as it is. The result has the same size, and covers the same
    part of the scene.
    """
    for factor in codecs.shrinks(header):
        fast = shrunk_chain(chain, header.spec, factor, orientation)
        if fast is not None:
            small = codecs.shrunk(header, factor)
            return small, fast.plan(small.spec)
    return header, whole


@lru_cache(maxsize=256)
def shrunk_chain(chain: Chain, spec: ImageSpec, factor: int, orientation: int) -> Chain | None:
    """Return the chain for an image a factor smaller; None where it starts with no such resize."""
    first = chain.steps[0] if len(chain) else None
    if first is None or first.name != "resize":
        return None
    told = dict(first.params)
    filter = told.get("filter", "bilinear")
    if filter == "nearest" or not told.get("antialias", True):
        return None
    stand = oriented(Chain(()), orientation)
    upright = stand.plan(spec).target
    target = Chain((first,)).plan(upright).target
    if min(upright.width / target.width, upright.height / target.height) < _SPARE * factor:
        return None
    size, spans = (target.width, target.height), _spans(spec, factor, turn_of(stand, spec))
    params = *first.params, ("size", size), ("spans", spans)
    step = Step(first.name, params, partial(_lower, size, filter, spans))
    return Chain((*stand.steps, step, *chain.steps[1:]))


def _spans(spec: ImageSpec, factor: int, turn: Turn) -> tuple[Span, Span]:
    """Return where the image lies in the smaller one that stands upright.

    The last pixels may be partly outside, and come first where the image was mirrored.
    """

    def span(side: int, flipped: bool) -> Span:
        begin = -(-side // factor) - side / factor if flipped else 0.0
        return begin, begin + side / factor

    x, y = span(spec.width, turn.flip_x), span(spec.height, turn.flip_y)
    return (y, x) if turn.transpose else (x, y)


def _lower(
    size: tuple[int, int], filter: str, spans: tuple[Span, Span], image: ImageSpec
) -> Lowered:
    return resample(image, *size, filter, antialias=True, spans=spans)

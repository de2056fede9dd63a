"""Whether images suit a chain, and what it makes of them the formats of the outputs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import product

import cvcli.codecs as codecs
from cvcli.core.chain import Chain
from cvcli.core.passes import Plan
from cvcli.core.spec import ITEMSIZE, MAX_CHANNELS, ImageSpec
from cvcli.errors import ParameterError


def fits_every_image(chain: Chain, formats: Collection[str | None]) -> bool:
    """Return whether neither the chain nor a format can refuse an image.

    It goes by the smallest images of every kind; None is a format that isn't known yet.
    """
    try:
        for dtype, channels in product(ITEMSIZE, range(1, MAX_CHANNELS + 1)):
            plan = chain.plan(ImageSpec(1, 1, channels, dtype))
            for format in formats:
                if format is not None:
                    refuse_made(plan, format)
                elif _is_made(plan):
                    return False
    except ParameterError:
        return False
    return True


def refuse_made(plan: Plan, format: str) -> None:
    """Raise `ParameterError` if a format can't hold the dtype or layout that a chain has made.

    Floats that came as such are taken for 0 to 1 and scaled. What a chain makes may be anything,
    so that scaling it would be wrong without a sign.
    """
    if not _is_made(plan):
        return
    target = plan.target
    plain = replace(target, height=1, width=1, channels=1 if target.channels < 3 else 3)
    if reason := codecs.encodable(plain, format):
        raise ParameterError(reason, codecs.keeping_tip(plain))


def _is_made(plan: Plan) -> bool:
    return plan.target.planar or plan.target.dtype != plan.source.dtype

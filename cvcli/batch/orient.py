"""EXIF orientation as the first step of a chain, so that it costs no pass of its own."""

from __future__ import annotations

from functools import lru_cache

from cvcli.core.chain import Chain, Step
from cvcli.core.passes import Plan
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops import operator_named

# What brings each orientation of the EXIF standard upright.
_UPRIGHT: dict[int, tuple[tuple[str, float], ...]] = {
    2: (("flip", 1),),
    3: (("rotate", 180),),
    4: (("flip", 0),),
    5: (("rotate", -90), ("flip", 1)),
    6: (("rotate", -90),),
    7: (("rotate", 90), ("flip", 1)),
    8: (("rotate", 90),),
}


@lru_cache(maxsize=64)
def oriented(chain: Chain, orientation: int) -> Chain:
    """Return the chain with the steps in front that bring an image upright."""
    steps: list[Step] = [
        operator_named(name).step(value) for name, value in _UPRIGHT.get(orientation, ())
    ]
    return Chain((*steps, *chain.steps)) if steps else chain


def file_plan(chain: Chain, orientation: int, spec: ImageSpec) -> Plan:
    """Return the plan of the chain for a stored image; `ParameterError` if no file can hold it.

    Its planes would be taken for rows by whoever encodes them.
    """
    plan = oriented(chain, orientation).plan(spec)
    if plan.target.planar:
        tip = "put `reformat --layout interleaved` at the end"
        raise ParameterError("the chain: no file can hold a planar image", tip=tip)
    return plan

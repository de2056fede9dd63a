"""``--explain``: the launches that a chain becomes, and the bytes that each moves."""

from __future__ import annotations

from cvcli.batch.kinds import kinds_of
from cvcli.batch.plan import Plan
from cvcli.cli.console import emit
from cvcli.core.chain import Chain
from cvcli.core.explain import explain, moved, moved_one_by_one
from cvcli.core.spec import ImageSpec
from cvcli.errors import CvcliError, UsageError


def print_explained(
    plan: Plan, chain: Chain, threads: int, max_pixels: int, *, auto_orient: bool
) -> None:
    """Print the launches for each kind of image among the inputs; raise `UsageError` for none."""
    kinds = kinds_of(plan, chain, threads, max_pixels, auto_orient=auto_orient)
    if not kinds:
        raise UsageError("explain: none of the inputs is an image that can be read")
    texts = [_text(turned, spec, count) for (turned, spec), count in kinds]
    emit("\n\n".join(texts) + "\n")


def _text(chain: Chain, spec: ImageSpec, count: int) -> str:
    images = "1 image" if count == 1 else f"{count:,} images"
    head = f"{images} of {spec}"
    try:
        plan = chain.plan(spec)
    except CvcliError as error:
        return f"{head}: {error}"
    parts = explain(plan)
    launches = "1 launch" if len(parts) == 1 else f"{len(parts)} launches"
    rows = [
        (f"{number}", part.steps, f"{part.source} -> {part.target}", _mb(part.reads + part.writes))
        for number, part in enumerate(parts, 1)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, steps, specs, nbytes in rows:
        words = f"{number:>{widths[0]}}  {steps:<{widths[1]}}  {specs:<{widths[2]}}"
        lines.append(f"  {words}  {nbytes:>{widths[3]}}")
    one_by_one = _mb(moved_one_by_one(chain, spec))
    tail = f"  {_mb(moved(plan))} an image; step by step {one_by_one}"
    return "\n".join([f"{head}: {launches}", *lines, tail])


def _mb(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.1f} MB"

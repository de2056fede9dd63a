"""``--explain``: the launches that a chain becomes, and the bytes that each moves."""

from __future__ import annotations

from cvcli.batch.kinds import Kind, kinds_of
from cvcli.batch.options import Ends, Options
from cvcli.batch.plan import Plan
from cvcli.cli.console import emit
from cvcli.core.chain import Chain
from cvcli.core.explain import explain, moved, moved_one_by_one
from cvcli.errors import UsageError


def print_explained(
    plan: Plan, chain: Chain, options: Options, ends: Ends, threads: int, max_pixels: int
) -> None:
    """Print what is done for each kind of image among the inputs; raise `UsageError` for none."""
    kinds, broken = kinds_of(plan, chain, threads, max_pixels, options.care, ends.source)
    if not kinds and not plan.skipped and not plan.problems:
        raise UsageError("explain: none of the inputs is an image that can be read")
    texts = [_text(kind, count) for kind, count in kinds] + _left(plan, broken)
    emit("\n\n".join(texts) + "\n")


def _left(plan: Plan, broken: int) -> list[str]:
    """Say what else there is among the inputs."""
    texts = []
    if broken:
        texts.append(f"{_inputs(broken)} can't be read as an image")
    if plan.problems:
        first = plan.problems[0].message
        texts.append(f"{_inputs(len(plan.problems))} will fail, as {first}")
    if plan.skipped:
        whose = "its output exists" if len(plan.skipped) == 1 else "their outputs exist"
        texts.append(f"{_inputs(len(plan.skipped))} will be left out, as {whose}")
    return texts


def _inputs(count: int) -> str:
    return "1 input" if count == 1 else f"{count:,} inputs"


def _text(kind: Kind, count: int) -> str:
    images = "1 image" if count == 1 else f"{count:,} images"
    head = f"{images} of {kind.spec}"
    if kind.refusal is not None:
        return f"{head} will fail: {kind.refusal}"
    if kind.moved is not None:
        specs = f"{kind.spec} -> {kind.moved}"
        return f"{head}: no launch\n  {specs}, by moving the blocks of the JPEG without decoding it"
    if kind.factor > 1:
        size = f"{kind.decoded.width}x{kind.decoded.height}"
        head += f", decoded at 1/{kind.factor} as {size} (--exact decodes all)"
    return "\n".join([head + _launches(kind), *_rows(kind), _total(kind)])


def _launches(kind: Kind) -> str:
    count = len(kind.chain.plan(kind.decoded).passes)
    return ": 1 launch" if count == 1 else f": {count} launches"


def _rows(kind: Kind) -> list[str]:
    parts = explain(kind.chain.plan(kind.decoded))
    rows = [
        (f"{number}", part.steps, f"{part.source} -> {part.target}", _mb(part.reads + part.writes))
        for number, part in enumerate(parts, 1)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, steps, specs, nbytes in rows:
        words = f"{number:>{widths[0]}}  {steps:<{widths[1]}}  {specs:<{widths[2]}}"
        lines.append(f"  {words}  {nbytes:>{widths[3]}}")
    return lines


def _total(kind: Kind) -> str:
    whole = _mb(moved(kind.chain.plan(kind.decoded)))
    return f"  {whole} an image; step by step {_mb(moved_one_by_one(kind.chain, kind.decoded))}"


def _mb(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.1f} MB"

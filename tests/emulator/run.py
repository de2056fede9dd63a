"""Chains on arrays, run in the emulator."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import cvcli
from cvcli.core.apply import apply
from cvcli.core.chain import Chain
from cvcli.core.engine import engine_of
from cvcli.core.images import pack, packed_nbytes
from cvcli.core.kernels import kernel_of
from cvcli.core.launch import run_plans
from cvcli.core.passes import Plan
from cvcli.core.spec import ImageSpec
from cvcli.core.stream import stream_for
from cvcli.devices.base import Kernel
from cvcli.ops import operator_named, parse_chain
from emulator.device import NAME, install


def chain_of(what: Any, **params: Any) -> Chain:
    """A chain of a chain, of the words of one, or of an operator's name and its parameters."""
    if isinstance(what, Chain):
        return what
    if params or " " not in what:
        return Chain((operator_named(what).step(**params),))
    return parse_chain(what)


def emulate(what: Any, array: Any, device: str = NAME, **params: Any) -> Any:
    """Run a chain, or an operator with parameters, on an image or a uniform batch."""
    install()
    return apply(chain_of(what, **params), cvcli.as_tensor(array).to(device)).numpy()


def compare(what: Any, array: Any, **params: Any) -> Any:
    """Run on the emulated GPU and on the CPU; return the result, which must be the same bytes."""
    got, wanted = emulate(what, array, **params), emulate(what, array, "cpu", **params)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    raw = f"u{got.dtype.itemsize}"
    differs = np.argwhere(got.view(raw) != wanted.view(raw))
    assert not len(differs), (
        f"{len(differs)} of {got.size} samples differ, first at {differs[0]}: "
        f"GPU {got[tuple(differs[0])]}, CPU {wanted[tuple(differs[0])]}"
    )
    return got


def kernels_of(plans: Iterable[Plan], *, uniform: bool) -> Iterator[Kernel]:
    """The kernels of plans on uniform or ragged batches."""
    for plan in plans:
        for item in plan.passes:
            yield kernel_of(item, uniform=uniform)


def emulate_ragged(chains: Any, arrays: Sequence[Any], device: str = NAME) -> list[Any]:
    """Run images of any sizes, each through its own chain or all through one, in one batch."""
    install()
    chains = [chains] * len(arrays) if isinstance(chains, Chain) else chains
    engine = engine_of(device)
    stream = stream_for(engine.device, None)
    specs = [ImageSpec(*array.shape, array.dtype.name) for array in arrays]
    plans = [chain.plan(spec) for chain, spec in zip(chains, specs, strict=True)]
    src = pack(engine.allocate(packed_nbytes(specs)), specs)
    staging = pack(engine.allocate_staging(packed_nbytes(specs)), specs)
    for array, placed in zip(arrays, staging.placed(), strict=True):
        _host(staging, placed)[...] = array
    engine.copy(src.buffer, staging.buffer, packed_nbytes(specs), stream)
    targets = [plan.target for plan in plans]
    dst = pack(engine.allocate(packed_nbytes(targets)), targets)
    run_plans(engine, src, dst, plans, stream)
    back = pack(engine.allocate_staging(packed_nbytes(targets)), targets)
    engine.copy(back.buffer, dst.buffer, packed_nbytes(targets), stream)
    back.buffer.synchronize()
    return [_host(back, placed).copy() for placed in back.placed()]


def _host(images: Any, placed: Any) -> Any:
    raw = (ctypes.c_char * placed.spec.nbytes).from_address(images.buffer.pointer + placed.offset)
    return np.frombuffer(raw, placed.spec.dtype).reshape(placed.spec.shape)

"""What is kept for a plan serves only batches of the same geometry."""

from __future__ import annotations

from conftest import noise

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.launch import run_plans
from cvcli.core.stream import default_stream
from cvcli.core.tensor import Tensor
from cvcli.ops import parse_chain


def test_rows_of_another_pitch_are_no_mistake_for_the_next_batch():
    chain, wide = parse_chain("flip --axis 1"), noise((9, 40, 3), "uint8")
    for view in (wide[:, :20].copy(), wide[:, :20], wide[:, 20:]):
        src = cvcli.as_tensor(view)
        out = Tensor.empty(view.shape, "uint8", "HWC")
        plan = chain.plan(src.spec())
        run_plans(engine_of("cpu"), src.images(), out.images(), [plan], default_stream("cpu"))
        assert (out.numpy() == view[:, ::-1]).all()

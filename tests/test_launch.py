"""What is kept for a plan, and what the images of a batch share."""

from __future__ import annotations

import numpy as np
from conftest import noise

import cvcli
from cvcli.batch.slots import array_at
from cvcli.core.engine import engine_of
from cvcli.core.images import Images, pack, packed_nbytes
from cvcli.core.launch import run_plans
from cvcli.core.patterns.resample import Resample
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


def test_images_of_a_plan_share_its_tables_wherever_they_lie(monkeypatch):
    packed, pack_one = [], Resample.pack
    monkeypatch.setattr(
        Resample, "pack", lambda self, block: packed.append(self) or pack_one(self, block)
    )
    engine, stream = engine_of("cpu"), default_stream("cpu")
    pixels = noise((5, 30, 40, 3), "uint8")
    src = cvcli.as_tensor(pixels, "NHWC").images()
    plan = parse_chain("resize 16x12!").plan(src.first.spec)
    targets = [plan.target] * src.count
    dst = pack(engine.allocate(packed_nbytes(targets)), targets)
    apart = Images(src.buffer, src.first, src.count, 0, tuple(src.placed())[::-1])
    run_plans(engine, apart, dst, [plan] * src.count, stream)
    stream.sync()
    out = np.stack([array_at(dst.buffer, placed) for placed in dst.placed()])
    assert len(packed) == 1
    other = cvcli.as_tensor(pixels[::-1].copy(), "NHWC")
    assert np.array_equal(out, cvcli.resize(other, 16, 12).numpy())

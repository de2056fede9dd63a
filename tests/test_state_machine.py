"""Random programs of many streams do what the same steps do one by one on NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import assert_same, noise
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from races.worlds import Cuda, Simulated, Threaded

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor

SIZES = ((6, 7, 3), (7, 6, 3))
MOST = 8
# Each operator of ours beside what NumPy has for it.
OPERATORS = (
    (lambda x, **to: cvcli.flip(x, 0, **to), lambda x: x[::-1]),
    (lambda x, **to: cvcli.flip(x, 1, **to), lambda x: x[:, ::-1]),
    (lambda x, **to: cvcli.flip(x, -1, **to), lambda x: x[::-1, ::-1]),
    (lambda x, **to: cvcli.rotate(x, 90, **to), np.rot90),
    (lambda x, **to: cvcli.rotate(x, 270, **to), lambda x: np.rot90(x, 3)),
    (cvcli.invert, lambda x: 255 - x),
    (
        lambda x, **to: cvcli.pad(x, top=1, left=2, border="wrap", **to),
        lambda x: np.pad(x, ((1, 0), (2, 0), (0, 0)), "wrap"),
    ),
    (
        lambda x, **to: cvcli.crop(x, min(7, x.shape[1]), min(6, x.shape[0]), **to),
        lambda x: x[:6, :7],
    ),
)
OPERATOR = st.sampled_from(OPERATORS)
PLACE, SEED = st.integers(0, MOST - 1), st.integers(0, 9)
STREAM, PRODUCER = st.integers(0, 2), st.integers(0, 2)
SIZE, LATE = st.sampled_from(SIZES), st.booleans()
HOW = st.sampled_from(("handle", "default", "absent", "nothing"))


class Slot:
    """A tensor, what it must hold, and, where it wraps one, the array of a producer."""

    def __init__(self, tensor, model, array=None, how="", producer=None, writer=None):
        self.tensor, self.model = tensor, np.ascontiguousarray(model)
        self.array, self.how, self.producer, self.writer = array, how, producer, writer


class Programs(RuleBasedStateMachine):
    """Steps that are queued on three streams of ours and three of a producer."""

    world_type = Simulated

    def __init__(self):
        super().__init__()
        self.world = self.world_type()
        self.streams = [self.world.stream() for _ in range(3)]
        self.slots, self.seen = [], []

    def keep(self, place, slot):
        """Put a slot in a place, and so drop what was there."""
        if len(self.slots) < MOST:
            self.slots.append(slot)
        else:
            self.slots[place] = slot

    def at(self, place):
        return self.slots[place % len(self.slots)]

    def foreign(self, place):
        known = [slot for slot in self.slots if slot.array is not None]
        return known[place % len(known)] if known else None

    def agree(self, slot):
        """What a producer has to do for itself before it uses an array that it let us use.

        One that names no stream at all has promised that nothing is pending. One that names the
        default stream goes on there, after the stream on which it wrote.
        """
        if slot.how == "nothing":
            self.world.finish()
        elif slot.writer is not slot.producer:
            self.world.follow(slot.producer, slot.writer)
            slot.writer = slot.producer

    def stream(self, on, late):
        self.world.pace(self.streams[on], late)
        return self.streams[on]

    @initialize()
    def begin(self):
        for place, size in enumerate(SIZES):
            self.upload(place=place, size=size, seed=place, on=0, late=False)
            self.wrap(place=place, size=size, seed=place, how="handle", by=place, late=False)

    @rule(place=PLACE, size=SIZE, seed=SEED, on=STREAM, late=LATE)
    def upload(self, place, size, seed, on, late):
        picture = noise(size, "uint8", seed)
        tensor = cvcli.as_tensor(picture.copy()).to("cuda:0", self.stream(on, late))
        self.keep(place, Slot(tensor, picture))

    @rule(place=PLACE, size=SIZE, seed=SEED, how=HOW, by=PRODUCER, late=LATE)
    def wrap(self, place, size, seed, how, by, late):
        producer, picture = self.world.producers[by], noise(size, "uint8", seed)
        array = self.world.array(size, how, producer)
        self.world.pace(producer, late)
        self.world.write(array, producer, picture)
        if how == "nothing":
            self.world.finish()
        # Who says no more than the default stream can be made to wait there only.
        later = self.world.producers[2] if how in ("default", "absent") else producer
        tensor = self.world.wrapped(array)
        self.keep(place, Slot(tensor, picture, array, how, later, producer))

    @rule(place=PLACE, source=PLACE, operator=OPERATOR, on=STREAM, late=LATE)
    def operate(self, place, source, operator, on, late):
        ours, numpys = operator
        source = self.at(source)
        out = ours(source.tensor, stream=self.stream(on, late))
        self.keep(place, Slot(out, numpys(source.model)))

    @rule(place=PLACE, source=PLACE, operator=OPERATOR, on=STREAM, late=LATE)
    def operate_into(self, place, source, operator, on, late):
        ours, numpys = operator
        source = self.at(source)
        wanted = np.ascontiguousarray(numpys(source.model))
        fitting = [s for s in self.slots if s.model.shape == wanted.shape and s is not source]
        target = fitting[place % len(fitting)] if fitting else self.fresh(place, wanted)
        ours(source.tensor, stream=self.stream(on, late), out=target.tensor)
        target.model = wanted

    @rule(place=PLACE, source=PLACE, operator=OPERATOR, on=st.permutations(range(3)))
    def write_twice(self, place, source, operator, on):
        """A stream that is late must not have the last word."""
        for stream, late in zip(on, (True, False), strict=False):
            self.operate_into(place=place, source=source, operator=operator, on=stream, late=late)
            source += 1

    @rule(source=PLACE, operator=OPERATOR, on=STREAM, kept=st.booleans())
    def use_and_drop(self, source, operator, on, kept):
        """Memory is dropped while it is written, and its next owner writes it elsewhere."""
        ours, numpys = operator
        source = self.at(source)
        wanted = numpys(source.model)
        ours(source.tensor, stream=self.stream(on, True))
        if not kept:
            engine_of("cuda:0").memory.release()
        out = ours(source.tensor, stream=self.stream((on + 1) % 3, False))
        self.keep(0, Slot(out, wanted))

    def fresh(self, place, model):
        slot = Slot(Tensor.empty(model.shape, "uint8", "HWC", "cuda:0"), model)
        self.keep(place, slot)
        return slot

    @rule(place=PLACE, seed=SEED, late=LATE)
    def overwrite_and_wrap_again(self, place, seed, late):
        slot = self.foreign(place)
        if slot is None:
            return
        self.agree(slot)
        self.world.pace(slot.producer, late)
        slot.model = noise(slot.model.shape, "uint8", seed)
        self.world.write(slot.array, slot.producer, slot.model)
        self.agree(slot)
        slot.tensor = self.world.wrapped(slot.array)

    @rule(place=PLACE, seed=SEED)
    def overwrite_and_forget(self, place, seed):
        """A producer that goes on with its buffer does not spoil what we made of it."""
        slot = self.foreign(place)
        if slot is None or len(self.slots) < 3:
            return
        self.agree(slot)
        self.slots.remove(slot)
        picture = noise(slot.model.shape, "uint8", seed)
        self.world.write(slot.array, slot.producer, picture)
        self.seen.append((self.world.read(slot.array, slot.producer), picture))

    @rule(place=PLACE)
    def producer_reads(self, place):
        """What the producer does later than our wrap is told to us by another one."""
        slot = self.foreign(place)
        if slot is not None:
            self.agree(slot)
            self.seen.append((self.world.read(slot.array, slot.producer), slot.model))
            self.agree(slot)
            slot.tensor = self.world.wrapped(slot.array)

    @rule(place=PLACE, by=PRODUCER)
    def consumer_reads(self, place, by):
        slot = self.at(place)
        if slot.array is None or slot.how == "handle":
            self.seen.append(
                (self.world.consume(slot.tensor, self.world.producers[by]), slot.model)
            )

    @rule(place=PLACE)
    def drop(self, place):
        if len(self.slots) > 2:
            self.slots.remove(self.at(place))

    @rule(on=STREAM)
    def delete_stream(self, on):
        self.streams[on] = self.world.stream()

    @rule(on=STREAM)
    def sync(self, on):
        self.streams[on].sync()

    @rule(first=STREAM, second=STREAM)
    def one_stream_waits(self, first, second):
        self.streams[second].wait(self.streams[first])

    @rule()
    def give_memory_back(self):
        engine_of("cuda:0").memory.release()

    @rule(place=PLACE, on=STREAM)
    def look(self, place, on):
        slot = self.at(place)
        assert_same(slot.tensor.numpy(self.streams[on]), slot.model)

    @rule(place=PLACE, on=STREAM)
    def download(self, place, on):
        slot = self.at(place)
        assert_same(np.asarray(slot.tensor.to("cpu", self.streams[on])).copy(), slot.model)

    def teardown(self):
        try:
            self.check_all()
        finally:
            self.slots.clear()
            self.seen.clear()
            self.world.close()

    def check_all(self):
        for slot in self.slots:
            assert_same(slot.tensor.numpy(), slot.model)
        self.world.finish()
        for read, wanted in self.seen:
            assert_same(read(), wanted)
        for slot in self.slots:
            if slot.array is not None:
                wrapper = self.world.wrapped(slot.array)
                assert_same(wrapper.numpy(), slot.model)


class ThreadedPrograms(Programs):
    world_type = Threaded


class CudaPrograms(Programs):
    world_type = Cuda


def trying(examples):
    slow = [HealthCheck.too_slow]
    return settings(max_examples=examples, stateful_step_count=30, suppress_health_check=slow)


TestAdversary = Programs.TestCase
TestAdversary.settings = trying(200)
TestThreads = ThreadedPrograms.TestCase
TestThreads.settings = trying(40)


@pytest.mark.gpu
class TestCuda(CudaPrograms.TestCase):
    settings = trying(100)

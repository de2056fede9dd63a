"""The first promise without a GPU: the CUDA source, run by the emulator, gives the CPU's bytes."""

from __future__ import annotations

from itertools import cycle, islice, product

import emulator
import pytest
from conftest import CASES, CHANNELS, DTYPES, accepts, assert_same, chain_of, noise, sprinkle
from emulator import compile as compiling

from cvcli.core.spec import ImageSpec
from cvcli.devices import nvrtc
from cvcli.errors import DeviceError
from cvcli.ops import parse_chain

SIZES = ((45, 70), (3, 5), (1, 1), (29, 1), (61, 83))
# Each case runs on RGB bytes, and on one other kind of pixel in turn that it accepts.
OTHERS = [kind for kind in product(DTYPES, CHANNELS) if kind != ("uint8", 3)]


def other_kind(operator, case, turn):
    """The first kind from a place in turn on that suits the case; RGB bytes if none does."""
    kinds = islice(cycle(OTHERS), turn % len(OTHERS), turn % len(OTHERS) + len(OTHERS))
    specs = (ImageSpec(*SIZES[0], channels, dtype) for dtype, channels in kinds)
    spec = next((spec for spec in specs if accepts(operator, case, spec)), None)
    return (spec.dtype, spec.channels) if spec else ("uint8", 3)


KINDS = [(parameter, other_kind(*parameter.values, turn)) for turn, parameter in enumerate(CASES)]
CHAINS = (
    "flip --axis -1 | invert | reformat --layout planar",
    "channelreorder --order 2,1,0 | pad --top 3 --left 2 --border wrap | gamma-contrast --gamma 2",
    "pad --top 2 --value 9 | rotate --angle 90 | channelreorder --order 0",
)


def specs_of(operator, case, kind):
    """Images of both kinds that the case accepts, of each its first size apart."""
    for dtype, channels in (("uint8", 3), kind):
        specs = [ImageSpec(height, width, channels, dtype) for height, width in SIZES]
        yield [spec for spec in specs if accepts(operator, case, spec)]


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Everything is compiled ahead, many kernels in a unit."""
    kernels = []
    for parameter, kind in KINDS:
        operator, case = parameter.values
        for number, specs in enumerate(specs_of(operator, case, kind)):
            plans = [chain_of(operator, case).plan(spec) for spec in specs[:1]]
            kernels += emulator.kernels_of(plans, uniform=number == 0)
    plans = [parse_chain(chain).plan(ImageSpec(45, 70, 3, "uint8")) for chain in CHAINS]
    kernels += emulator.kernels_of(plans, uniform=True)
    emulator.compile_all(kernels)


@pytest.mark.parametrize(
    "operator, case, kind",
    [pytest.param(*parameter.values, kind, id=parameter.id) for parameter, kind in KINDS],
)
def test_an_operator_gives_the_same_bytes(operator, case, kind):
    chain = chain_of(operator, case)
    uniform, ragged = specs_of(operator, case, kind)
    if uniform:
        spec = uniform[0]
        emulator.compare(chain, noise((2, *spec.shape), spec.dtype))
    if ragged:
        arrays = [noise(spec.shape, spec.dtype, seed) for seed, spec in enumerate(ragged)]
        if kind[0] == "float32":
            arrays = list(map(sprinkle, arrays))
        pairs = zip(
            emulator.emulate_ragged(chain, arrays),
            emulator.emulate_ragged(chain, arrays, "cpu"),
            strict=True,
        )
        for got, wanted in pairs:
            assert_same(got, wanted)
    assert uniform or ragged


@pytest.mark.parametrize("text", CHAINS)
def test_a_chain_gives_the_same_bytes(text):
    emulator.compare(parse_chain(text), noise((45, 70, 3), "uint8"))


FAULTS = (
    ("rotate --angle 30", "box.width));", "box.width)); if (0)", "no barrier since"),
    (
        "crop --width 699 --height 45 | rotate --angle 30",
        "at + 4 <= bytes",
        "at < bytes",
        "writes 4 bytes at",
    ),
    ("flip --axis 1", "__syncwarp();", "", "no barrier since"),
    ("rotate --angle 90", "__syncthreads();", "__syncwarp();", "no barrier since"),
    (
        "rotate --angle 90",
        "__syncthreads();",
        "if (threadIdx.x != 5) __syncthreads();",
        "a barrier is not reached by all|no barrier since",
    ),
    (
        "flip --axis 1",
        "if (begin >= dst.width) return;",
        "if (begin >= dst.width || threadIdx.x == 3) return;",
        "a barrier is not reached by all",
    ),
    ("crop --width 699 --height 45", "- heads < tails", "- heads <= tails", "writes 1 bytes at"),
    (
        "crop --width 699 --height 45",
        "lead = static_cast<int>(address(src) & (kChunk - 1))",
        "lead = 0",
        "not aligned for its type",
    ),
)


@pytest.mark.parametrize("text, right, wrong, message", FAULTS)
def test_a_fault_is_seen(text, right, wrong, message, monkeypatch):
    """The tests above pass on nothing if the emulator is blind."""
    expand, found = nvrtc.expand, []

    def spoilt(source):
        text = expand(source)
        found.append(right in text)
        return text.replace(right, wrong)

    monkeypatch.setattr(compiling, "_KEPT", {})
    monkeypatch.setattr(nvrtc, "expand", spoilt)
    with pytest.raises(DeviceError, match=message):
        emulator.emulate(parse_chain(text), noise((45, 700, 3), "uint8"))
    assert found == [True]

"""What every operator keeps to, derived from the registry: a new operator is tested as it lands."""

from __future__ import annotations

import hashlib
import inspect
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    CASES,
    CHANNELS,
    DTYPES,
    KINDS,
    ROOT,
    SIZES,
    accepts,
    assert_same,
    bits,
    chain_of,
    every,
    fresh_python,
    is_move,
    is_pointwise,
    noise,
    planned,
    run,
    run_ragged,
    specs_for,
    spread,
    sprinkle,
    tensor,
)

import cvcli
from cvcli.cli.app import run_app
from cvcli.core.spec import ImageSpec
from cvcli.devices.cpu import SIMD_LEVELS, load_library
from cvcli.errors import ParameterError
from cvcli.ops import operators

OPERATORS = [pytest.param(op, id=op.name) for op in operators()]
PARAMETERS = [
    pytest.param(op, parameter, id=f"{op.name}-{parameter.name}")
    for op in operators()
    for parameter in op.parameters
]
LENGTHS = [p for p in PARAMETERS if p.values[1].param.unit == "px"]
# Only of these is something known about alpha whatever the operator.
ALPHA_CASES = [p for p in CASES if is_pointwise(*p.values) or is_move(*p.values)]
# Bytes between rows: a multiple of the widest load, and two that misalign every sample.
GAPS = (1, 7, 16)


@pytest.mark.parametrize("operator, case", CASES)
def test_result_is_as_planned_and_the_input_stays(operator, case, device):
    for spec, array in every(operator, case):
        before = array.copy()
        target = chain_of(operator, case).plan(spec).target
        out = operator(cvcli.as_tensor(array).to(device), **case)
        assert (out.shape, out.dtype, out.layout) == (target.shape, target.dtype, target.layout)
        assert out.device == device and out.numpy().shape == target.shape
        assert_same(array, before)


def sizes_on(device):
    """On the CPU how images follow each other has nothing to do with how wide they are."""
    return SIZES[:-1] if device == "cpu" else SIZES


@pytest.mark.parametrize("operator, case", CASES)
def test_batch_equals_one_by_one(operator, case, device):
    for spec in specs_for(operator, case, sizes=sizes_on(device)):
        arrays = noise((2, *spec.shape), spec.dtype)
        batch = run(operator, arrays, case, device)
        assert_same(batch, np.stack([run(operator, array, case, device) for array in arrays]))


@pytest.mark.parametrize("operator, case", CASES)
def test_layouts_without_channels(operator, case, device):
    for spec, array in every(operator, case, channels=(1,)):
        alone, target = run(operator, array, case, device), planned(operator, case, array)
        shape = alone.shape
        if target.channels == 1 and not target.planar:
            shape = alone.shape[:2]
        assert_same(run(operator, array[..., 0], case, device), alone.reshape(shape))
        flat = cvcli.as_tensor(array.reshape(1, *spec.shape[:2]), "NHW").to(device)
        assert_same(operator(flat, **case).numpy(), alone.reshape(1, *shape))


@pytest.mark.parametrize("operator, case", CASES)
def test_ragged_batch_equals_one_by_one(operator, case, device):
    chain = chain_of(operator, case)
    for dtype in DTYPES:
        for channels in CHANNELS:
            kind = {"sizes": sizes_on(device), "channels": (channels,), "dtypes": (dtype,)}
            arrays = [a for _, a in every(operator, case, **kind)]
            if not arrays:
                continue
            arrays += arrays[:1]
            got = run_ragged([chain] * len(arrays), arrays, device)
            for array, out in zip(arrays, got, strict=True):
                assert_same(out, run(operator, array, case, device))


@pytest.mark.parametrize("operator, case", CASES)
def test_rows_with_gaps_equal_packed_ones(operator, case):
    for spec, array in every(operator, case, sizes=SIZES[:-1]):
        packed = run(operator, array, case)
        target, layout = np.zeros(packed.shape, packed.dtype), planned(operator, case, array).layout
        for samples in GAPS:
            view, _ = spread(array, samples * array.itemsize)
            assert_same(run(operator, view, case), packed)
            gap = samples * target.itemsize
            out, memory = spread(target, gap, layout)
            operator(tensor(array), **case, out=tensor(out, layout)).buffer.synchronize()
            assert_same(out.copy(), packed)
            # The gaps keep what was in them.
            out[...] = 0
            rows = target.nbytes // target.shape[-1] // target.itemsize
            rows = rows if layout == "CHW" else target.shape[0]
            assert np.count_nonzero(memory) == gap * (rows + 1), (spec, gap)


@pytest.mark.parametrize("operator", OPERATORS)
def test_unknown_extra_and_missing_parameters_are_named(operator):
    case = dict(operator.cases[0])
    named = f"^{operator.command}: .*"
    with pytest.raises(ParameterError, match=named + "nonsense"):
        operator.step(**case, nonsense=1)
    with pytest.raises(ParameterError, match=named):
        operator.step(*range(len(operator.parameters) + 1))
    for parameter in operator.parameters:
        if parameter.required:
            given = {name: value for name, value in case.items() if name != parameter.name}
            with pytest.raises(ParameterError, match=named + parameter.name):
                operator.step(**given)
        elif parameter is operator.parameters[0]:
            with pytest.raises(ParameterError, match=named + parameter.name):
                operator.step(1, **{**case, parameter.name: 1})


def bad_values(parameter):
    numbers = [None, "", "abc", "nan", "inf", float("nan"), float("-inf"), [1, 2]]
    if parameter.kind in ("number", "level", "color"):
        numbers += [10**400, "1e400"]
    if parameter.kind == "integer":
        numbers += [1.5, "1.5", True, "1e3"]
    if parameter.kind in ("integer", "number"):
        low, high = parameter.param.min, parameter.param.max
        numbers += [low - 1, str(low - 1)] if low is not None else []
        numbers += [high + 1, str(high + 1)] if high is not None else []
    if parameter.kind == "choice":
        numbers += [parameter.choices[0] + "x", parameter.choices[0] + " ", 0]
    if parameter.kind in ("level", "color"):
        numbers += ["%", "5 percent", "nan%", "inf%", "1%%"]
    if parameter.kind == "color":
        numbers += ["1,2,3,4,5", "1,,2", (), (1, None), ["1", "x"]]
        numbers.remove([1, 2])
    if parameter.kind not in KINDS:
        numbers = ["", "abc", "nan"]
    return [value for value in numbers if not (value is None and parameter.optional)]


@pytest.mark.parametrize("operator, parameter", PARAMETERS)
def test_values_out_of_range_are_named(operator, parameter):
    others = {p.name: operator.cases[-1].get(p.name) for p in operator.parameters if p.required}
    for value in bad_values(parameter):
        given = {**others, parameter.name: value}
        with pytest.raises(ParameterError) as caught:
            operator.step(**given)
        message = str(caught.value).replace("-", "_").replace(parameter.option[2:], parameter.name)
        assert message.startswith(f"{operator.name}: {parameter.name} must be"), (value, message)


@pytest.mark.parametrize("operator, parameter", LENGTHS)
@pytest.mark.parametrize("length", (2**31, 2**62, 2**400), ids=("2^31", "2^62", "2^400"))
def test_lengths_too_large_for_an_image_are_refused(operator, parameter, length):
    case = {p.name: operator.cases[0].get(p.name) for p in operator.parameters if p.required}
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from cvcli.core.spec import ImageSpec
from cvcli.ops import operator_named
try:
    step = operator_named({operator.name!r}).step(**{ {**case, parameter.name: length}!r})
    step.lower(ImageSpec(61, 83, 3, "uint8"))
except Exception as error:
    print(type(error).__name__)
"""
    # In a process with little memory: an honest attempt would take tens of gigabytes.
    assert fresh_python(code) == "ParameterError"


@pytest.mark.parametrize("operator, case", ALPHA_CASES)
def test_pointwise_operators_leave_alpha_alone(operator, case, device):
    for spec, array in every(operator, case, channels=(2, 4)):
        if spec.dtype == "float32":
            sprinkle(array)
        got = run(operator, array, case, device)
        colours = spec.channels - 1
        if is_pointwise(operator, case):
            assert_same(got[..., colours], array[..., colours])
            if colours == 3:
                alone = run(operator, array[..., :3].copy(), case, device)
                assert_same(got[..., :3], alone)
        elif is_move(operator, case) and got.size > array.size:
            # A move takes alpha along; what a pad adds is told apart from nothing at all.
            assert not np.array_equal(got[..., :1], got[..., colours:])


@pytest.mark.parametrize("operator, case", CASES)
def test_every_float_gives_a_defined_result(operator, case, device):
    for spec, array in every(operator, case, dtypes=("float32",)):
        sprinkle(array)
        got = run(operator, array, case, device)
        if is_pointwise(operator, case):
            colours = got[..., : 3 if spec.channels == 4 else 1 if spec.channels == 2 else None]
            assert set(np.unique(bits(colours[np.isnan(colours)]))) <= {0x7FC00000}
        elif spec.channels == 1 and "value" not in case and is_move(operator, case):
            # A move of one float is a move of its four bytes, signalling NaNs included.
            moved = run(operator, array.view(np.uint8), case, device)
            assert_same(got.view(np.uint8), moved)


@cache
def digest():
    """One hash over all operators, cases, dtypes, channels and sizes, on the build in use."""
    total = hashlib.sha256()
    for parameter in CASES:
        operator, case = parameter.values
        for spec, array in every(operator, case):
            if spec.dtype == "float32":
                sprinkle(array)
            total.update(run(operator, array, case).tobytes())
    return total.hexdigest()


def simd_builds():
    return SIMD_LEVELS[: 1 + load_library("baseline").cvcli_simd_level()]


@pytest.mark.parametrize("level", simd_builds())
def test_every_simd_build_gives_the_same_bytes(level):
    code = "import test_ops; from cvcli.devices.cpu import simd_level;"
    code += "print(simd_level(), test_ops.digest())"
    assert fresh_python(code, CVCLI_SIMD=level).split() == [level, digest()]


def test_an_unknown_simd_build_is_refused():
    code = "from cvcli.devices.cpu import native\ntry: native()\n"
    code += "except Exception as error: print(type(error).__name__)"
    assert fresh_python(code, CVCLI_SIMD="mmx") == "DeviceError"


def test_one_word_in_every_spelling():
    listed = json.loads(
        fresh_python("from cvcli.cli.app import run_app; run_app(['ops','--json'])")
    )
    files = {path.stem for path in (ROOT / "cvcli" / "ops").glob("*.py") if path.stem[0] != "_"}
    assert files == {operator.name for operator in operators()}
    assert [item["name"] for item in listed] == [operator.command for operator in operators()]
    for operator in operators():
        assert getattr(cvcli, operator.name) is operator
        assert Path(inspect.getfile(operator.function)).stem == operator.name
        assert operator.command == operator.name.replace("_", "-")
        assert str(chain_of(operator, operator.cases[0])).split()[0] == operator.command
        if is_pointwise(operator, operator.cases[0]):
            assert (ROOT / "kernels" / f"{operator.name}.h").is_file()


def test_cases_cover_what_the_tests_rely_on():
    """The checks above mean little for an operator whose cases suit hardly any image."""
    for operator in operators():
        assert operator.cases and operator.summary.endswith(".")
        suited = [
            size
            for size in SIZES
            if any(accepts(operator, case, s) for case in operator.cases for s in _specs(size))
        ]
        assert (1, 1) in suited and (45, 700) in suited


def _specs(size):
    return [ImageSpec(*size, channels, dtype) for channels in CHANNELS for dtype in DTYPES]


@pytest.mark.parametrize("operator", OPERATORS)
def test_defaults_are_told_as_they_are_typed(operator, capsys):
    assert run_app(["ops", operator.command]) == 0
    told = capsys.readouterr().out
    for parameter in operator.parameters:
        word = parameter.spelled_default
        assert (word is None) == (parameter.default is None)
        if word is not None:
            assert f"default: {word})" in told
            assert word not in ("True", "False")
            assert parameter.check(word) == parameter.check(parameter.default)

"""The text of a chain, its identity, and that a folded chain equals its steps."""

from __future__ import annotations

import pytest
from conftest import (
    assert_same,
    chains,
    images,
    noise,
    run_chain,
    run_ragged,
    step_by_step,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import cvcli
from cvcli.core.apply import apply
from cvcli.core.chain import Chain
from cvcli.core.spec import ImageSpec
from cvcli.devices import open_device
from cvcli.errors import ParameterError, UsageError
from cvcli.ops import load_chain, operator_named, operators, parse_chain


def step(name, **params):
    return operator_named(name).step(**params)


def chain(*steps):
    return Chain(steps)


def refused(text, **kwargs):
    with pytest.raises(UsageError) as caught:
        parse_chain(text, **kwargs)
    assert "\n" not in str(caught.value)
    return caught.value


FLIP, INVERT = step("flip", axis=-1), step("invert")
PAD = step("pad", top=2, value=(7, 3, 9))


@pytest.mark.parametrize(
    "text, wanted",
    (
        ("invert", (INVERT,)),
        ("flip --axis -1 | invert", (FLIP, INVERT)),
        ("flip --axis=-1|invert", (FLIP, INVERT)),
        ("  flip   --axis  '-1'  |  invert  ", (FLIP, INVERT)),
        ("pad --top 2 --value 7,3,9", (PAD,)),
        ("pad --value='7,3,9' --top=2", (PAD,)),
        ("flip --axis -1\ninvert", (FLIP, INVERT)),
        ("flip --axis -1 |\ninvert", (FLIP, INVERT)),
        ("# all of it\n\nflip --axis -1  # half a turn\n   \ninvert # | flip\n", (FLIP, INVERT)),
        ("flip --axis -1\r\ninvert\r\n", (FLIP, INVERT)),
        ("threshold --thresh -0.5 --type tozero", (step("threshold", thresh=-0.5, type="tozero"),)),
        ("brightness-contrast --shift=-12.5%", (step("brightness_contrast", shift="-12.5%"),)),
        ("brightness_contrast --shift -12.5%", (step("brightness_contrast", shift="-12.5%"),)),
        ('"invert" | "flip" "--axis" "-1"', (INVERT, FLIP)),
    ),
)
def test_spellings(text, wanted):
    assert parse_chain(text).steps == wanted
    assert load_chain(text) == Chain(wanted)


@pytest.mark.parametrize(
    "text", ("flip --axis '1|0'", 'crop --gravity "a|b" --width 1 --height 1', "'a|b'")
)
def test_a_pipe_in_quotes_is_no_pipe(text):
    # It reaches the parameter (or the operator's name), which has no such value.
    assert "|" in str(refused(text)) and "between" not in str(refused(text))


@pytest.mark.parametrize("text", ("'|'", "flip --axis '|'", "invert '|' invert"))
def test_a_quoted_pipe_alone_is_no_pipe(text):
    assert "'|'" in str(refused(text))


@pytest.mark.parametrize(
    "text", ("", "  ", "\n\n", "# nothing", "|", "| |", "|\n|", "invert || invert")
)
def test_empty_chains_and_steps(text):
    assert "step" in str(refused(text)) or "no operator" in str(refused(text))


@pytest.mark.parametrize("text", ("| invert", "invert | | invert"))
def test_a_pipe_with_nothing_before_it(text):
    assert "no step" in str(refused(text))


@pytest.mark.parametrize("text", ("flip --axis '1", 'invert "', "invert \\"))
def test_unclosed_quotes(text):
    assert str(refused(text)).startswith("chain: ")


@pytest.mark.parametrize(
    "text, words, tip",
    (
        ("flp --axis 1", ("'flp'",), "flip"),
        ("brightness-contrst", ("brightness-contrst",), "brightness-contrast"),
        ("xyzzy", ("xyzzy",), "cvcli ops"),
        ("flip --axs 1", ("flip", "--axs"), "--axis"),
        ("pad --botom 1", ("pad", "--botom"), "--bottom"),
        ("flip --quality 5", ("flip", "--quality"), "--axis"),
        ("invert --level 3", ("invert", "--level"), "none"),
        ("flip 1", ("flip", "'1'"), None),
        ("flip --axis", ("flip", "--axis", "value"), None),
        ("flip --axis 1 --axis 0", ("flip", "--axis", "twice"), None),
        ("flip --axis 1 --axis=0", ("flip", "--axis", "twice"), None),
        ("flip --axis=", ("flip", "axis", "integer"), None),
        ("flip", ("flip", "axis"), None),
        ("crop --width 0 --height 1", ("crop", "width", ">= 1", "'0'"), None),
        ("posterize --bits 17", ("posterize", "bits", "<= 16"), None),
        ("pad --border mirror", ("pad", "border", "reflect101"), None),
        ("gamma-contrast --gamma nan", ("gamma", "finite"), None),
    ),
)
def test_what_is_wrong_is_named(text, words, tip):
    error = refused(text)
    for word in words:
        assert word in str(error) or word.strip("'") in str(error)
    assert tip is None or tip in (error.tip or "")


@pytest.mark.parametrize(
    "text", ("flip --axis 1\n# note\n\ninvret\n", "invert\n\n\ncrop --width=0")
)
def test_files_name_the_line(tmp_path, text):
    path = tmp_path / "steps.txt"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_chain(f"@{path}")
    assert str(caught.value).startswith(f"{path}:4: ")
    assert isinstance(caught.value, ParameterError) == ("crop" in text)


def test_files(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_text("flip --axis -1 | invert\n", encoding="utf-8")
    assert load_chain(f"@{path}").steps == (FLIP, INVERT)
    for name, content in {"empty.txt": b"# only\n", "latin.txt": b"invert # \xe9\xff"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError) as caught:
            load_chain(f"@{tmp_path / name}")
        assert str(caught.value).startswith(str(tmp_path / name))
    for gone in (tmp_path / "gone.txt", tmp_path):
        with pytest.raises(UsageError) as caught:
            load_chain(f"@{gone}")
        assert str(caught.value).startswith(str(gone))


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_bytes(b"\xef\xbb\xbfflip --axis -1\r\ninvert\r\n")
    assert load_chain(f"@{path}").steps == (FLIP, INVERT)


def specs():
    return st.builds(
        ImageSpec,
        *(st.integers(1, 40), st.integers(1, 40), st.integers(1, 4)),
        st.sampled_from(("uint8", "uint16", "float32")),
    )


@given(st.data())
@settings(max_examples=150)
def test_text_parses_back_to_an_equal_chain(data):
    wanted = data.draw(specs().flatmap(chains))
    again = parse_chain(str(wanted))
    assert again == wanted and hash(again) == hash(wanted) and str(again) == str(wanted)


@pytest.mark.parametrize(
    "wanted",
    (
        chain(step("gamma_contrast", gamma=1 / 3)),
        chain(step("brightness_contrast", brightness=123456.789, shift=1e-17)),
        chain(step("solarize", threshold=65534.5)),
        chain(step("solarize", threshold="33.3333333%")),
        chain(step("threshold", thresh=40000.25)),
        chain(step("pad", left=1234567, value=(1 / 3, "0.123456789%", 1e9))),
    ),
)
def test_text_keeps_every_digit(wanted):
    assert parse_chain(str(wanted)) == wanted


def test_a_chain_is_a_value():
    one, two = parse_chain("flip --axis -1 | invert"), chain(FLIP, INVERT)
    assert one == two and hash(one) == hash(two) and len(one) == 2 and list(one) == [FLIP, INVERT]
    assert len({one, two, chain(INVERT, FLIP)}) == 2
    assert one != chain(INVERT, FLIP) and one != chain(FLIP) and one != "flip --axis -1 | invert"
    assert step("solarize") == step("solarize", threshold="50%") != step("solarize", threshold=1)
    assert step("flip", axis=1) != step("flip", axis=2)
    with pytest.raises(AttributeError):
        FLIP.name = "other"


@given(data=st.data(), array=images())
@settings(max_examples=400)
def test_folded_equals_step_by_step(data, array):
    spec = ImageSpec(*array.shape, array.dtype.name)
    steps = data.draw(chains(spec))
    assert_same(run_chain(steps, array), step_by_step(steps, array))


@given(data=st.data())
@settings(max_examples=60)
def test_ragged_batches_of_chains_equal_steps(data):
    """Images of one dtype and channel count, each with a chain of its own, in one call."""
    spec = data.draw(specs())
    channels, dtype = spec.channels, spec.dtype
    arrays, many = [], []
    for seed in range(data.draw(st.integers(1, 5))):
        height, width = data.draw(st.tuples(st.integers(1, 30), st.integers(1, 30)))
        arrays.append(noise((height, width, channels), dtype, seed))
        many.append(data.draw(chains(ImageSpec(height, width, channels, dtype), most=3)))
    for array, steps, out in zip(arrays, many, run_ragged(many, arrays), strict=True):
        assert_same(out, step_by_step(steps, array))


@pytest.mark.parametrize(
    "text",
    (
        "pad --top 3 --left 5 --value 10,20,30,40 | invert",
        "pad --right 5 --value 40% | solarize --threshold 20% | pad --top 2 --value 9",
        "pad --left 3 --value 7 | rotate --angle 90 | gamma-contrast --gamma 0.4 | flip --axis 1",
        "invert | pad --top 2 --value 50% | posterize --bits 3 | crop --width 4 --height 3",
        "pad --left 2 --value 1 | pad --top 2 --border wrap | invert | pad --left 1 --value 0",
        "rotate --angle 90 | rotate --angle 270 | flip --axis 0 | flip --axis 0",
        "pad --top 5 --value 3 | crop --width 1 --height 1 | pad --right 90 --border reflect101",
        "threshold --thresh 40% | pad --bottom 70 --value -1 | rotate --angle -90 | invert",
    ),
)
@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
def test_constants_pass_through_later_steps(text, dtype, device):
    for channels in (1, 2, 3, 4):
        steps = parse_chain(text)
        array = noise((61, 83, channels), dtype)
        assert_same(run_chain(steps, array, device), step_by_step(steps, array, device))


def test_an_empty_chain_copies(device):
    array = noise((2, 17, 11, 3), "float32")
    src = cvcli.as_tensor(array).to(device)
    out = apply(Chain(()), src)
    assert out.pointer != src.pointer
    assert_same(out.numpy(), array)


@pytest.mark.parametrize(
    "text",
    ("resize 50% --width 3 --height 3", "crop --width 1 --height 1 --gravity center --x 1"),
)
def test_what_suits_no_image_fails_before_one_is_known(text):
    with pytest.raises(ParameterError, match=f"^{text.split()[0]}: "):
        parse_chain(text)


@pytest.mark.parametrize(
    "text",
    (
        "crop --width 84 --height 1",
        "crop --width 80 --height 1 --x 4",
        "flip --axis 1 | crop --width 1 --height 62",
        "rotate --angle 90 | crop --width 62 --height 1",
        "crop --width 5 --height 5 | invert | crop --width 6 --height 5",
        "pad --top 1 --value 1,2",
    ),
)
def test_planning_fails_before_any_pixel(text, monkeypatch):
    def no_work(*_):
        raise AssertionError("touched")

    for name in ("launch", "copy", "allocate"):
        monkeypatch.setattr(type(open_device("cpu")), name, no_work)
    steps, name = parse_chain(text), text.rpartition("| ")[2].split()[0]
    with pytest.raises(ParameterError, match=f"^{name}: "):
        steps.plan(ImageSpec(61, 83, 4, "uint8"))
    with pytest.raises(ParameterError, match=f"^{name}: "):
        apply(steps, cvcli.as_tensor(noise((61, 83, 4), "uint8")))


def test_plans_tell_shapes_beforehand():
    steps = parse_chain("rotate --angle 90 | pad --left 5 --top 1 | crop --width 3 --height 2")
    spec = ImageSpec(61, 83, 3, "uint16")
    assert chain(*steps.steps[:2]).plan(spec).target == ImageSpec(84, 66, 3, "uint16")
    assert steps.plan(spec).target == ImageSpec(2, 3, 3, "uint16")
    assert steps.plan(spec) is steps.plan(ImageSpec(61, 83, 3, "uint16"))
    for height in range(1, 600):
        assert parse_chain("invert").plan(ImageSpec(height, 1, 1, "uint8")).target.height == height


def test_every_operator_is_in_the_grammar():
    for operator in operators():
        for case in operator.cases:
            wanted = chain(operator.step(**case))
            assert parse_chain(str(wanted)) == wanted

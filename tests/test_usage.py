"""Words that can't be meant: one sentence, a near match, exit code 2; and values that can be."""

import copy
import pickle
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from conftest import noise
from test_cli import save
from test_metadata import run
from within import cvcli

import cvcli as api
from cvcli.cli.options import parameters
from cvcli.errors import CopyError, ParameterError, UsageError
from cvcli.ops import load_chain

DEVICE = "--device must be auto, cpu, cuda, cuda:N or cuda:all, got "
WRONG = {
    "flip --axiss 1 a b": ("flip: there is no option '--axiss'", "did you mean --axis?"),
    "flip a b": ("flip: --axis must be given", "cvcli flip --help shows what there is"),
    "flip --axis 1 --quiet=maybe a b": ("flip: --quiet must be on or off, got 'maybe'", None),
    "ops --json=x": ("ops: --json must be on or off, got 'x'", None),
    "--version=yes": ("--version takes no value", None),
    "flip -axis 1 a b": ("flip: there is no option '-axis'", "did you mean --axis?"),
    "flip --axis 1 -x a b": (
        "flip: there is no option '-x'",
        "its options are --axis; cvcli flip --help shows more",
    ),
    "invert -x a b": ("invert: there is no option '-x'", "cvcli invert --help shows what there is"),
    "flip --axis 1 --fail-on nonne a b": (
        "flip: --fail-on must be one of none, truncated, error, warning, got 'nonne'",
        "did you mean none?",
    ),
    "flip --axis 1 --progress=alway a b": (
        "flip: --progress must be one of auto, always, never, got 'alway'",
        "did you mean always?",
    ),
    "flip --axis 1 --threads x a b": ("flip: --threads must be a whole number >= 1, got 'x'", None),
    "flip --axis 1 -j 0 a b": ("flip: -j must be a whole number >= 1, got '0'", None),
    "flip --axis 1 a b --frame -1": ("flip: --frame must be a whole number >= 0, got '-1'", None),
    "flip --axis 1 --device": ("--device must have a value", None),
    "flip --axis 1 --device gpu a b": (f"{DEVICE}'gpu'", "did you mean cuda?"),
    "flip --axis 1 --device CUDA a b": (f"{DEVICE}'CUDA'", "did you mean cuda?"),
    "flip --axis 1 --device cuda:al a b": (f"{DEVICE}'cuda:al'", "did you mean cuda:all?"),
    "flip --axis 1 --device tpu a b": (f"{DEVICE}'tpu'", None),
    "report mrge a b": ("report: there is no command 'mrge'", "did you mean merge?"),
    "report xyzzy": ("report: there is no command 'xyzzy'", "cvcli report --help lists them"),
    "report merge --quit a b": (
        "report merge: there is no option '--quit'",
        "did you mean --quiet?",
    ),
    "reporrt a b": ("there is no command 'reporrt'", "did you mean report?"),
    "version": ("there is no command 'version'", "did you mean --version?"),
    "mirror a b": ("there is no command 'mirror'", "did you mean flip?"),
    "grayscale a b": ("there is no command 'grayscale'", "did you mean cvtcolor?"),
    "blur a b": (
        "there is no command 'blur'",
        "did you mean averageblur, gaussian or median-blur?",
    ),
    "flip 1 a b": ("flip: --axis must be given", "did you mean --axis 1?"),
    "rotate -90 a b": ("rotate: there is no option '-90'", "did you mean --angle -90?"),
    "morphology --op open a b": (
        "morphology: there is no option '--op'",
        "its options are --operation, --size, --iterations, --border, --value; "
        "cvcli morphology --help shows more",
    ),
    "cvtcolor --code rgb2grey a b": (
        "cvtcolor: code must be one of 56 words, got 'rgb2grey'",
        "did you mean rgb2gray?",
    ),
    "resize 50 a b": (
        "resize: geometry must be a size such as 640x480, 640x, x480, 50% or 640x480>, got '50'",
        "did you mean 50x, x50 or 50%?",
    ),
    "resize / b": (
        "resize: GEOMETRY must be given in front of the inputs, or --width or --height or --scale",
        "for example: cvcli resize 50% --filter box in/ out/",
    ),
    "flip --axis 1 a": (
        "an input and an output must be given, as in INPUT... OUTPUT, got only 'a'",
        "for example: cvcli flip --axis 1 in/ out/",
    ),
    "invert --in-place": (
        "an input must be given, as in INPUT...",
        "for example: cvcli invert in/ --in-place",
    ),
    "flipp a b": ("there is no command 'flipp'", "did you mean flip?"),
    "xyzzy a b": ("there is no command 'xyzzy'", "cvcli --help lists them"),
    "--versionn": ("there is no option '--versionn'", "did you mean --version?"),
    "ops flip b": ("ops: takes no more words, got 'b'", "cvcli ops --help shows what there is"),
    "crop --width 3 --height 3 --gravity centre a b": (None, "did you mean center?"),
    "flip --axis 1 --max-memory 10k a b": (
        "--max-memory: must be at least 1M, as a small photograph takes that much, got '10k'",
        None,
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(words):
    done = cvcli(*words.split(), code=2)
    lines = [line for line in done.stderr.splitlines() if line]
    assert not done.stdout
    message, tip = WRONG[words]
    assert message is None or lines[0] == f"cvcli: {message}"
    assert lines[1:] == ([f"tip: {tip}"] if tip else [])


@pytest.mark.parametrize(
    ("words", "usage", "missing"),
    [
        ("flip", "[OPTIONS] --axis INTEGER INPUT... OUTPUT", "--axis, INPUT... and OUTPUT"),
        ("invert", "[OPTIONS] INPUT... OUTPUT", "INPUT... and OUTPUT"),
        ("resize", "[OPTIONS] [GEOMETRY] INPUT... OUTPUT", "INPUT... and OUTPUT"),
        ("run", "[OPTIONS] CHAIN INPUT... OUTPUT", "CHAIN, INPUT... and OUTPUT"),
        ("report merge", "[OPTIONS] REPORT.json... OUTPUT", "REPORT.json... and OUTPUT"),
    ],
)
def test_a_command_alone_says_what_it_needs(words, usage, missing):
    done = cvcli(*words.split(), code=2)
    assert not done.stdout
    assert done.stderr.splitlines() == [
        f"usage: cvcli {words} {usage}",
        f"cvcli: {words}: {missing} must be given",
        f"tip: cvcli {words} --help shows what there is",
    ]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("flip --axis -1", "flip --axis -1"),
        ("-q flip --axis=-1", "flip --axis=-1"),
        ("rotate --expand --angle 30 --interp bilinear", None),
        ("resize 50%", "resize 50%"),
        ("invert resize --width 3", "invert | resize --width 3"),
        ("'flip --axis -1' invert", "flip --axis -1 | invert"),
        ("'invert | resize' --width 30", "invert | resize --width 30"),
        ("pad --top 1 --value '1, 2,3'", None),
    ],
)
def test_a_chain_without_quotes_is_told(words, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    meant = meant or words
    done = cvcli("run", *shlex.split(words), "in", "out", code=2)
    assert done.stderr.splitlines() == [
        "cvcli: run: the chain must be one word, in quotes",
        f'tip: for example: cvcli run "{meant}" in/ out/',
    ]
    api.parse_chain(meant)


def test_an_output_given_with_in_place_leaves_the_inputs_alone(gray):
    before = gray.read_bytes()
    done = cvcli("flip", "--axis", "1", "gray.png", "out", "--in-place", code=2)
    assert done.stderr.splitlines() == [
        "cvcli: out: no such file, and --in-place takes no OUTPUT",
        "tip: leave out the output, or --in-place to keep the inputs as they are",
    ]
    assert gray.read_bytes() == before
    Path("more").mkdir()
    cvcli("flip", "--axis", "1", "gray.png", "[mn]ore/*", "--in-place", code=None)
    assert gray.read_bytes() != before  # a pattern is an input


def test_a_chain_in_the_place_of_a_command_is_told():
    done = cvcli("flip --axis 1", "in", "out", code=2)
    assert done.stderr.splitlines() == [
        "cvcli: there is no command 'flip --axis 1'",
        'tip: for example: cvcli run "flip --axis 1" in/ out/',
    ]
    done = cvcli("run", "invert | flip --axis 1", "in", code=2)
    assert done.stderr.splitlines()[1:] == [
        'tip: for example: cvcli run "invert | flip --axis 1" in/ out/'
    ]


@pytest.mark.parametrize(
    "words", ["help", "help flip", "help run", "help report merge", "help ops"]
)
def test_help_can_be_asked_for_by_a_word(words):
    shown = cvcli(*words.split()).stdout.decode()
    usage = f"Usage: cvcli {words[5:]}".strip()
    assert usage in shown and shown == cvcli(*words.split()[1:], "--help").stdout.decode()
    assert words != "help" or "channel order[i] of" in " ".join(re.split(r"[\s│]+", shown))
    # Neither Python's types nor the opposites of flags are of use to who reads it.
    assert not re.search(
        r"<(bool|str|int range|list.*)>|--no-(?!auto-orient|expand|antialias)", shown
    )


def test_an_option_that_no_step_before_it_takes_is_not_guessed_at():
    done = cvcli("run", "invert", "--axis", "1", "in", "out", code=2)
    assert done.stderr.splitlines() == [
        "cvcli: run: there is no option '--axis'",
        "tip: options of a step stand in the chain's quotes",
    ]


@pytest.mark.parametrize(
    ("text", "tip"),
    [
        ("rotate 90", "did you mean --angle 90?"),
        ("rotate --expand -90", "did you mean --angle -90?"),
        ("rotate sideways", "its options are --angle, --expand, --interp, --border, --value"),
        ("flip axis=1", "did you mean --axis?"),
    ],
)
def test_a_value_without_its_option_is_told(text, tip):
    with pytest.raises(UsageError, match="there is no option") as caught:
        api.parse_chain(text)
    assert caught.value.tip == tip


@pytest.mark.parametrize("other", ["+", ";", "&&", "->"])
def test_nothing_but_a_bar_parts_steps(other):
    with pytest.raises(UsageError) as caught:
        api.parse_chain(f"flip --axis 1 {other} invert")
    assert str(caught.value) == f"chain: steps must be parted by |, got {other!r}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("invert |", "after the last"),
        ("invert |\n # nothing more\n\n", "after the last"),
        ("invert || flip --axis 1", "between two"),
        ("invert | | flip --axis 1", "between two"),
        ("| invert", "before the first"),
        ("|", "before the first"),
    ],
)
def test_a_bar_stands_between_two_steps(text, said, tmp_path):
    with pytest.raises(UsageError) as caught:
        api.parse_chain(text)
    assert str(caught.value).startswith(f"chain: there is no step {said}")
    (tmp_path / "chain.txt").write_text(f"invert\n{text}")
    with pytest.raises(UsageError) as caught:
        load_chain(f"@{tmp_path / 'chain.txt'}")
    assert str(caught.value).startswith(f"{tmp_path / 'chain.txt'}:2: there is no step {said}")
    assert len(api.parse_chain("invert |\n\n# and\nflip --axis 1\ninvert")) == 3


@pytest.fixture
def gray(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return save(tmp_path / "gray.png", noise((20, 30, 1), "uint8"))


def test_a_flag_needs_no_value(gray):
    whole = [["--expand"], ["--expand", "on"], ["--expand=true"]]
    for words in whole:
        run("rotate", "--angle", 30, *words, "gray.png", "a.npy", "--overwrite")
        assert np.load("a.npy").shape[:2] != (20, 30), words
    for words in ([], ["--no-expand"], ["--expand", "off"], ["--expand=no"]):
        run("rotate", "--angle", 30, *words, "gray.png", "a.npy", "--overwrite")
        assert np.load("a.npy").shape[:2] == (20, 30), words
    for text, shown in (("--expand --interp nearest", "on"), ("--no-expand", None)):
        chain = api.parse_chain(f"rotate --angle 30 {text}")
        assert (f"--expand {shown}" in str(chain)) == (shown is not None)
        assert api.parse_chain(str(chain)) == chain
    assert cvcli("rotate", "--angle", "30", "--", "--expand", "out", code=None).returncode == 66


def test_a_colour_for_a_gray_image_must_be_gray(gray):
    done = cvcli("pad", "--top", "2", "--value", "255,0,0", "gray.png", "out.png", code=2)
    assert "pad: value must be a gray where the image is gray, got 255" in done.stderr
    assert not Path("out.png").exists()
    run("pad", "--top", 2, "--value", "255,255,255", "gray.png", "white.npy")
    run("pad", "--top", 2, "--value", "100%", "gray.png", "also.npy")
    assert (np.load("white.npy")[:2] == 255).all()
    np.testing.assert_array_equal(np.load("white.npy"), np.load("also.npy"))
    clear = api.as_tensor(noise((4, 5, 2), "uint8"), "HWC")
    assert (api.pad(clear, top=1, value=(9, 30)).numpy()[0] == (9, 30)).all()
    assert (api.pad(clear, top=1, value=(9, 9, 9)).numpy()[0] == (9, 255)).all()
    with pytest.raises(ParameterError, match="value must be a gray"):
        api.pad(clear, top=1, value=(9, 8, 9))


def test_a_chain_goes_to_another_process_and_comes_back_the_same():
    text = "crop --width 9 --height 8 | resize 50% | pad --top 3 --value 1,2,3 | invert"
    chain = api.parse_chain(text)
    image = api.as_tensor(noise((20, 30, 3), "uint8"), "HWC")
    wanted = api.apply(chain, image).numpy()
    for other in (pickle.loads(pickle.dumps(chain)), copy.deepcopy(chain), copy.copy(chain)):
        assert other == chain and hash(other) == hash(chain) and str(other) == str(chain)
        np.testing.assert_array_equal(api.apply(other, image).numpy(), wanted)


def test_copies_of_tensors(device):
    array = noise((20, 30, 3), "uint8")
    tensor = api.as_tensor(array, "HWC").to(device)
    other = copy.deepcopy(tensor)
    before = tensor.numpy()
    api.invert(other, out=tensor).buffer.synchronize()
    np.testing.assert_array_equal(other.numpy(), before)
    assert (other.device, other.layout, other.shape) == (tensor.device, "HWC", (20, 30, 3))
    assert copy.copy(tensor) is tensor
    with pytest.raises(CopyError, match="tensor: can't be pickled") as caught:
        pickle.dumps(tensor)
    assert ".numpy()" in caught.value.tip


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(2, 3, 4),
        np.ones((2, 3), bool),
        np.arange(420, dtype="u1").reshape(2, 3, 5, 7, 2),
        np.arange(72, dtype="u1").reshape(4, 6, 3)[::2, ::-1],
        np.zeros((0, 3), np.float32),
        np.arange(3),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_copies_of_tensors_that_no_operator_takes(array):
    tensor = api.as_tensor(array)
    other = copy.deepcopy({"one": tensor})["one"]
    assert (other.layout, other.dtype) == (tensor.layout, array.dtype)
    assert other.is_packed and not np.shares_memory(np.asarray(other), array)
    np.testing.assert_array_equal(np.asarray(other), array)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_is_tied_to_the_process_is_not_copied(way, device):
    stream = api.Stream(device)
    source = api.as_tensor(noise((4, 5, 3), "uint8")).to(device)
    with api.capture(device=device) as graph:
        out = api.invert(source)
    for name, one in (("stream", stream), ("event", stream.record()), ("graph", graph)):
        with pytest.raises(CopyError, match=f"{name}: can't be copied or pickled") as caught:
            way(one)
        assert isinstance(caught.value, api.CvcliError) and caught.value.tip
        assert repr(one).startswith(f"<cvcli.{name.title()} {device} ")
    # They work on as if nobody had asked.
    graph.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(out.numpy(), 255 - source.numpy())


def test_objects_say_what_they_are():
    chain = api.parse_chain("resize 50%|flip --axis 1  # mirrored")
    assert repr(chain) == "<cvcli.Chain resize 50% | flip --axis 1>"
    assert api.parse_chain(str(chain)) == chain
    assert repr(api.flip) == "<cvcli.flip(src, axis, stream, out)>"
    with pytest.raises(UsageError, match="chain: must be a text, got int"):
        api.parse_chain(3)


def test_every_error_can_be_caught_by_one_name():
    with pytest.raises(api.CvcliError):
        api.parse_chain("flipp")


def test_options_are_named_where_a_metavar_could_be_taken_for_the_name():
    """As Typer 0.27 does: ``--device DEVICE`` would become ``--DEVICE``."""
    for parameter in parameters():
        option = parameter.annotation.__metadata__[0]
        named = option.metavar and parameter.name.upper() == option.metavar.upper()
        # Typer moves a name that is given alone from the default to the others.
        assert not named or str(option.default).startswith("--"), parameter.name

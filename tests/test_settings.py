"""Options and presets from the environment and from a project's file."""

from __future__ import annotations

from pathlib import Path

import pytest
import within
from test_cli import FLIP, contents, files_in, folder_of

from cvcli.cli.options import nbytes
from cvcli.cli.settings import load_settings
from cvcli.errors import UsageError
from cvcli.ops import parse_chain


def cvcli(*words, env=None):
    """Run the command, whatever it ends with."""
    done = within.cvcli(*words, code=None, env=env)
    done.stdout = done.stdout.decode()
    return done


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "in", "a.png", "b.png")
    return tmp_path


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(here):
    Path("cvcli.toml").write_text('format = "webp"\nquiet = true\ninclude = ["a*"]\n')
    assert cvcli(*FLIP, "in", "one").stderr == ""
    assert cvcli(*FLIP, "in", "two", env={"CVCLI_FORMAT": "tif"}).stderr == ""
    words = [*FLIP, "--format", "bmp", "--include", "b*", "in", "three"]
    assert cvcli(*words, env={"CVCLI_FORMAT": "tif"}).stderr == ""
    found = [files_in(here / name) for name in ("one", "two", "three")]
    assert found == [["a.webp"], ["a.tiff"], ["b.bmp"]]
    # Where they come from can be asked for.
    done = cvcli("config", env={"CVCLI_FORMAT": "tif"})
    assert 'format = "tif"  (CVCLI_FORMAT)\n' in done.stdout
    assert f"quiet = true  ({here / 'cvcli.toml'})\n" in done.stdout


def test_the_nearest_file_up_the_tree_counts(here, monkeypatch):
    (here / "a" / "b").mkdir(parents=True)
    Path("pyproject.toml").write_text("[tool.cvcli]\nthreads = 3\nskip-existing = true\n")
    Path("a/pyproject.toml").write_text("[tool.other]\nmax-pixels = 1\n")
    monkeypatch.chdir(here / "a" / "b")
    assert load_settings([], {}).values == {"jobs": 3, "skip_existing": True}
    Path("../cvcli.toml").write_text("max-pixels = 7\n")
    assert load_settings([], {}).values == {"max_pixels": 7}
    Path("../cvcli.toml").unlink(), Path("../../pyproject.toml").unlink()
    assert load_settings([], {}).values == {}


def test_a_choice_on_the_line_drops_the_other_choices_of_the_file(here):
    Path("cvcli.toml").write_text("overwrite = true\nmax-pixels = 7\n")
    assert load_settings(["flip", "--skip-existing"], {}).values == {"max_pixels": 7}
    assert load_settings(["flip"], {"CVCLI_IF_NEWER": "1"}).values == {
        "max_pixels": 7,
        "if_newer": True,
    }
    assert load_settings(["flip"], {"CVCLI_MAX_PIXELS": "9"}).values["overwrite"] is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qualitty = 3", "there is no option 'qualitty'"),
        ("in-place = true", "there is no option 'in-place'"),
        ('threads = "two"', "threads: must be a whole number, got 'two'"),
        ("threads = true", "threads: must be a whole number, got True"),
        ("overwrite = 1", "overwrite: must be true or false, got 1"),
        ('include = "*.png"', "include: must be a list of texts, got '*.png'"),
        ('progress = "bar"', "progress: must be one of auto, always, never, got 'bar'"),
        ("format = 3.5", "format: must be a text, got 3.5"),
        ("presets = 3", "presets must be a table of chains"),
        ("[presets]\na = 3", "preset a must be a text, got 3"),
        ("[presets]\n'a b' = 'invert'", "a preset must be named by one word, got 'a b'"),
        ("x = = 3", "cvcli.toml: "),
    ],
)
def test_a_file_that_is_wrong_is_named(here, text, said):
    Path("cvcli.toml").write_text(text)
    done = cvcli(*FLIP, "in", "out")
    assert done.returncode == 2 and said in done.stderr and "cvcli.toml" in done.stderr
    assert not Path("out").exists()
    for words in (["--version"], ["--help"], ["flip", "--help"], ["ops"]):
        assert cvcli(*words).returncode == 0  # nothing to do with it


@pytest.mark.parametrize(
    ("text", "tip"),
    [
        ("qualitty = 3", "did you mean quality?"),
        ("skip_existin = true", "did you mean skip-existing?"),
        ("thread = 3", "did you mean threads?"),
        ("[preset]\na = 'invert'", "did you mean presets?"),
        ("in-place = true", "it can be given on the command line only"),
        ("axis = 1", "what operators take stands in a preset: cvcli run :NAME"),
        ("median-blur = 3", "what operators take stands in a preset: cvcli run :NAME"),
    ],
)
def test_a_key_that_is_wrong_is_answered_with_the_right_one(here, text, tip):
    Path("cvcli.toml").write_text(text)
    assert cvcli(*FLIP, "in", "out").stderr.splitlines()[1:] == [f"tip: {tip}"]
    Path("cvcli.toml").unlink()
    table = text.replace("[preset]", "[tool.cvcli.preset]")
    Path("pyproject.toml").write_text(f"[tool.cvcli]\n{table}")
    assert cvcli(*FLIP, "in", "out").stderr.splitlines()[1:] == [f"tip: {tip}"]


def test_the_file_holds_no_table_of_its_own_name():
    Path("cvcli.toml").write_text("[tool.cvcli]\nthreads = 2\n")
    done = cvcli(*FLIP, "in", "out")
    assert "there is no option 'tool'" in done.stderr and "without [tool.cvcli]" in done.stderr
    Path("cvcli.toml").write_text("threads = 2\n")
    assert cvcli("config").stdout.startswith("threads = 2  (")


def test_what_can_not_be_read_is_said(here, monkeypatch):
    Path("cvcli.toml").write_bytes(b"\xff\xd8")
    done = cvcli(*FLIP, "in", "out")
    assert done.stderr == f"cvcli: {here / 'cvcli.toml'}: must be UTF-8 text\n"
    Path("gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    done = cvcli(*FLIP, here / "in", here / "out")
    assert done.returncode == 2 and done.stderr.startswith("cvcli: the working folder is gone\n")


def test_a_flag_of_the_file_can_be_taken_back(here):
    Path("cvcli.toml").write_text("overwrite = true\nquiet = true\nno-auto-orient = true\n")
    assert cvcli(*FLIP, "in", "out").returncode == 0
    for word in ("--overwrite=off", "--no-overwrite", "--overwrite=NO", "--overwrite=0"):
        done = cvcli(*FLIP, word, "in", "out")
        assert done.returncode == 1 and "output exists" in done.stderr, word
    # The last one counts, and a choice that is taken back leaves the file's others.
    for words in (["--no-overwrite", "--overwrite"], ["--check=no"], ["--overwrite=yes"]):
        assert cvcli(*FLIP, *words, "in", "out").returncode == 0, words
    done = cvcli(*FLIP, "--quiet=false", "--auto-orient", "in", "out")
    assert done.returncode == 0 and "2 images" in done.stderr


@pytest.mark.parametrize(
    ("variable", "text"), [("CVCLI_JOBS", "two"), ("CVCLI_QUIET", "maybe"), ("CVCLI_PROGRESS", "x")]
)
def test_a_variable_that_is_wrong_is_named(variable, text):
    done = cvcli(*FLIP, "in", "out", env={variable: text})
    assert done.returncode == 2 and f"cvcli: {variable}: must be " in done.stderr


def test_variables_that_are_no_options_are_let_alone():
    assert (
        load_settings([], {"CVCLI_CACHE_DIR": "x", "CVCLI_SIMD": "y", "CVCLI_QUIET": ""}).values
        == {}
    )


def test_sizes_may_be_numbers(here):
    Path("cvcli.toml").write_text("max-memory = 500000000\n")
    assert load_settings([], {}).values == {"max_memory": "500000000"}
    Path("cvcli.toml").write_text("max-memory = 9\n")
    done = cvcli(*FLIP, "in", "out")
    assert done.returncode == 2 and "must be at least 1M" in done.stderr


def test_presets_stand_for_steps(here):
    Path("pyproject.toml").write_text(
        "[tool.cvcli.presets]\n"
        'turn = "flip --axis -1"\n'
        'both = ":turn | invert"\n'
        'lines = """\n:turn |\n  invert  # twice\n"""\n'
    )
    for number, chain in enumerate([":both", ":turn | invert", "flip --axis -1|:none", ":lines"]):
        code = 2 if ":none" in chain else 0
        assert cvcli("run", chain, "-q", "in", f"out{number}").returncode == code
    wanted = contents(here / "out0")
    assert len(wanted) == 2
    assert contents(here / "out1") == wanted == contents(here / "out3")
    assert ':turn = "flip --axis -1"' in cvcli("config").stdout


PRESETS = {"thumb": "invert", "a": ":b", "b": "invert | :a", "c": "flip", "d": "invert |"}


@pytest.mark.parametrize(
    ("chain", "said", "tip"),
    [
        (":thmub", "there is no preset 'thmub'", "did you mean :thumb?"),
        ("thumb", "there is no operator 'thumb'", "did you mean :thumb?"),
        (":flip", "there is no preset 'flip'", "did you mean flip, which is an operator?"),
        (":xy", "there is no preset 'xy'", "the presets are :thumb, :a, :b, :c, :d"),
        (":a", "preset a: holds itself", None),
        ("invert | :c", "preset c: flip: axis must be given", None),
        (":d | invert", "preset d: there is no step after the last |", None),
        (":thumb --x 1", "preset thumb: takes no options, got '--x 1'", None),
    ],
)
def test_presets_that_can_not_be(chain, said, tip):
    with pytest.raises(UsageError) as caught:
        parse_chain(chain, presets=PRESETS)
    assert (str(caught.value), caught.value.tip) == (said, tip)


def test_presets_are_told_from_what_looks_like_them(here):
    with pytest.raises(UsageError, match="no preset 'thumb'") as caught:
        parse_chain(":thumb")
    assert "[tool.cvcli.presets]" in caught.value.tip
    with pytest.raises(UsageError, match="pad: border must be one of"):
        parse_chain("pad --border ':thumb'", presets=PRESETS)
    # A comment ends its own line only, and files hold presets too.
    wanted = parse_chain("flip --axis 1 | invert | invert")
    text = "flip --axis 1  # :no\n:thumb |\n:thumb"
    assert parse_chain(text, presets=PRESETS) == wanted
    Path("chain.txt").write_text("flip --axis 1\n:both\n")
    Path("cvcli.toml").write_text('[presets]\nboth = "invert | invert"\n')
    assert cvcli("run", "@chain.txt", "-q", "in", "out").returncode == 0
    assert cvcli("run", "flip --axis 1", "-q", "in", "one").returncode == 0
    assert contents(here / "out") == contents(here / "one")


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("500M", 500_000_000), ("2g", 2 * 10**9), ("1.5 KB", 1500), ("4MiB", 4 << 20)],
)
def test_sizes(text, size):
    assert nbytes(text, "--max-memory") == size


@pytest.mark.parametrize("text", ["", "M", "-1", "1X", "0", "1e9", "0.1", "3i"])
def test_sizes_that_are_none(text):
    with pytest.raises(UsageError, match="--max-memory: must be "):
        nbytes(text, "--max-memory")


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [
        ("cvcli fl", 1, "flip"),
        ("cvcli flip --skip", 2, "--skip-existing"),
        ("cvcli flip --axis 1 --thr", 4, "--threads"),
        ("cvcli crop --gravity cen", 3, "center"),
        ("cvcli flip --device cu", 3, "cuda:all"),
        ("cvcli ops inv", 2, "invert"),
    ],
)
def test_shells_are_told_what_may_follow(words, at, offered):
    asked = {"_CVCLI_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = cvcli(env=asked)
    assert offered in done.stdout.split() and done.stderr == ""


def test_shells_are_told_of_a_flag_once():
    asked = {"_CVCLI_COMPLETE": "complete_bash", "COMP_WORDS": "cvcli flip --", "COMP_CWORD": "2"}
    offered = cvcli(env=asked).stdout.split()
    assert "--overwrite" in offered and "--no-auto-orient" in offered
    assert not {"--no-overwrite", "--auto-orient"} & set(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(shell):
    done = cvcli(
        "--show-completion", shell, env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    )
    assert done.returncode == 0 and "_CVCLI_COMPLETE" in done.stdout

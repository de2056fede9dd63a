"""What becomes an input: patterns, lists, filters, hidden and linked files, content over suffix."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
import within
from conftest import noise
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from test_cli import FLIP, contents, files_in, folder_of, messages
from test_metadata import saved

from cvcli import codecs
from cvcli.batch.inputs import listed
from cvcli.batch.patterns import Filter, compiled, has_magic
from cvcli.batch.plan import make_plan
from cvcli.cli.app import run_app
from cvcli.errors import NoInputError, UsageError


def cvcli(*words, env=None):
    """Run the command, whatever it ends with."""
    done = within.cvcli(*words, code=None, env=env)
    done.stdout = done.stdout.decode()
    return done


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touch(*names):
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"x")


def png():
    file = io.BytesIO()
    Image.fromarray(noise((4, 5, 3), "uint8")).save(file, "PNG")
    return file.getvalue()


def planned(*inputs, output="out", **wishes):
    """Inputs to outputs, relative to the output folder."""
    made = make_plan([Path(path) for path in inputs], Path(output), **wishes)
    assert not made.problems
    return {str(job.input): str(job.output.relative_to(output)) for job in made.jobs}


TREE = ("in/a.png", "in/B.JPG", "in/x/c.png", "in/x/y/d.png", "in/.h/e.png", "in/.f.png")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("in/*.png", ["a.png"]),
        ("in/*", ["B.JPG", "a.png"]),
        ("in/?.png", ["a.png"]),
        ("in/[ab].*", ["a.png"]),
        ("in/[!a].*", ["B.JPG"]),
        ("in/**/*.png", ["a.png", "x/c.png", "x/y/d.png"]),
        ("in/**", ["B.JPG", "a.png", "x/c.png", "x/y/d.png"]),
        ("in/*/*.png", ["x/c.png"]),
        ("in/x/**/d.png", ["y/d.png"]),
        ("*/x/*.png", ["in/x/c.png"]),
        ("in/.*/*.png", [".h/e.png"]),
        ("in/.*.png", [".f.png"]),
        ("./in/*.png", ["a.png"]),
    ],
)
def test_patterns_are_expanded_here_too(pattern, found):
    touch(*TREE)
    assert list(planned(pattern).values()) == found
    assert list(planned(str(Path(pattern).absolute())).values()) == found


def test_a_file_whose_name_looks_like_a_pattern_is_that_file():
    touch("a[1].png", "a1.png", "[x.png")
    assert planned("a[1].png") == {"a[1].png": "a[1].png"}
    assert planned("[x.png") == {"[x.png": "[x.png"}


def test_a_pattern_that_matches_nothing_fails_beside_others_and_ends_alone():
    touch("in/a.png")
    made = make_plan([Path("in"), Path("in/*.gif")], Path("out"))
    assert [p.message for p in made.problems] == ["in/*.gif: matches no image files"]
    with pytest.raises(NoInputError, match=re.escape("in/*.gif: no image files found")):
        planned("in/*.gif")


def test_two_patterns_into_one_folder_take_a_file_once():
    touch(*TREE)
    assert list(planned("in/*.png", "in/*.JPG", "in/a*")) == ["in/a.png", "in/B.JPG"]


def test_what_a_shell_makes_of_a_pattern_may_hold_folders():
    touch(*TREE)
    assert list(planned("in/B.JPG", "in/a.png", "in/x").values()) == ["B.JPG", "a.png", "c.png"]


def test_patterns_follow_links_without_cycles():
    touch("in/x/a.png")
    os.symlink("..", "in/x/up")  # noqa: PTH211
    assert planned("in/**/*.png") == {"in/x/a.png": "x/a.png"}


NAMES = st.text("ab.-[]!*?", min_size=1, max_size=4)


@given(NAMES, NAMES.filter(lambda name: not name.startswith(".")))
def test_one_part_of_a_pattern_is_as_in_the_shell(pattern, name):
    if pattern.startswith(".") or "**" in pattern or "[]" in pattern or "[!" in pattern:
        return
    assert bool(compiled(pattern).fullmatch(name)) == fnmatchcase(name, pattern)


def test_what_has_no_magic_is_no_pattern():
    assert not has_magic("in/写真 {a}.png") and has_magic("in/*")


@pytest.mark.parametrize(
    ("include", "exclude", "found"),
    [
        (["*.png"], [], ["a.png", "x/c.png", "x/y/d.png"]),
        (["*.png", "*.JPG"], ["x"], ["B.JPG", "a.png"]),
        (["x/*.png"], [], ["x/c.png"]),
        (["x/**"], [], ["x/c.png", "x/y/d.png"]),
        ([], ["*.JPG", "x/y/"], ["a.png", "x/c.png"]),
        ([], ["/a.png"], ["B.JPG", "x/c.png", "x/y/d.png"]),
    ],
)
def test_include_and_exclude(include, exclude, found):
    touch(*TREE)
    wishes = {"include": tuple(include), "exclude": tuple(exclude), "recursive": True}
    assert list(planned("in", **wishes).values()) == found
    assert list(planned("in/a.png", include=("*.gif",))) == ["in/a.png"]  # named, so meant


def test_patterns_that_can_not_be_any():
    for text in ("", "/"):
        with pytest.raises(UsageError, match="is no pattern"):
            Filter([text])


def test_hidden_files_are_left_out_unless_asked_for():
    touch(*TREE)
    assert not any("/." in f"/{name}" for name in planned("in", recursive=True).values())
    shown = planned("in", recursive=True, hidden=True)
    assert {".f.png", ".h/e.png"} <= set(shown.values())


def test_content_tells_where_the_suffix_does_not():
    touch("in/notes", "in/a.bak")
    for name in ("in/noext", "in/b.dat"):
        Path(name).write_bytes(png())
    os.mkfifo("in/pipe")  # opening it would wait for ever
    assert planned("in") == {"in/noext": "noext"}
    assert planned("in", include=("*.dat",)) == {"in/b.dat": "b.dat"}
    assert planned("in/*") == {"in/b.dat": "b.dat", "in/noext": "noext"}


def psd():
    """A red square as Photoshop's smallest file: no layers, no compression."""
    size = (3).to_bytes(2, "big") + (8).to_bytes(4, "big") * 2
    planes = b"\xff" * 64 + bytes(128)
    return b"8BPS\0\1" + bytes(6) + size + b"\0\x08\0\x03" + bytes(12) + b"\0\0" + planes


def test_a_name_without_a_suffix_hides_no_image_of_a_sure_kind(here):
    kinds = {"JPEG": {}, "PNG": {}, "WEBP": {}, "TIFF": {"big_tiff": True}, "GIF": {}}
    kinds |= {"AVIF": {}, "BMP": {}, "JPEG2000": {"no_jp2": False}, "QOI": {}, "DDS": {}}
    files = {
        format: saved(Image.new("RGB", (8, 8), "red"), format, **kinds[format]) for format in kinds
    }
    files["J2K"] = saved(Image.new("RGB", (8, 8), "red"), "JPEG2000", no_jp2=True)
    files["NPY"] = codecs.encode(np.full((8, 8, 3), (255, 0, 0), np.uint8), "NPY")
    files["PSD"] = psd()
    texts = [b"BMW and other makers", b"qoif is not all that a file needs", b"GIF89b" + bytes(40)]
    texts += [
        b"8BPS once more, and more",
        b"P6 is what this says",
        bytes(40),
        b"BM",
        b"\0\0\1\0" * 9,
    ]
    (here / "in").mkdir()
    for name, data in files.items():
        Path("in", name).write_bytes(data)
    for number, data in enumerate(texts):
        Path(f"in/text{number}").write_bytes(data)
    assert sorted(planned("in")) == sorted(f"in/{name}" for name in files)
    assert run_app([*FLIP, "-q", "in", "out", "--format", "png"]) == 0
    with tarfile.open("in.tar", "w") as archive:
        archive.add("in")
    data = Path("in.tar").read_bytes()
    assert not within.cvcli(*FLIP, "-q", "-", "two", "--format", "png", data=data).stderr
    for folder, inside in (("out", ""), ("two", "in/")):
        assert files_in(here / folder) == sorted(f"{inside}{name}.png" for name in files)
        for name in files:
            pixels = np.asarray(Image.open(f"{folder}/{inside}{name}.png").convert("RGB"))
            assert abs(pixels.astype(int) - (255, 0, 0)).max() < 9, name


def test_a_wrong_suffix_is_read_by_content_and_keeps_its_name(here, capfd):
    (here / "in").mkdir()
    for name in ("x.jpg", "X.JPG", "noext"):
        Path("in", name).write_bytes(png())
    assert run_app([*FLIP, "-q", "--format", "png", "in/x.jpg", "in/noext", "out"]) == 0
    assert files_in(here / "out") == ["noext.png", "x.png"]
    for name in files_in(here / "out"):
        with Image.open(here / "out" / name) as image:
            assert image.format == "PNG"


@pytest.mark.parametrize("null", [False, True])
def test_lists_of_files(here, null):
    names = ["in/a b.png", "in/写真.png", os.fsdecode(b"in/\xff.png"), "in/[x].png"]
    names += ["in/new\nline.png"] if null else []
    touch(*names)
    data = (b"\0" if null else b"\n").join(map(os.fsencode, names))
    Path("list").write_bytes(data)
    assert listed("list", null=null) == names
    found = make_plan([], Path("out"), listed=names)
    assert [str(job.input) for job in found.jobs] == names


def test_a_list_from_stdin_and_a_base_to_mirror_from(here):
    folder_of(here / "in" / "x", "a.png")
    folder_of(here / "in" / "y", "a.png")
    names = b"in/x/a.png\nin/y/a.png\nin/gone.png\n"
    words = [*FLIP, "-q", "--files-from", "-", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "cvcli", *words], input=names, capture_output=True, check=False
    )
    assert done.returncode == 2 and b"two inputs would write it" in done.stderr
    Path("list").write_bytes(names)
    done = cvcli(*FLIP, "-q", "--files-from", "list", "--base", "in", "out")
    assert done.returncode == 1 and messages(done) == ["cvcli: in/gone.png: no such file"]
    assert files_in(here / "out") == ["x/a.png", "y/a.png"]
    done = cvcli(*FLIP, "in/x", "in/y/a.png", "--base", "in", "out2")
    assert done.returncode == 0 and files_in(here / "out2") == ["x/a.png", "y/a.png"]
    assert cvcli(*FLIP, "in/x/a.png", "--base", "in/y", "out3").returncode == 2
    assert cvcli(*FLIP, "--files-from", "nope", "out3").returncode == 2
    assert cvcli(*FLIP, "--files-from", "/dev/null", "out3").returncode == 66
    assert not Path("out3").exists()


def test_fifty_thousand_files_are_planned_fast_and_in_little_memory(here):
    (here / "in").mkdir()
    touch("in/0.png")
    for number in range(1, 50_000):
        os.link("in/0.png", f"in/{number}.png")
    code = (
        "import resource, time, sys\n"
        "from pathlib import Path\n"
        "from cvcli.batch.plan import make_plan\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "start = time.process_time()\n"
        "made = make_plan([Path('in')], Path('out'))\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(len(made.jobs), time.process_time() - start, peak / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, timeout=120
    )
    count, seconds, mib = done.stdout.split()
    shutil.rmtree(here / "in")
    assert int(count) == 50_000
    assert float(seconds) < 10 and float(mib) < 150


def test_an_output_folder_inside_the_input_is_never_read_again(here):
    folder_of(here / "in", "a.png")
    for _ in range(2):
        assert run_app([*FLIP, "-q", "--overwrite", "in/**/*.png", "in/out"]) == 0
        assert run_app([*FLIP, "-q", "-r", "--overwrite", "in", "in/out"]) == 0
    assert sorted(contents(here / "in")) == ["a.png", "out/a.png"]

"""What outputs are called, what existing ones mean, and changing files in place."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import within
from conftest import noise
from PIL import Image
from test_cli import FLIP, contents, files_in, folder_of, load, messages, save

from cvcli.batch import sinks
from cvcli.batch.plan import make_plan
from cvcli.batch.template import FIELDS
from cvcli.cli.app import run_app
from cvcli.errors import UsageError


def cvcli(*words, env=None):
    """Run the command, whatever it ends with."""
    done = within.cvcli(*words, code=None, env=env)
    done.stdout = done.stdout.decode()
    return done


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "in", "a.png", "b.jpg", "x/c.png")
    return tmp_path


def run(*words, code=0):
    assert run_app([str(word) for word in words]) == code


@pytest.mark.parametrize(
    ("template", "outputs"),
    [
        ("{stem}-{width}x{height}.{ext}", ["a-20x30.png", "b-20x31.jpg", "x/c-20x32.png"]),
        ("{index:03}_{name}", ["001_a.png", "002_b.jpg", "x/003_c.png"]),
        ("{parent}/{stem}.{ext}", ["in/a.png", "in/b.jpg", "x/x/c.png"]),
        ("{stem}.webp", ["a.webp", "b.webp", "x/c.webp"]),
        ("{{{stem}}}.{ext}", ["x/{c}.png", "{a}.png", "{b}.jpg"]),
        ("{stem}", ["a", "b", "x/c"]),
    ],
)
def test_templates_name_outputs(here, template, outputs):
    run("rotate", "--angle", 90, "-q", "-r", "--name", template, "in", "out")
    assert files_in(here / "out") == sorted(outputs)
    for name in outputs:
        assert load(here / "out" / name).shape[1] == 20


def test_a_template_goes_with_a_format(here):
    run(*FLIP, "-q", "--name", "{stem}_.{ext}", "--format", "webp", "in", "out")
    assert files_in(here / "out") == ["a_.webp", "b_.webp"]
    run(*FLIP, "--name", "{stem}.png", "--format", "webp", "in", "out", code=2)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{stm}.{ext}", "there is no field {stm}"),
        ("{}.png", "there is no field {}"),
        ("{stem.__class__}", "there is no field {stem.__class__}"),
        ("{stem!r}.png", "{stem} can't be written as asked"),
        ("{stem:>9}.png", "{stem} can't be written as asked"),
        ("{index:999}.png", "{index} can't be written as asked"),
        ("{index:x}.png", "{index} can't be written as asked"),
        ("{stem", "in '{stem'"),
        ("", "must be the name of a file"),
        ("{stem}/", "must be the name of a file"),
        ("same.png", "2 inputs would write it".replace("2", "two")),
        ("{stem}.psd", ".psd files can be read, but not written"),
    ],
)
def test_templates_that_make_no_sense(here, template, said, capfd):
    run(*FLIP, "--name", template, "in", "out", code=2)
    shown = capfd.readouterr().err
    assert said in shown and not Path("out").exists()
    if "no field" in said:
        assert all(field in shown for field in FIELDS)


def test_a_template_and_a_file_for_output_contradict(here):
    run(*FLIP, "--name", "{stem}.png", "in/a.png", "b.png", code=2)
    assert not Path("b.png").exists()


@pytest.mark.parametrize("template", ["../{name}", "/{name}", "{parent}/../../{name}", "./{name}"])
def test_no_template_leaves_the_output_folder(here, template):
    made = make_plan([Path("in/a.png")], Path("out"), name=template)
    assert not made.jobs and "no place below the output folder" in made.problems[0].reason


def test_names_with_sizes_that_clash_are_refused_before_anything_is_written(here, capfd):
    save(here / "in" / "d.png", noise((20, 30, 3), "uint8"))
    run(*FLIP, "--name", "{width}.{ext}", "in", "out", code=2)
    assert "two inputs would write it (in/a.png, in/d.png)" in capfd.readouterr().err
    assert not Path("out").exists()


def test_names_with_sizes_leave_out_what_can_not_be_read(here):
    Path("in/bad.png").write_bytes(b"no image at all")
    done = cvcli(*FLIP, "-q", "--name", "{stem}-{width}.{ext}", "in", "out")
    assert done.returncode == 1 and len(messages(done)) == 1
    assert "in/bad.png: not an image" in done.stderr
    assert files_in(here / "out") == ["a-30.png", "b-31.jpg"]
    crop = ["crop", "--width", "99", "--height", "1", "--name", "{width}.{ext}"]
    assert run_app([*crop, "in", "out2"]) == 2 and not Path("out2").exists()


def test_dry_run_knows_names_with_sizes(here, capfd):
    run(*FLIP, "--dry-run", "--name", "{width}.{ext}", "in", "out")
    rows = json.loads(capfd.readouterr().out)["images"]
    assert [row["output"] for row in rows] == ["out/30.png", "out/31.jpg"]


# Outputs that exist


def test_if_newer_redoes_what_is_older_than_its_input(here):
    run(*FLIP, "-q", "in", "out")
    before = contents(here / "out")
    os.utime("in/a.png", ns=(0, 5 * 10**9))
    os.utime("out/a.png", ns=(0, 5 * 10**9))
    save(here / "in" / "b.jpg", noise((8, 9, 3), "uint8", 7))
    os.utime("out/b.jpg", ns=(0, 10**9))
    done = cvcli("invert", "-v", "--if-newer", "in", "out")
    assert done.returncode == 0 and "out/a.png exists, skipped" in done.stderr
    after = contents(here / "out")
    assert after["a.png"] == before["a.png"] and load("out/b.jpg").shape == (8, 9, 3)


DECISIONS = ["--overwrite", "--skip-existing", "--if-newer", "--in-place", "--check"]


@pytest.mark.parametrize("other", DECISIONS[1:])
def test_only_one_decision_about_existing_outputs(here, other, capfd):
    before = contents(here)
    run(*FLIP, "--overwrite", other, "in", "in", code=2)
    assert "only one of them can be given" in capfd.readouterr().err
    assert contents(here) == before


def test_preserve_keeps_time_and_permissions(here):
    os.utime("in/a.png", ns=(0, 1_234_567_890_123_456_789))
    Path("in/a.png").chmod(0o640)
    run(*FLIP, "-q", "--preserve", "in/a.png", "out")
    found = Path("out/a.png").stat()
    assert (found.st_mtime_ns, stat.S_IMODE(found.st_mode)) == (1_234_567_890_123_456_789, 0o640)
    run(*FLIP, "-q", "in/a.png", "out2")
    assert Path("out2/a.png").stat().st_mtime_ns != 1_234_567_890_123_456_789


# In place


def test_in_place_replaces_the_inputs(here):
    wanted = {name: load(here / "in" / name)[:, ::-1] for name in ("a.png", "x/c.png")}
    Path("in/a.png").chmod(0o600)
    run("flip", "--axis", 1, "-q", "-r", "--in-place", "in")
    assert files_in(here / "in") == ["a.png", "b.jpg", "x/c.png"]
    for name, pixels in wanted.items():
        assert np.array_equal(load(here / "in" / name), pixels)
    assert stat.S_IMODE(Path("in/a.png").stat().st_mode) == 0o600


@pytest.mark.parametrize(("option", "suffix"), [("--backup", "~"), ("--backup=.orig", ".orig")])
def test_backups_keep_the_originals(here, option, suffix):
    before = contents(here / "in")
    run(*FLIP, "-q", "--in-place", option, "in")
    after = contents(here / "in")
    assert {name for name in after if name.endswith(suffix)} == {f"a.png{suffix}", f"b.jpg{suffix}"}
    for name in ("a.png", "b.jpg"):
        assert after[name + suffix] == before[name] != after[name]
    # Backups are never inputs, and never lost to a second run.
    done = cvcli(*FLIP, "-q", "--in-place", option, "in")
    assert done.returncode == 1 and contents(here / "in") == after
    assert messages(done) == [
        f"cvcli: in/{name}{suffix}: backup exists" for name in ("a.png", "b.jpg")
    ]


def test_backups_where_there_are_no_hard_links(here, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    before = contents(here / "in")
    monkeypatch.setattr(os, "link", refuse)
    run(*FLIP, "-q", "--in-place", "--backup", "in/a.png")
    assert contents(here / "in")["a.png~"] == before["a.png"]


def test_a_link_is_followed_in_place_and_stays_a_link(here):
    Path("link.png").symlink_to("in/a.png")
    wanted = load("in/a.png")[::-1, ::-1]
    run(*FLIP, "-q", "--in-place", "link.png")
    assert Path("link.png").is_symlink() and np.array_equal(load("in/a.png"), wanted)
    run(*FLIP, "--in-place", "link.png", "in/a.png", code=2)  # the same file twice


def test_what_fails_in_place_stays_as_it_was(here):
    bad = Path("in/a.png").read_bytes()[:500]
    Path("in/a.png").write_bytes(bad)
    os.utime("in/a.png", ns=(0, 10**9))
    done = cvcli(*FLIP, "-q", "--in-place", "--backup", "in")
    assert done.returncode == 1 and Path("in/a.png").read_bytes() == bad
    assert Path("in/a.png").stat().st_mtime_ns == 10**9
    assert files_in(here / "in") == ["a.png", "b.jpg", "b.jpg~", "x/c.png"]


def test_a_file_changed_meanwhile_is_not_replaced(here, monkeypatch, capfd):
    real = sinks.refuse_changed

    def changed(path, stamp):
        if path.name == "a.png":
            path.write_bytes(b"written by someone else")
        real(path, stamp)

    monkeypatch.setattr(sinks, "refuse_changed", changed)
    run(*FLIP, "-q", "--in-place", "--backup", "in", code=1)
    assert "in/a.png: was changed meanwhile, so it is left as it is" in capfd.readouterr().err
    assert Path("in/a.png").read_bytes() == b"written by someone else"
    assert not Path("in/a.png~").exists() and Path("in/b.jpg~").exists()


@pytest.mark.parametrize(
    "words",
    [["--format", "png"], ["--name", "{stem}.png"], ["--base", "in"], ["--backup=a/b"]],
)
def test_in_place_keeps_names_and_formats(here, words, capfd):
    before = contents(here)
    run(*FLIP, "--in-place", *words, "in", code=2)
    assert contents(here) == before and words[0].split("=")[0] in capfd.readouterr().err


def test_a_backup_is_for_in_place_only(here):
    run(*FLIP, "--backup", "in", "out", code=2)
    with pytest.raises(UsageError, match="--in-place"):
        make_plan([Path("in")], Path("out"), backup="~")


# Check


def test_check_finds_nothing_after_a_run_and_writes_nothing(here):
    run(*FLIP, "-q", "-r", "in", "out")
    before = contents(here)
    done = cvcli(*FLIP, "--check", "-q", "-r", "in", "out")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert contents(here) == before


def test_check_lists_what_differs_is_missing_or_broken(here):
    run(*FLIP, "-q", "-r", "in", "out")
    save(here / "in" / "d.png", noise((4, 5, 3), "uint8"))
    pixels = load("out/a.png").copy()
    pixels[3, 7, 1] ^= 1
    save(here / "out" / "a.png", pixels)
    Path("out/b.jpg").write_bytes(b"gone bad")
    Path("out/x/c.png").write_bytes(Path("out/a.png").read_bytes())
    before = contents(here)
    done = cvcli(*FLIP, "--check", "-q", "-r", "in", "out")
    assert done.returncode == 1 and contents(here) == before
    said = messages(done)
    assert len(said) == 4
    assert said[0] == "cvcli: out/a.png: differs in 1 of 600 pixels, the first at x=7, y=3"
    assert said[1].startswith("cvcli: out/b.jpg: can't be compared: not an image")
    assert said[2] == "cvcli: out/d.png: output is missing"
    assert said[3].startswith("cvcli: out/x/c.png: differs: it is ")


def test_check_looks_at_pixels_and_not_at_bytes(here):
    run(*FLIP, "-q", "in/a.png", "out")
    pixels = load("out/a.png")
    save(here / "out" / "a.png", pixels, compress_level=0)
    run(*FLIP, "-q", "--check", "in/a.png", "out")
    run("invert", "-q", "--check", "in/a.png", "out", code=1)


def test_check_looks_at_every_picture(here):
    Path("in/anim.png").unlink(missing_ok=True)
    frames = [Image.fromarray(noise((8, 9, 3), "uint8", n)) for n in range(3)]
    for name, last in (("one", frames[2]), ("two", frames[0])):
        Path(name).mkdir()
        frames[0].save(f"{name}/a.tif", save_all=True, append_images=[frames[1], last])
    run(*FLIP, "-q", "one", "out")
    run(*FLIP, "-q", "--check", "one", "out")
    done = cvcli(*FLIP, "-q", "--check", "two", "out")
    assert done.returncode == 1 and "out/a.tif: frame 2 differs in " in done.stderr

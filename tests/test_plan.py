"""What goes where: every rule of the plan, on real files."""

# ruff: noqa: PTH211

import os
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvcli.batch.plan import Job, Plan, make_plan
from cvcli.errors import EXIT_NO_INPUT, NoInputError, UsageError

WRITABLE = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WEBP"}
READ_ONLY = ".psd"


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def touch(*names: str) -> list[Path]:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"x")
    return [Path(name) for name in names]


def plan(*inputs: str | Path, output: str = "out", **options: object) -> Plan:
    return make_plan([Path(path) for path in inputs], Path(output), **options)


def pairs(made: Plan) -> dict[str, str]:
    return {str(job.input): str(job.output) for job in made.jobs}


def refusal(*inputs: str | Path, **options: object) -> UsageError:
    before = snapshot()
    with pytest.raises(UsageError) as caught:
        plan(*inputs, **options)
    assert snapshot() == before
    assert "\n" not in str(caught.value)
    return caught.value


def snapshot() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*"))


def test_folder_is_taken_by_suffix_in_order_and_nothing_is_made():
    touch("in/b.png", "in/a.JPG", "in/notes.txt", "in/.hidden.png", "in/sub/c.png")
    before = snapshot()
    made = plan("in")
    assert made.jobs == (
        Job(0, Path("in/a.JPG"), Path("out/a.JPG"), "JPEG", by_suffix=True),
        Job(1, Path("in/b.png"), Path("out/b.png"), "PNG", by_suffix=True),
    )
    assert (made.skipped, made.problems, made.output_root) == ((), (), Path("out"))
    assert snapshot() == before


def test_recursive_mirrors_the_tree_without_hidden_folders():
    touch("in/x/a.png", "in/y/a.png", "in/x/z/b.png", "in/.git/a.png", "in/x/._a.png")
    assert pairs(plan("in", recursive=True)) == {
        "in/x/a.png": "out/x/a.png",
        "in/x/z/b.png": "out/x/z/b.png",
        "in/y/a.png": "out/y/a.png",
    }


def test_order_is_that_of_inputs_and_then_of_path_parts():
    touch("in/a/z.png", "in/a-b.png", "z.png", "in/b.png")
    made = plan("z.png", "in", recursive=True)
    assert [str(job.input) for job in made.jobs] == [
        "z.png",
        "in/a/z.png",
        "in/a-b.png",
        "in/b.png",
    ]
    assert [job.index for job in made.jobs] == [0, 1, 2, 3]


def test_named_files_are_taken_whatever_their_suffix():
    touch("noext", "photo.dat", ".h.png", "-r.jpg")
    made = plan("noext", "photo.dat", ".h.png", "-r.jpg")
    assert [job.output.name for job in made.jobs] == ["noext", "photo.dat", ".h.png", "-r.jpg"]
    assert [job.format for job in made.jobs] == [None, None, "PNG", "JPEG"]


@pytest.mark.parametrize("output", ["b.jpg", "new/b.JPG", "sub/../b.jpeg"])
def test_one_file_to_one_file(output):
    touch("a.png", "sub/x")
    made = plan("a.png", "./a.png", output=output)
    assert made.jobs == (Job(0, Path("a.png"), Path(output), "JPEG"),)
    assert made.output_root == Path(output).parent


def test_one_output_file_must_be_of_a_format_that_can_be_written():
    touch("a.png")
    assert ".psd" in str(refusal("a.png", output="b.psd"))
    assert "'xyz'" in str(refusal("a.png", format="xyz"))
    # --format says what a suffix can't, but doesn't contradict one.
    made = plan("a.png", output="b.psd", format="png")
    assert made.jobs == (Job(0, Path("a.png"), Path("b.psd"), "PNG"),)
    assert "JPEG" in str(refusal("a.png", output="b.jpg", format="png"))


def test_an_existing_folder_named_like_an_image_is_a_folder():
    touch("a.png")
    Path("out.png").mkdir()
    assert pairs(plan("a.png", output="out.png")) == {"a.png": "out.png/a.png"}
    assert pairs(plan("a.png", output="v1.2")) == {"a.png": "v1.2/a.png"}


@pytest.mark.parametrize("format", ["jpg", "JPEG", ".jpeg", "Jpg"])
def test_format_replaces_image_suffixes_and_keeps_the_same_format(format):
    touch("a.png", "b.jpeg", "c.JPG", "d.2024", "noext", "e.psd", ".png")
    made = plan("a.png", "b.jpeg", "c.JPG", "d.2024", "noext", "e.psd", ".png", format=format)
    assert [job.output.name for job in made.jobs] == [
        *("a.jpg", "b.jpeg", "c.JPG", "d.2024.jpg", "noext.jpg", "e.jpg", ".png.jpg")
    ]
    assert {job.format for job in made.jobs} == {"JPEG"}


def test_format_that_can_only_be_read_is_a_problem_for_that_file():
    touch("in/a.psd", "in/b.png")
    made = plan("in")
    (problem,) = made.problems
    assert (problem.input, problem.output, problem.index) == (Path("in/a.psd"), None, 0)
    assert ".psd" in problem.reason and "--format" in problem.tip
    assert [job.index for job in made.jobs] == [1]


def test_a_file_mentioned_twice_is_one_job_and_the_first_mention_wins():
    touch("in/a.png", "in/sub/b.png")
    os.symlink("in", "link")
    made = plan("in/sub/b.png", "in", "link", "in/../in/a.png", "link/a.png", recursive=True)
    assert pairs(made) == {"in/sub/b.png": "out/b.png", "in/a.png": "out/a.png"}


def test_collision_is_refused_and_names_both_inputs():
    touch("in/a.png", "in/a.bmp")
    error = refusal("in", format="jpg", overwrite=True)
    assert str(error) == "out/a.jpg: two inputs would write it (in/a.bmp, in/a.png)"
    assert error.tip


def test_three_collisions_are_shown_of_many():
    touch(*(f"in/{i}{suffix}" for i in range(5) for suffix in (".png", ".bmp", ".jpg")))
    message = str(refusal("in", format="webp"))
    assert message.count("3 inputs would write it") == 3
    assert message.endswith("and 2 more such outputs")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a/A.png", "b/A.png"),
        ("a/A.png", "b/a.PNG"),
        ("a/X/a.png", "b/x/a.png"),
        ("a/\u00e9.png", "b/e\u0301.png"),
        ("a/\u00c9.png", "b/e\u0301.png"),
        ("a/STRASSE.png", "b/stra\u00dfe.png"),
    ],
)
def test_names_that_some_file_system_takes_for_one_collide(one, other):
    touch(one, other)
    message = str(refusal("a", "b", recursive=True))
    assert "two inputs" in message and one in message and other in message


def test_an_output_can_not_be_a_file_and_a_folder():
    touch("x", "in/x/y/a.png")
    message = str(refusal("x", "in", recursive=True))
    assert message.startswith("out/x: would be a file and a folder (x, in/x/y/a.png)")


def test_missing_and_unfit_inputs_fail_alone():
    touch("a.png")
    os.symlink("gone", "broken.png")
    made = plan("nope.png", "broken.png", "/dev/null", "a.png")
    assert made.jobs == (Job(3, Path("a.png"), Path("out/a.png"), "PNG", by_suffix=True),)
    assert [(problem.index, problem.output, problem.message) for problem in made.problems] == [
        (0, None, "nope.png: no such file"),
        (1, None, "broken.png: broken link"),
        (2, None, "/dev/null: not a regular file"),
    ]


def test_unreadable_folder_is_a_problem(monkeypatch):
    touch("in/a.png", "in/sub/b.png")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    made = plan("in", recursive=True)
    assert pairs(made) == {"in/a.png": "out/a.png"}
    assert made.problems[0].message == "in/sub: permission denied"


def test_unfit_files_in_a_folder_are_problems_not_silence():
    touch("in/a.png")
    os.symlink("gone", "in/b.png")
    os.mkfifo("in/c.png")
    os.symlink("a.png", "in/d.png")
    made = plan("in")
    assert pairs(made) == {"in/a.png": "out/a.png", "in/d.png": "out/d.png"}
    assert [p.reason for p in made.problems] == ["broken link", "not a regular file"]


@pytest.mark.parametrize("names", [("in/t.txt",), ("in/.a.png",), ("in/.h/a.png",)])
def test_nothing_found_is_an_error_of_its_own(names):
    touch(*names)
    with pytest.raises(NoInputError, match="in: no image files found") as caught:
        plan("in", recursive=True)
    assert caught.value.exit_code == EXIT_NO_INPUT


def test_nothing_found_points_to_sub_folders():
    touch("in/x/a.png")
    assert "-r" in refusal("in").tip
    assert isinstance(refusal(), NoInputError)


def test_existing_output_needs_a_decision():
    touch("in/a.png", "in/b.png", "out/a.png")
    made = plan("in")
    assert [p.message for p in made.problems] == ["out/a.png: output exists"]
    assert "--overwrite" in made.problems[0].tip and "--skip-existing" in made.problems[0].tip
    assert pairs(made) == {"in/b.png": "out/b.png"}
    assert len(plan("in", overwrite=True).jobs) == 2
    assert "--skip-existing" in str(refusal("in", overwrite=True, skip_existing=True))
    resumed = plan("in", skip_existing=True)
    assert resumed.skipped == (Job(0, Path("in/a.png"), Path("out/a.png"), "PNG", by_suffix=True),)
    assert resumed.jobs == (Job(1, Path("in/b.png"), Path("out/b.png"), "PNG", by_suffix=True),)


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"skip_existing": True}])
@pytest.mark.parametrize("output", ["in", "out/../in", "./in/", "link"])
def test_an_input_is_never_an_output(options, output):
    touch("in/a.png", "out/x")
    os.symlink("in", "link")
    error = refusal("in/a.png", output=output, **options)
    assert "in/a.png: input would be overwritten" in str(error)
    assert error.tip


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_an_input_is_not_overwritten_through_a_link(link):
    touch("in/a.png")
    Path("out").mkdir()
    link(Path("in/a.png").absolute(), "out/b.png")
    assert "overwritten" in str(refusal("in/a.png", output="out/b.png", overwrite=True))


def test_an_output_may_not_be_another_input():
    touch("x/a.png", "in/a.jpg", "z/a.png")
    assert pairs(plan("z", output="z", format="jpg")) == {"z/a.png": "z/a.jpg"}
    Path("y").mkdir()
    os.link("in/a.jpg", "y/c.jpg")
    error = refusal("x/a.png", "y/c.jpg", output="in", format="jpg", overwrite=True)
    assert str(error) == "y/c.jpg: input would be overwritten (by output in/a.jpg)"


def test_output_folder_inside_the_input_is_not_read_again():
    touch("in/a.png", "in/sub/b.png", "in/out/a.png", "in/out/sub/b.png")
    made = plan("in", output="in/out", recursive=True, skip_existing=True)
    assert made.jobs == ()
    assert [str(job.output) for job in made.skipped] == ["in/out/a.png", "in/out/sub/b.png"]


def test_linked_folders_are_followed_without_cycles():
    touch("in/x/a.png", "elsewhere/b.png")
    os.symlink("..", "in/x/up")
    os.symlink("x", "in/also_x")
    os.symlink("../elsewhere", "in/more")
    os.symlink("..", "elsewhere/back")
    made = plan("in", recursive=True)
    assert pairs(made) == {"in/x/a.png": "out/x/a.png", "in/more/b.png": "out/more/b.png"}


def test_what_stands_at_an_output_is_a_problem_even_with_overwrite():
    touch("in/a.png", "in/b.png", "in/sub/c.png", "in/d.png", "out/sub")
    Path("out/a.png").mkdir()
    os.mkfifo("out/b.png")
    os.symlink("gone", "out/d.png")
    made = plan("in", recursive=True, overwrite=True)
    assert [p.message for p in made.problems] == [
        "out/a.png: a folder has the output's name",
        "out/b.png: not a regular file",
        "out/sub/c.png: a parent of it is not a folder",
    ]
    assert pairs(made) == {"in/d.png": "out/d.png"}
    assert plan("in").problems[2].message == "out/d.png: output exists"


def test_too_long_a_name_is_a_problem():
    (name,) = touch("n" * 251 + ".png")
    made = plan(name, format="jpeg", output="o")
    assert len(made.jobs) == 1
    touch("out/x")
    (name,) = touch("n" * 251 + ".bmp")
    assert plan(name, format="webp").problems[0].reason == "file name too long"


def test_folder_is_needed_for_outputs():
    touch("a.png", "b.png", "plain", "old.jpg")
    os.symlink("gone", "broken")
    os.mkfifo("fifo")
    for output in ("plain", "plain/sub", "plain/sub/c.jpg", "broken", "fifo"):
        assert "folder is needed" in str(refusal("a.png", output=output))
    assert "folder is needed" in str(refusal("a.png", "b.png", output="old.jpg"))


def test_output_like_a_file_for_several_inputs():
    touch("in/a.png", "b.png")
    error = refusal("in/a.png", "b.png", output="new.jpg")
    assert str(error) == "new.jpg: looks like a file, but 2 inputs were given"
    assert error.tip
    assert "a folder was given" in str(refusal("in", output="new.jpg"))


@pytest.mark.parametrize(("output", "named"), [("out/deep/er", "out"), ("out", "it")])
def test_unwritable_output_folder_is_refused(monkeypatch, output, named):
    touch("a.png", "out/x")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and real(path, mode))
    message = str(refusal("a.png", output=output))
    assert message.startswith(f"{output}: no permission") and message.endswith(named)


def test_names_that_are_not_utf8():
    raw = b"in/\xff\xfe.png"
    touch(os.fsdecode(raw), "in/写真 é.png")
    made = plan("in", format="jpg")
    outputs = {os.fsencode(job.output) for job in made.jobs}
    assert outputs == {b"out/\xff\xfe.jpg", "out/写真 é.jpg".encode()}


NAMES = st.text("aAbB.é\u0301ß", min_size=1, max_size=3).filter(lambda s: set(s) != {"."})
FILES = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
TREES = st.lists(
    st.tuples(FILES, st.sampled_from([".png", ".JPG", ".bmp", ".txt", "", ".psd"])), max_size=8
)


@settings(max_examples=150, deadline=None)
@given(TREES, st.sampled_from([None, "jpg", "png"]), st.booleans())
def test_random_trees_mirror_into_distinct_places_or_are_refused(tree, format, recursive):
    with tempfile.TemporaryDirectory() as folder:
        root, out = Path(folder, "in"), Path(folder, "out")
        root.mkdir()
        for name, suffix in tree:
            try:
                touch(str(root / (name + suffix)))
            except OSError:  # the name is a folder already, or the other way round
                continue
        expected = expected_names(root, format, recursive)
        folded = {fold(name) for name in expected.values()}
        blocked = {fold(str(up)) for name in expected.values() for up in Path(name).parents}
        try:
            made = make_plan([root], out, format=format, recursive=recursive)
        except NoInputError:
            assert not expected
        except UsageError:
            assert len(folded) < len(expected) or folded & blocked
        else:
            assert len(folded) == len(expected) and not folded & blocked
            got = {str(job.input.relative_to(root)): job.output for job in made.jobs}
            assert got == {name: out / new for name, new in expected.items()}
            indexes = [job.index for job in made.jobs] + [p.index for p in made.problems]
            assert sorted(indexes) == list(range(len(made)))


def fold(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def expected_names(root: Path, format: str | None, recursive: bool) -> dict[str, str]:
    """The rule said again, the slow and plain way."""
    names = {}
    for path in root.rglob("*") if recursive else root.glob("*"):
        relative = path.relative_to(root)
        if not path.is_file() or any(part.startswith(".") for part in relative.parts):
            continue
        own = path.suffix.lower()
        wanted = own if format is None else f".{format}"
        if own in WRITABLE and WRITABLE[own] == WRITABLE[wanted]:
            names[str(relative)] = str(relative)
        elif format and own in {*WRITABLE, READ_ONLY}:
            names[str(relative)] = str(relative.with_suffix(wanted))
    return names

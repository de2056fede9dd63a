"""``cvcli bench``: what it prints; no test looks at how fast anything is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from cvcli.cli import bench
from cvcli.cli.app import run_app
from cvcli.core.spec import ImageSpec
from cvcli.devices import open_device
from cvcli.errors import OutOfMemoryError
from cvcli.ops import names, operator_named, parse_chain

SMALL = ["bench", "--device", "cpu", "--size", "32x24", "--repeat", "3"]
COLUMNS = ["operator", "dtype", "ms", "spread", "GB/s", "x copy", "host us"]


@pytest.fixture(autouse=True)
def small_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_AHEAD_NBYTES", {"cpu": 1 << 16, "cuda": 1 << 20})


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run_app([*SMALL, "--json", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    report: dict[str, Any] = json.loads(out)
    return report


def test_every_operator_is_timed_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    report = _json(capsys)
    assert {row["operator"].split()[0].replace("-", "_") for row in report["rows"]} == set(names())
    assert report["schema_version"] == bench.SCHEMA_VERSION
    assert report["device"] == "cpu"
    assert report["device_name"] == report["machine"]["processor"]
    assert (report["batch"], report["threads"], report["repeat"]) == (1, 1, 3)
    assert report["errors"] == []


def test_a_row_holds_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = _json(capsys, "flip")["rows"]
    assert set(row) == {
        "operator", "dtype", "channels", "us", "nbytes", "copy_us", "host_us", "gb_per_s",
        "ratio_to_copy",
    }  # fmt: skip
    assert set(row["us"]) == set(row["copy_us"]) == {"median", "low", "high"}
    assert row["us"]["low"] <= row["us"]["median"] <= row["us"]["high"]
    assert row["nbytes"] == 2 * 32 * 24 * 3
    assert row["ratio_to_copy"] == row["us"]["median"] / row["copy_us"]["median"]


def test_dtypes_channels_batch_and_chains(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--dtype", "float32", "--dtype", "uint16", "--channels", "4", "--batch", "2"]
    report = _json(capsys, *words, "invert", "--chain", "flip --axis -1 | invert")
    shown = [(row["operator"], row["dtype"], row["channels"]) for row in report["rows"]]
    assert shown == [
        (name, dtype, 4)
        for dtype in ("float32", "uint16")
        for name in ("invert", "flip --axis -1 | invert")
    ]
    samples = 2 * 2 * 32 * 24 * 4
    assert [row["nbytes"] for row in report["rows"][::2]] == [4 * samples, 2 * samples]


def test_plain_table_when_it_is_no_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cvcli", *SMALL, "flip", "crop"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    title, head, *rows = done.stdout.splitlines()
    assert "1 x 32x24" in title
    assert [word.strip() for word in head.split("  ") if word] == COLUMNS
    assert [row.split()[0] for row in rows] == ["flip", "crop"]
    assert len({len(line) for line in [head, *rows]}) == 1


def test_rich_table_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    assert run_app([*SMALL, "flip"]) == 0
    assert "─" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["flipp"], "tip: did you mean flip?"),
        (["--chain", "flipp"], "tip: did you mean flip?"),
        (["flip", "--size", "32"], "--size must be WIDTHxHEIGHT, got '32'"),
        (["flip", "--size", "0x5"], "--size must be WIDTHxHEIGHT, got '0x5'"),
        (["flip", "--dtype", "int8"], "--dtype must be one of uint8, uint16, float32, got 'int8'"),
        (["flip", "--device", "tpu"], "device must be auto, cpu, cuda or cuda:N, got 'tpu'"),
        (["flip", "--device", "cuda", "--threads", "2"], "--threads must go with --device cpu"),
    ],
)
def test_wrong_requests(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app([*SMALL, *words]) != 0
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""


def test_an_operator_that_fails_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = bench.measure

    def measure(name: str, *args: Any) -> bench.Row:
        if name.startswith("flip"):
            raise OutOfMemoryError("cpu: no room")
        return real(name, *args)

    monkeypatch.setattr(bench, "measure", measure)
    assert run_app([*SMALL, "--json", "flip", "invert"]) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert [row["operator"] for row in report["rows"]] == ["invert"]
    assert report["errors"] == ["cpu: no room"]
    assert err == "cvcli: cpu: no room\n"


def test_threads_are_set_and_put_back() -> None:
    device: Any = open_device("cpu")
    with bench._cpu_threads(None):
        pass
    before = getattr(device, "threads", None)
    with bench._cpu_threads(7):
        assert device.threads == 7
    if before is not None:
        assert device.threads == before


@pytest.mark.parametrize(
    ("chain", "pixels"),
    [
        ("flip --axis -1", 2 * 12 * 10),
        ("crop --width 6 --height 5", 2 * 6 * 5),
        ("crop --width 6 --height 5 | invert | flip --axis 0", 2 * 6 * 5),
        ("pad --left 3", 12 * 10 + 15 * 10),
        ("crop --width 2 --height 2 | pad --left 4 --border wrap", 4 + 12),
    ],
)
def test_bytes_that_must_be_moved(chain: str, pixels: int) -> None:
    plan = parse_chain(chain).plan(ImageSpec(10, 12, 3, "uint16"))
    assert bench.must_move(plan) == pixels * 6


def test_typical_parameters_fit_the_image() -> None:
    spec = ImageSpec(100, 200, 3, "uint8")
    assert str(bench.typical(operator_named("crop"), spec)) == "crop --width 100 --height 50"
    for name in names():
        bench.typical(operator_named(name), ImageSpec(1, 1, 1, "uint8"))


def test_spread_is_the_middle_half() -> None:
    assert bench.spread([1, 2, 3, 4, 5]) == bench.Spread(3, 2, 4)
    assert bench.Spread(4, 3, 5).share == 0.5


@pytest.mark.parametrize("queued", [True, False])
def test_more_bytes_written_than_read(queued: bool) -> None:
    inputs = bench.Inputs("cpu", ImageSpec(4, 4, 1, "uint8"), 1)
    chain = parse_chain("pad --left 100 --top 100")
    row = bench.measure("pad", chain, inputs, 2, queued=queued)
    assert row.nbytes == 16 + 104 * 104


@pytest.mark.gpu
def test_on_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "flip", "invert", "--json", "--size", "256x256", "--repeat", "5"]
    assert run_app(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["device"] == "cuda:0"
    assert report["batch"] == 16
    assert len(report["rows"]) == 2
    assert "threads" not in report


def test_what_calls_take_on_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    report = _json(capsys, "--host")
    calls = ["flip(x, -1)", "flip(x, -1, out=y)", "as_tensor(numpy_array)", "numpy.asarray(x)"]
    assert [row["call"] for row in report["rows"]] == calls
    assert (report["size"], report["device"], report["repeat"]) == ("224x224", "cpu", 3)
    for row in report["rows"]:
        assert 0 < row["us"]["low"] <= row["us"]["median"] <= row["us"]["high"]
    assert run_app([*SMALL, "--host"]) == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert "host time of one call" in title and head.split() == ["call", "us", "low", "high"]
    assert len(rows) == 4 and len({len(line) for line in [head, *rows]}) == 1
    for words in (["--host", "flip"], ["--host", "--chain", "flip --axis 0"]):
        assert run_app([*SMALL, *words]) == 2
        assert "--host must be without" in capsys.readouterr().err


@pytest.mark.gpu
def test_what_calls_take_on_the_host_of_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["bench", "--host", "--device", "cuda", "--repeat", "3", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    calls = ["flip(x, -1)", "flip(x, -1, out=y)", "as_tensor(cupy_array)", "cupy.asarray(x.cuda())"]
    assert [row["call"] for row in report["rows"]] == calls

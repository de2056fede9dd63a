"""What a person sees, all of it on stderr: progress, the summary, errors."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cvcli.batch.report import HOST_STAGES, Report, Row
from cvcli.errors import EXIT_PIPE, CvcliError

if TYPE_CHECKING:
    from rich.console import Console


# A name may hold anything but NUL; what would break the line or steer the terminal is escaped.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


def say(text: str) -> None:
    """Print one line on stderr; bytes of a name that are not text are shown escaped."""
    if sys.stderr is None:
        return
    line = text.translate(_CONTROL)
    data = f"{line}\n".encode(sys.stderr.encoding or "utf-8", errors="backslashreplace")
    sys.stderr.flush()
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()


def emit(text: str) -> None:
    """Print data on stdout; a reader that has left ends the command quietly."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
        rest = memoryview(
            text.encode(sys.stdout.encoding or "utf-8", sys.stdout.errors or "strict")
        )
        while rest:
            # Unbuffered, it takes what it likes, and its own way to write text drops the rest.
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        raise SystemExit(EXIT_PIPE) from None


def silence_stdout() -> None:
    """Send what is left to nowhere: Python would complain again when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(error: CvcliError) -> None:
    """Print an error in one line, and its tip in another."""
    say(f"cvcli: {error}")
    if error.tip:
        say(f"tip: {error.tip}")


def stderr_console() -> Console:
    """Return Rich's console on stderr; it follows NO_COLOR and the terminal's width."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


# No log needs a line more often than this.
_LINE_EVERY_S = 10.0


class Screen:
    """Progress while a run goes on, and its summary; ``total`` is None where it isn't known."""

    def __init__(self, total: int | None, progress: str, *, quiet: bool, verbose: bool) -> None:
        self._total, self._quiet, self.verbose = total, quiet, verbose
        self._bar: Any = None
        self._shown: set[int] = set()
        self._told = 0
        wanted = (progress == "always" or (progress == "auto" and not quiet)) and total != 1
        self._wanted = wanted and _on_terminal()
        # Where there is no terminal to redraw a bar on, a line now and then will do.
        self._lines = wanted and not _on_terminal()
        self._every = 0.0 if progress == "always" else _LINE_EVERY_S
        self._tenths, self._last = 0, time.monotonic()

    def __enter__(self) -> Screen:
        if self._wanted:
            self._bar = _progress_bar()
            self._task = self._bar.add_task("", total=self._total, rate="0.0 images/s")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tick(self, report: Report) -> None:
        """Bring the bar and, if asked for, the list of files up to date."""
        if not self._quiet:
            # The summary will need it, and this thread has nothing else to do meanwhile.
            import rich.table  # noqa: F401
        done = report.images + report.failed + report.skipped
        if self._bar is not None:
            rate = f"{_per(report, done):.1f} images/s"
            self._bar.update(self._task, completed=done, rate=rate)
        if self._lines:
            self._tell(report, done)
        if self.verbose:
            self._list(report)

    def _tell(self, report: Report, done: int) -> None:
        """Print a line at each tenth of the images, not too often."""
        now = time.monotonic()
        tenths = 10 * done // self._total if self._total else self._tenths + bool(done)
        late = now - self._last >= (self._every if self._total else _LINE_EVERY_S)
        if tenths <= self._tenths or not late:
            return
        self._tenths, self._last = tenths, now
        rate = _per(report, done)
        text = f"{done} images" if self._total is None else f"{done} of {self._total} images"
        left = f", {(self._total - done) / rate:.0f} s left" if self._total and rate else ""
        say(f"{text}, {rate:.1f} images/s{left}")

    def summary(self, report: Report, *, interrupted: bool) -> None:
        """Print the failures and notes, and unless quiet the table of timings."""
        if self.verbose:
            self._list(report)
        if not self._quiet and sys.stderr is not None:
            _print_table(report)
            for note in report.told():
                say(f"note: {note}")
        for row in report.failures:
            say(f"cvcli: {row.error}")
        for tip in dict.fromkeys(row.tip for row in report.failures if row.tip):
            say(f"tip: {tip}")
        left = report.left
        if interrupted or left:
            why = "interrupted" if interrupted else f"stopped after {_failures(report)}"
            say(f"cvcli: {why}, {left} of {len(report.rows)} images were not done")

    def _list(self, report: Report) -> None:
        rows = report.rows.settled(self._told)
        self._told += len(rows)
        for row in sorted(rows, key=lambda row: row.index):
            if row.index not in self._shown:
                self._shown.add(row.index)
                say(_line(row))


def _per(report: Report, done: int) -> float:
    return done / report.wall_s if report.wall_s > 0 else 0.0


def _failures(report: Report) -> str:
    return "the first failure" if report.failed == 1 else f"{report.failed} failures"


def _line(row: Row) -> str:
    if row.status == "failed":
        return f"failed: {row.error}"
    if row.status == "skipped":
        return f"{row.output} exists, skipped"
    size = f"{row.width_in}x{row.height_in} -> {row.width_out}x{row.height_out}"
    more = f" and {len(row.outputs) - 1} more" if row.outputs else ""
    return f"{row.input} -> {row.output}{more} ({size}, {sum(row.ms.values()):.1f} ms)"


def _on_terminal() -> bool:
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return terminal and os.environ.get("TERM") != "dumb"


def _progress_bar() -> Any:
    from rich import progress

    return progress.Progress(
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=stderr_console(),
        transient=True,
    )


def _print_table(report: Report) -> None:
    from rich import box
    from rich.table import Table

    console = stderr_console()
    console.print(_headline(report), style="bold", soft_wrap=True, markup=False)
    if not report.images:
        return
    table = Table(box=box.SIMPLE)
    table.add_column("stage")
    for name in ("busy", "share", "GB/s"):
        table.add_column(name, justify="right")
    for stage in report.stages():
        device = stage.name not in HOST_STAGES
        rate = f"{stage.gb_per_s:.2f}" if device and stage.gb_per_s else ""
        table.add_row(stage.name, f"{stage.busy_s:.3f} s", f"{stage.share:.0%}", rate)
    console.print(table)


def _headline(report: Report) -> str:
    plural = "image" if report.images == 1 else "images"
    counts = [f"{report.images} {plural}", f"{report.failed} failed"]
    if report.skipped:
        counts.append(f"{report.skipped} skipped")
    rates = f"{report.images_per_s:.1f} images/s, {report.mb_per_s:.1f} MB/s"
    where = f" on {report.device}" if report.device else ""
    return f"{', '.join(counts)} in {report.wall_s:.2f} s{where}: {rates}"

"""What a person sees, all of it on stderr: progress, the summary, errors."""

from __future__ import annotations

import os
import sys
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
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_PIPE) from None


def print_error(error: CvcliError) -> None:
    """Print an error in one line, and its tip in another."""
    say(f"cvcli: {error}")
    if error.tip:
        say(f"tip: {error.tip}")


def stderr_console() -> Console:
    """Return Rich's console on stderr; it follows NO_COLOR and the terminal's width."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


class Screen:
    """Progress while a run goes on, and its summary."""

    def __init__(self, total: int, progress: str, *, quiet: bool, verbose: bool) -> None:
        self._total, self._quiet, self._verbose = total, quiet, verbose
        self._bar: Any = None
        self._shown: set[int] = set()
        wanted = progress == "always" or (progress == "auto" and not quiet)
        self._wanted = wanted and total > 1 and _on_terminal()
        # Where there is no terminal to redraw a bar on, a line every tenth will do.
        self._lines = progress == "always" and total > 1 and not _on_terminal()
        self._tenths = 0

    def __enter__(self) -> Screen:
        if self._wanted:
            self._bar = _progress_bar()
            self._task = self._bar.add_task("", total=self._total)
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
            self._bar.update(self._task, completed=done)
        if self._lines and 10 * done // self._total > self._tenths:
            self._tenths = 10 * done // self._total
            say(f"{done} of {self._total} images")
        if self._verbose:
            self._list(report)

    def summary(self, report: Report, *, interrupted: bool) -> None:
        """Print the failures and notes, and unless quiet the table of timings."""
        if self._verbose:
            self._list(report)
        if not self._quiet and sys.stderr is not None:
            _print_table(report)
            for note in [*report.notes, *_image_notes(report)]:
                say(f"note: {note}")
        for row in report.failures:
            say(f"cvcli: {row.error}")
        for tip in dict.fromkeys(row.tip for row in report.failures if row.tip):
            say(f"tip: {tip}")
        left = self._total - report.images - report.failed - report.skipped
        if interrupted or left:
            why = "interrupted" if interrupted else "stopped at the first failure"
            say(f"cvcli: {why}, {left} of {self._total} images were not done")

    def _list(self, report: Report) -> None:
        for row in report.rows:
            if row.index not in self._shown and row.status in ("ok", "skipped"):
                self._shown.add(row.index)
                say(_line(row))


def _line(row: Row) -> str:
    if row.status == "skipped":
        return f"{row.output} exists, skipped"
    size = f"{row.width_in}x{row.height_in} -> {row.width_out}x{row.height_out}"
    return f"{row.input} -> {row.output} ({size}, {sum(row.ms.values()):.1f} ms)"


def _image_notes(report: Report) -> list[str]:
    return [f"{row.input}: {note}" for row in report.rows for note in row.notes]


def _on_terminal() -> bool:
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return terminal and os.environ.get("TERM") != "dumb"


def _progress_bar() -> Any:
    from rich import progress

    return progress.Progress(
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
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

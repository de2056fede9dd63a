"""Tables of figures: with lines on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cvcli.cli.console import emit


def print_table(
    title: str, head: Sequence[str], cells: Sequence[Sequence[str]], *, names: int
) -> None:
    """Print rows of cells; the first ``names`` columns are words, the others figures."""
    if sys.stdout.isatty():
        _print_rich(title, head, cells, names)
        return
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = [title]
    for line in [head, *cells]:
        sized = list(zip(line, widths, strict=True))
        left = [word.ljust(w) for word, w in sized[:names]]
        right = [word.rjust(w) for word, w in sized[names:]]
        lines.append("  ".join(left + right))
    emit("\n".join(lines) + "\n")


def _print_rich(
    title: str, head: Sequence[str], cells: Sequence[Sequence[str]], names: int
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE)
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number < names else "right")
    for line in cells:
        table.add_row(*line)
    Console(highlight=False).print(table)

"""The command run inside the test's own process, which saves the start of one."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from dataclasses import dataclass

from cvcli.cli.app import run_app


@dataclass
class Done:
    """How a command ended; stdout as bytes, stderr as text."""

    returncode: int
    stdout: bytes
    stderr: str


def cvcli(*words, data=b"", code=0, env=None):
    """Run the command with bytes on stdin; it must end with ``code``, unless that is None."""
    streams = sys.stdin, sys.stdout, sys.stderr
    before = dict(os.environ)
    os.environ.update({"CUDA_VISIBLE_DEVICES": ""} | (env or {}))
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(data)
        source.seek(0)
        said = io.BytesIO()
        sys.stdin, sys.stdout = io.TextIOWrapper(source), io.TextIOWrapper(target)
        sys.stderr = io.TextIOWrapper(said, "utf-8", errors="surrogateescape")
        try:
            ended = run_app([os.fspath(word) for word in words])
            sys.stdout.flush(), sys.stderr.flush()
            target.seek(0)
            printed = target.read()
            sys.stdin.detach(), sys.stdout.detach(), sys.stderr.detach()
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            os.environ.clear(), os.environ.update(before)
    shown = said.getvalue().decode(errors="surrogateescape")
    assert code in (ended, None), shown
    return Done(ended, printed, shown)

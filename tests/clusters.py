"""A Dask scheduler and its workers for the tests, in processes of their own.

    python tests/clusters.py WORKERS

prints the scheduler's address and ends, with its workers, when its stdin is closed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from cvcli.batch.sources import Files


class Fatal(Files):
    """Reads files, but for those called ``fatal``, which end the process."""

    def read(self, job):
        if job.input.stem == "fatal":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(job)


class Cluster:
    """A running scheduler; leaves nothing behind once it is closed."""

    def __init__(self, workers):
        own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, str(Path(__file__)), str(workers)]
        self._process = subprocess.Popen(command, env=own, **pipes)
        self.address = self._process.stdout.readline().decode().strip()

    def kill(self):
        """End the scheduler at once; its workers end by themselves."""
        self._process.kill()
        self._process.communicate(timeout=60)

    def close(self):
        self._process.communicate(timeout=60)


def main():
    import dask

    from cvcli.batch.early import prepare
    from cvcli.batch.schedulers import connected

    address = f"local:{sys.argv[1]}"
    prepare(address)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        connected(address, "cpu") as (client, _),
    ):
        print(client.scheduler.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()

"""Dask schedulers: one that runs somewhere, or one that is started here with its workers."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cvcli.devices.find import gpu_count
from cvcli.errors import DeviceError, UsageError

_TIP = "pip install 'cvcli[dask]'"
_CONNECT_S = 10.0
# Workers may still be on their way when a job starts.
_JOIN_S = 60.0
_METHOD = "distributed.worker.multiprocessing-method"
_SETTINGS = {
    # What Dask watches for its dashboard costs more than small images do.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": "30s",
}


def local_workers(address: str) -> int | None:
    """Return N for ``local:N``, None for another address; raise `UsageError` for no number."""
    if not address.startswith("local:") and address != "local":
        return None
    found = re.fullmatch(r"local:([1-9]\d{0,3})", address, re.ASCII)
    if found is None:
        raise UsageError(f"--cluster: must be local:N with N >= 1, got {address!r}")
    return int(found[1])


@contextmanager
def connected(address: str, device: str) -> Iterator[tuple[Any, dict[str, int]]]:
    """Connect to a scheduler: gives the client, and what each piece of work takes of a worker.

    With a GPU named as the device, workers must offer one: ``dask worker --resources "GPU=1"``.
    """
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise UsageError("--cluster: Dask is not installed", tip=_TIP) from None
    resources = {"GPU": 1} if device.startswith("cuda") else {}
    count = local_workers(address)
    with ExitStack() as stack:
        stack.enter_context(_silence())
        if count is not None:
            method = "spawn" if sys.platform == "win32" else "forkserver"
            stack.enter_context(dask.config.set(_SETTINGS | {_METHOD: method}))
            target = stack.enter_context(_local(count, resources))
        else:
            target = address
        client = stack.enter_context(_client(Client, target, address))
        _wait_for_workers(client, resources, count or 1)
        yield client, resources


@contextmanager
def _silence() -> Iterator[None]:
    """Keep Dask from telling in the middle of the progress bar what is told in its place."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _client(kind: Any, target: Any, address: str) -> Iterator[Any]:
    options: dict[str, Any] = {"set_as_default": False, "timeout": _CONNECT_S}
    if isinstance(target, str) and target.endswith(".json"):
        if not Path(target).is_file():  # Dask would wait for it without end
            raise UsageError(f"--cluster: {target}: no such file")
        target, options = None, options | {"scheduler_file": target}
    try:
        client = kind(target, **options)
    except (OSError, ValueError, TypeError) as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise DeviceError(f"--cluster: {address} can't be reached ({words[0]})") from None
    try:
        yield client
    finally:
        client.close(timeout=2)


def _wait_for_workers(client: Any, resources: dict[str, int], count: int) -> None:
    """Wait until there are workers that can do the work."""
    end = time.monotonic() + _JOIN_S
    able = 0
    while able < count:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        able = sum(resources.items() <= known.get("resources", {}).items() for known in workers)
        if able >= count:
            return
        if workers and resources and not able:
            tip = 'start them with --resources "GPU=1"'
            raise DeviceError("--cluster: no worker offers a GPU", tip=tip)
        if time.monotonic() > end:
            raise DeviceError(f"--cluster: no workers have joined within {_JOIN_S:.0f} s")
        time.sleep(0.02)


@contextmanager
def _local(count: int, resources: dict[str, int]) -> Iterator[Any]:
    """Start a scheduler in this process and workers in others, of one thread each."""
    from distributed import Nanny, Scheduler, SpecCluster

    gpus = max(1, gpu_count())
    with tempfile.TemporaryDirectory(prefix="cvcli-cluster-", ignore_cleanup_errors=True) as folder:
        common = {
            "host": "127.0.0.1",
            "nthreads": 1,
            "memory_limit": 0,  # a run bounds its memory itself
            "local_directory": folder,
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",
            "silence_logs": logging.CRITICAL,
            "resources": resources,
        }
        workers = {
            number: {"cls": Nanny, "options": common | {"env": _environment(number % gpus)}}
            for number in range(count)
        }
        options = {"host": "127.0.0.1", "port": 0, "dashboard": False}
        options |= {"dashboard_address": "127.0.0.1:0"}
        cluster = SpecCluster(
            workers=workers,
            scheduler={"cls": Scheduler, "options": options},
            silence_logs=logging.CRITICAL,
        )
        try:
            yield cluster
        finally:
            cluster.close(timeout=10)


def _environment(gpu: int) -> dict[str, str]:
    """Return what a worker's process is told: which of this machine's GPUs is its own."""
    shown = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if not gpu_count():
        return {}
    return {"CUDA_VISIBLE_DEVICES": shown[gpu] if gpu < len(shown) else str(gpu)}

"""How much memory is in use and kept for reuse, and how to give it back."""

from __future__ import annotations

from dataclasses import dataclass

from cvcli.core.engine import Engine, engine_of, engines
from cvcli.devices import default_device_name
from cvcli.devices.find import parse_device
from cvcli.errors import ParameterError


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Bytes of one device: our tensors', those kept for reuse, and the device's own figures.

    ``staging`` is the host memory that copies to and from a GPU go through, in use and kept; on
    the CPU it is part of the rest. ``limit`` bounds what is kept, of each of the two kinds.
    """

    device: str
    in_use: int
    held: int
    staging: int
    limit: int
    free: int
    total: int


def memory_info(device: str | None = None) -> MemoryInfo:
    """Return what a device's memory is used for, by default the default device's."""
    engine = _engine(device)
    free, total = engine.device.memory_info()
    pool, staging = engine.memory, engine.staging
    extra = 0 if staging is pool else staging.used + staging.held
    return MemoryInfo(
        engine.device.name, pool.used, pool.held, extra, pool.limit, free=free, total=total
    )


def free_memory(device: str | None = None) -> int:
    """Give all memory that is kept for reuse back to one device, or to all that were used.

    Waits for the last use of it. Returns the bytes given back; tensors keep theirs.
    """
    chosen = engines() if device is None else [_engine(device)]
    return sum(engine.release() for engine in chosen)


def set_pool_limit(nbytes: int, device: str | None = None) -> None:
    """Bound the bytes kept for reuse on a device, by default the default one; 0 keeps nothing.

    What is idle above the limit is given back at once. By default it is half of a GPU's memory
    or 256 MiB of the host's, or what ``CVCLI_POOL_BYTES`` says. Raises `ParameterError`.
    """
    if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes < 0:
        raise ParameterError(f"set_pool_limit: nbytes must be an integer >= 0, got {nbytes!r}")
    engine = _engine(device)
    for pool in {engine.memory, engine.staging}:
        pool.trim(nbytes)


def _engine(device: str | None) -> Engine:
    return engine_of(default_device_name() if device is None else parse_device(device))

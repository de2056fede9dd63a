"""How much memory a run may fill, and the batches that are made of it."""

from __future__ import annotations

from collections.abc import Callable

from cvcli.batch.device import DeviceStage
from cvcli.batch.options import Options
from cvcli.batch.slots import Batch, Way
from cvcli.core.engine import engine_of
from cvcli.core.spec import ImageSpec
from cvcli.errors import OutOfMemoryError

_MIB = 1 << 20
# Pixels in flight for each worker, before and after the chain: more than this is slower, as it no
# longer fits the caches. Larger images still keep every worker busy, with one each.
_WORKER_NBYTES = 16 * _MIB
_BATCH_NBYTES = {"cpu": 8 * _MIB, "cuda": 32 * _MIB}
# Thousands of tiny images would fit a batch, and none would be written before it is full.
_BATCH_IMAGES = {"cpu": 64, "cuda": 4096}
# What a GPU adds to that: batches on their way to it and back.
_DEVICE_NBYTES = {"cpu": 0, "cuda": 192 * _MIB}
# Files that the GPU decodes together: more of them are hardly faster, but are in memory for longer.
_CODED_IMAGES, _CODED_NBYTES = 32, 256 * _MIB


class Rooms:
    """Makes batches for a run of ``jobs`` workers; ``stage`` is asked for once there is one."""

    def __init__(self, jobs: int, options: Options, stage: Callable[[], DeviceStage]) -> None:
        self._jobs, self._options, self._stage = jobs, options, stage

    def budget(self) -> int:
        """Return the bytes that may be in flight before no more images are started."""
        stage = self._stage()
        engine = stage.ready()
        kind = engine.device.kind if engine is not None else "cpu"
        wanted = self._jobs * _WORKER_NBYTES + stage.count * _DEVICE_NBYTES[kind]
        return min(wanted, self._options.max_memory or wanted)

    def new_batch(self, spec: ImageSpec, way: Way) -> Batch:
        """Return an empty batch for images like one of ``spec`` that take a way."""
        if way.data is not None:
            room = max(spec.nbytes, _CODED_NBYTES)
            return Batch(None, self._options.batch_size or _CODED_IMAGES, room)
        engine = self._stage().ready() or engine_of("cpu")
        size, limit = _BATCH_NBYTES[engine.device.kind], self._options.batch_size
        if limit is not None:
            size = max(size, limit * spec.nbytes)
        # On many cores a batch grows with what is in flight: fewer of them cost less to run.
        size = max(spec.nbytes, min(max(size, self.budget() // 8), self.budget() // 2))
        try:
            arena = engine.allocate_staging(size)
        except OutOfMemoryError:
            arena = engine_of("cpu").allocate_staging(size)
        return Batch(arena, limit or _BATCH_IMAGES[engine.device.kind], arena.nbytes)

"""Batch image processing on the GPU and on the CPU, with the same bytes.

    import cvcli
    out = cvcli.flip(cvcli.as_tensor(array, "NHWC"), -1)

One function an operator, plus `Tensor`, `Stream`, `Event`, `as_tensor`, `as_stream`,
`parse_chain` with `apply` to run what it returns, `capture` to repeat a sequence of operators
cheaply, `memory_info`, `free_memory` and `set_pool_limit`, and `CvcliError`, which all errors are;
all are imported on first use.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvcli.core.apply import apply
    from cvcli.core.capture import Graph, capture
    from cvcli.core.interop import as_tensor
    from cvcli.core.stream import Event, Stream, as_stream
    from cvcli.core.tensor import Tensor
    from cvcli.core.usage import MemoryInfo, free_memory, memory_info, set_pool_limit
    from cvcli.errors import CvcliError
    from cvcli.ops import parse_chain

__version__ = "0.1.0"
__all__ = [
    "CvcliError",
    "Event",
    "Graph",
    "MemoryInfo",
    "Stream",
    "Tensor",
    "apply",
    "as_stream",
    "as_tensor",
    "capture",
    "free_memory",
    "memory_info",
    "parse_chain",
    "set_pool_limit",
]

_HOMES = {
    "CvcliError": "cvcli.errors",
    "Event": "cvcli.core.stream",
    "Graph": "cvcli.core.capture",
    "MemoryInfo": "cvcli.core.usage",
    "Stream": "cvcli.core.stream",
    "Tensor": "cvcli.core.tensor",
    "apply": "cvcli.core.apply",
    "as_stream": "cvcli.core.stream",
    "as_tensor": "cvcli.core.interop",
    "capture": "cvcli.core.capture",
    "free_memory": "cvcli.core.usage",
    "memory_info": "cvcli.core.usage",
    "parse_chain": "cvcli.ops",
    "set_pool_limit": "cvcli.core.usage",
}


def __getattr__(name: str) -> Any:
    value = _find(name)
    globals()[name] = value
    return value


def _find(name: str) -> Any:
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    # Asked for every submodule too, so look before importing what operators need.
    if not name.startswith("_") and (_Path(__file__).parent / "ops" / f"{name}.py").is_file():
        from cvcli.ops import operator_named

        return operator_named(name)
    raise AttributeError(f"module 'cvcli' has no attribute {name!r}")


def __dir__() -> list[str]:
    from cvcli.ops._registry import names

    return sorted([*__all__, *names(), "__version__"])

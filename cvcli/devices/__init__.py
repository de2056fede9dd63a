"""Devices: where memory lives and kernels run. They see pointers and handles, never a Tensor."""

from cvcli.devices.base import Device, Functor, Kernel, Launch
from cvcli.devices.find import default_device_name, gpu_count, open_device

__all__ = [
    "Device",
    "Functor",
    "Kernel",
    "Launch",
    "default_device_name",
    "gpu_count",
    "open_device",
]

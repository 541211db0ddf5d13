"""Work on any XPU (a GPU, an accelerator, or the CPU itself), and exactly what happened and how long it took.

Importing opens no driver and starts no thread; the first use of a device does. Errors are `xpu.Error` and its subclasses. `xpu.profiler`
records what this process does.
"""

from . import profiler
from ._core import Buffer, DeviceProperties, ExportSummary, Stream, Uuid, is_available, is_initialized
from ._core import version as _version
from ._devices import (
    Device,
    current_device,
    current_stream,
    default_stream,
    device_count,
    get_device_name,
    get_device_properties,
    init,
    mem_get_info,
    set_device,
    synchronize,
)
from ._doctor import Doctor, doctor
from ._errors import (
    DeviceLostError,
    Error,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfDeviceMemoryError,
    OutOfHostMemoryError,
    OutOfMemoryError,
    TimeoutError,
    UnavailableError,
    UnsupportedError,
)
from ._paths import cmake_prefix, include_dir, library_path, program_path

__version__ = _version()

__all__ = [
    "Buffer",
    "Device",
    "DeviceLostError",
    "DeviceProperties",
    "Doctor",
    "Error",
    "ExportSummary",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfDeviceMemoryError",
    "OutOfHostMemoryError",
    "OutOfMemoryError",
    "Stream",
    "TimeoutError",
    "UnavailableError",
    "UnsupportedError",
    "Uuid",
    "cmake_prefix",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "doctor",
    "get_device_name",
    "get_device_properties",
    "include_dir",
    "init",
    "is_available",
    "is_initialized",
    "library_path",
    "mem_get_info",
    "profiler",
    "program_path",
    "set_device",
    "synchronize",
]

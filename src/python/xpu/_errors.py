"""What the package raises. The class says what the caller can do, the text what happened."""

import builtins
from typing import ClassVar


class Error(RuntimeError):
    """A failure of libxpu. `native_code` is what the driver returned, 0 when none was involved: for reports only."""

    code: ClassVar[str] = ""
    native_code: int = 0


class InvalidArgumentError(Error, ValueError):
    """Fix the call: an argument was outside what is allowed."""

    code = "invalid_argument"


class FailedPreconditionError(Error):
    """Do something else first."""

    code = "failed_precondition"


class NotFoundError(Error):
    """The named thing does not exist here."""

    code = "not_found"


class UnsupportedError(Error, NotImplementedError):
    """This driver or device cannot do it, now or later."""

    code = "unsupported"


class UnavailableError(Error):
    """Not now: a driver is missing, a file cannot be written, or the process was forked after initialisation."""

    code = "unavailable"


class OutOfMemoryError(Error, MemoryError):
    """Free memory and try again; what was there is intact."""


class OutOfHostMemoryError(OutOfMemoryError):
    """Memory of the host."""

    code = "out_of_host_memory"


class OutOfDeviceMemoryError(OutOfMemoryError):
    """Memory of the device."""

    code = "out_of_device_memory"


class DeviceLostError(Error):
    """It stays so: the device must be opened again, by another process."""

    code = "device_lost"


class TimeoutError(Error, builtins.TimeoutError):
    """Wait longer, or give up; nothing was changed."""

    code = "timeout"


class InternalError(Error):
    """A bug of libxpu or of the driver: report it."""

    code = "internal"


_CLASSES = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        FailedPreconditionError,
        NotFoundError,
        UnsupportedError,
        UnavailableError,
        OutOfHostMemoryError,
        OutOfDeviceMemoryError,
        DeviceLostError,
        TimeoutError,
        InternalError,
    )
}


def make_error(code: str, message: str, native_code: int) -> Error:
    """The exception that a failure of the library becomes; called by the binary module."""
    error = _CLASSES.get(code, InternalError)(message)
    error.native_code = native_code
    return error

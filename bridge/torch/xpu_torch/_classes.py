"""The bases that torch.xpu derives Stream, Event and XPUGraph from. PyTorch's generic classes do the work, through the device's guard."""
import torch

from . import _native

GRAPHS_ARE_MISSING = "graphs are not there yet on this device: run the work itself instead of capturing it"


def checked_stream(stream):
    """The stream. Raises TypeError for anything else."""
    if not isinstance(stream, torch.Stream):
        raise TypeError(f"expected a torch.Stream or torch.xpu.Stream, but got {type(stream).__name__}")
    return stream


class StreamBase(torch.Stream):
    """A new stream of the current device, or the one that there is by this id."""

    def __new__(cls, priority=0, stream_id=0, device_index=0, device_type=0, stream_ptr=0):
        if stream_id or device_index or device_type:
            return super().__new__(cls, stream_id=stream_id, device_index=device_index, device_type=device_type)
        return super().__new__(cls, device=torch.device("xpu", _native.get_device()), priority=priority)

    @property
    def sycl_queue(self):
        """The address by which the driver knows it."""
        return self.native_handle

    @property
    def priority(self):
        """-1 high, 0 normal, 1 low."""
        return _native.stream_priority(self.stream_id, self.device_index)

    @staticmethod
    def priority_range():
        """The least and the greatest priority."""
        return (1, -1)


class EventBase(torch.Event):
    """Without a device until it is recorded, as torch.xpu.Event wants it."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
        if interprocess:
            raise NotImplementedError("events cannot be shared between processes on this device")
        return super().__new__(cls, device="xpu", enable_timing=enable_timing, blocking=blocking)

    # PyTorch's own methods take whatever they get for a stream.
    def record(self, stream):
        """Captures the end of this stream."""
        super().record(checked_stream(stream))

    def wait(self, stream):
        """What is submitted to this stream from now on waits."""
        super().wait(checked_stream(stream))

    def elapsed_time(self, end_event):
        """Milliseconds on the device's clock from this event to `end_event`."""
        return _native.elapsed_time(self, end_event)

    @property
    def device(self):
        """None until it is recorded."""
        return super().device if self.event_id else None

    @property
    def sycl_event(self):
        """The address by which the runtime knows it; 0 until it is recorded."""
        return self.event_id


class Graph:
    """torch.xpu.XPUGraph: not there yet."""

    def __new__(cls, *arguments, **options):
        raise NotImplementedError(GRAPHS_ARE_MISSING)

"""The binary module: what the package needs of libxpu."""

from typing import final

from typing_extensions import Buffer as BytesLike

error_codes: tuple[str, ...]

def version() -> str: ...
def initialize() -> None: ...
def is_initialized() -> bool:
    """Whether the runtime has started; False in a forked child of a process in which it has."""

def is_in_bad_fork() -> bool:
    """Whether this process was forked from one whose runtime had started."""

def is_available() -> bool:
    """Whether there is a device. Initialises nothing, never raises."""

def device_count() -> int: ...
def device_properties(device: int) -> DeviceProperties: ...
def device_driver(device: int) -> str: ...
def current_device() -> int: ...
def set_device(device: int) -> None: ...
def synchronize(device: int) -> None: ...
def memory_info(device: int) -> tuple[int, int]: ...
def describe_runtime() -> RuntimeReport: ...
def current_stream(device: int) -> Stream: ...
def default_stream(device: int) -> Stream: ...
def push_range(name: str) -> None: ...
def pop_range() -> None: ...
def mark(name: str) -> None: ...
def counter(name: str, value: float) -> None: ...
def capabilities() -> list[tuple[str, bool, str]]: ...
@final
class Uuid:
    """16 bytes that name a device for good: the same in every process and after every start."""

    @property
    def bytes(self) -> list[int]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class DeviceProperties:
    """What is known of a device, under the names of torch.xpu; what its driver cannot tell is 0, empty or False."""

    __hash__ = None  # type: ignore[assignment]
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def platform_name(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def driver_version(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def type(self) -> str:
        """cpu, gpu, accelerator or host."""

    @property
    def device_id(self) -> int: ...
    @property
    def architecture(self) -> int: ...
    @property
    def uuid(self) -> Uuid: ...
    @property
    def pci_address(self) -> str:
        """0000:03:00.0, or empty when it has no such place."""

    @property
    def max_compute_units(self) -> int: ...
    @property
    def gpu_eu_count(self) -> int: ...
    @property
    def gpu_eu_count_per_subslice(self) -> int: ...
    @property
    def gpu_eu_simd_width(self) -> int: ...
    @property
    def gpu_hw_threads_per_eu(self) -> int: ...
    @property
    def gpu_subslice_count(self) -> int: ...
    @property
    def max_work_group_size(self) -> int: ...
    @property
    def max_work_item_sizes(self) -> list[int]: ...
    @property
    def max_group_count(self) -> list[int]: ...
    @property
    def max_work_item_dimensions(self) -> int: ...
    @property
    def max_num_sub_groups(self) -> int: ...
    @property
    def sub_group_sizes(self) -> list[int]: ...
    @property
    def max_clock_frequency(self) -> int:
        """MHz."""

    @property
    def memory_clock_rate(self) -> int:
        """MHz."""

    @property
    def memory_bus_width(self) -> int:
        """Bits."""

    @property
    def address_bits(self) -> int: ...
    @property
    def max_parameter_size(self) -> int:
        """Bytes of all arguments of one launch."""

    @property
    def total_memory(self) -> int:
        """Bytes."""

    @property
    def max_mem_alloc_size(self) -> int:
        """Bytes."""

    @property
    def local_mem_size(self) -> int:
        """Bytes."""

    @property
    def last_level_cache_size(self) -> int:
        """Bytes."""

    @property
    def cache_line_size(self) -> int:
        """Bytes."""

    @property
    def mem_base_addr_align(self) -> int:
        """Bytes."""

    @property
    def has_fp16(self) -> bool: ...
    @property
    def has_fp64(self) -> bool: ...
    @property
    def has_atomic64(self) -> bool: ...
    @property
    def has_bfloat16_conversions(self) -> bool: ...
    @property
    def has_subgroup_matrix_multiply_accumulate(self) -> bool: ...
    @property
    def has_subgroup_matrix_multiply_accumulate_tensor_float32(self) -> bool: ...
    @property
    def has_subgroup_2d_block_io(self) -> bool: ...
    @property
    def is_integrated_gpu(self) -> bool: ...
    @property
    def partition_max_sub_devices(self) -> int: ...
    @property
    def profiling_timer_resolution(self) -> int:
        """Nanoseconds."""

    @property
    def native_vector_widths(self) -> list[int]:
        """Elements of char, short, int, long, float, double and half; 0: the type is not there."""

    @property
    def preferred_vector_widths(self) -> list[int]: ...

@final
class DeviceReport:
    """A device that a driver offers."""

    @property
    def index(self) -> int:
        """In this process; -1: hidden."""

    @property
    def reason(self) -> str:
        """Why it is hidden; empty when it is not."""

    @property
    def properties(self) -> DeviceProperties: ...

@final
class DriverReport:
    """A driver that is built in."""

    @property
    def name(self) -> str: ...
    @property
    def is_selected(self) -> bool: ...
    @property
    def reason(self) -> str:
        """Why it offers nothing: not selected, or its own error."""

    @property
    def devices(self) -> list[DeviceReport]: ...

@final
class RuntimeReport:
    @property
    def drivers(self) -> list[DriverReport]: ...
    @property
    def error(self) -> str: ...

@final
class Buffer:
    """A block of memory of one device, for all of its streams, until the object's end.

    What was submitted before its end may still use it: its memory serves again when that work is over. kind: device, host or shared.
    """

    def __init__(self, size_bytes: int, kind: str = "device", device: object = None) -> None: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def device_index(self) -> int: ...
    @property
    def data_ptr(self) -> int: ...

@final
class Stream:
    """An in-order queue of work for one device: the next one of the device's pool. It lives for ever; this names it.

    priority: -1 high, 0 normal, 1 low; outside of that it is clamped. The first failure of an operation is raised by the next `synchronize`.
    """

    def __init__(self, device: object = None, priority: int = 0) -> None: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def device_index(self) -> int: ...
    @property
    def priority(self) -> int: ...
    def make_current(self) -> None:
        """Makes it, and its device, current for the calling thread."""

    def query(self) -> bool:
        """Whether everything that was submitted is over."""

    def synchronize(self) -> None:
        """Waits for everything that was submitted."""

    def wait_stream(self, stream: Stream) -> None:
        """What is submitted from now on waits for what was submitted to the other stream until now."""

    def copy(self, destination: Buffer | BytesLike, source: Buffer | BytesLike) -> None:
        """Copies all of it; both are of the same size. Returns at once between two Buffers; where one side is Python's, when it is done."""

    def fill(self, buffer: Buffer, pattern: int | BytesLike) -> None:
        """Repeats a pattern of 1, 2, 4, 8 or 16 bytes, or a number from 0 to 255 as one byte. Returns at once."""

@final
class ExportSummary:
    """What is in a timeline that was written."""

    @property
    def path(self) -> str: ...
    @property
    def bytes(self) -> int:
        """Of the file."""

    @property
    def slices(self) -> int:
        """Everything with a duration."""

    @property
    def kernels(self) -> int: ...
    @property
    def flows(self) -> int:
        """Arrows from a call to its command."""

    @property
    def overlapping(self) -> int:
        """Slices on rows of their own because they overlap another one of their queue."""

    @property
    def untimed(self) -> int:
        """Commands without times."""

class _Outputs:
    def export_chrome(self, path: str, device_only: bool, compatibility: str, metadata: list[tuple[str, str]]) -> ExportSummary: ...
    def export_perfetto(self, path: str, device_only: bool) -> ExportSummary: ...
    def report_json(self, sort: str, kernels: str, ranges: str, by: str) -> str: ...
    def report_text(self, top: int, sort: str, kernels: str, ranges: str, by: str, width: int) -> str: ...

@final
class LiveProfile(_Outputs):
    def __init__(self, config: str, kernels: str) -> None: ...
    @property
    def state(self) -> str: ...
    @property
    def warnings(self) -> list[str]: ...
    def prepare(self) -> None: ...
    def start(self) -> None: ...
    def toggle(self, collect: bool) -> None: ...
    def stop(self) -> None: ...
    def collect(self, patience_s: float) -> None: ...
    def cancel(self) -> None: ...

@final
class RecordingFile(_Outputs):
    def __init__(self, path: str) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def finished(self) -> bool: ...
    @property
    def damage(self) -> str: ...

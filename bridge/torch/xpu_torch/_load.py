"""Loads the module that fits PyTorch, or says in a sentence why none does."""
import os
import re
import sys

from ._built_for import TORCH_VERSION

DRIVER_VARIABLE = "XPU_TORCH_DRIVER"
RECORDING_VARIABLE = "XPU_RECORD"  # set by `xpu record` for the program that it runs
MEMORY_VARIABLE = "XPU_MEMORY_CONF"
MEMORY_OPTIONS = {"max_split_size_mb", "max_non_split_rounding_mb", "garbage_collection_threshold", "roundup_power2_divisions", "expandable_segments",
                  "pinned_max_round_threshold_mb", "pinned_max_cached_size_mb", "per_process_memory_fraction"}
NATIVE_MODULE = "xpu_torch._native"
PRIVATEUSE1_MODULE = "lxpu_torch._native"


def reason_against(torch):
    """Why this PyTorch cannot have the device xpu; None if it can, as far as can be told without loading anything."""
    version = torch.__version__.split("+")[0]
    if version != TORCH_VERSION:
        return (f"libxpu-torch was built for PyTorch {TORCH_VERSION}, but this is {torch.__version__}; "
                f"install torch=={TORCH_VERSION}, or build libxpu-torch against the one that is here")
    if torch.version.cuda or torch.version.hip:
        return (f"PyTorch {torch.__version__} is built for another accelerator and cannot have xpu beside it; install the CPU build of "
                f"torch=={TORCH_VERSION}, or use the device lxpu (import lxpu_torch)")
    if torch._C._has_xpu and NATIVE_MODULE not in sys.modules:
        return f"PyTorch {torch.__version__} has its own runtime for xpu"
    if PRIVATEUSE1_MODULE in sys.modules:
        return "this process uses the device lxpu of libxpu-torch already; a process has one of the two"
    return None


def load(torch):
    """The native module, with PyTorch's hooks, allocators and operators in place. Raises ImportError."""
    reason = reason_against(torch)
    if reason:
        raise ImportError(reason)
    choose_driver()
    choose_memory_options()
    import xpu  # noqa: F401  # brings libxpu.so into the process, which the native module finds there

    from . import _native
    if not _native.hooks_are_ours():
        raise ImportError("xpu_torch was imported too late: PyTorch has looked for its accelerator before (a backward pass, torch.accelerator, "
                          "a profiler or torch.Generator does) and found none, and keeps that for the life of the process; import xpu_torch "
                          "right after torch, or leave TORCH_DEVICE_BACKEND_AUTOLOAD unset and `import torch` does it")
    _native.install_cpu_allocator()
    if os.environ.get(RECORDING_VARIABLE):
        _native.publish_operators()
    from ._takeover import take_over
    take_over(torch, _native)
    return _native


def choose_driver():
    """XPU_TORCH_DRIVER says which driver PyTorch's devices are of; by default it is XPU_DRIVER's. Before anything counts devices."""
    driver = os.environ.get(DRIVER_VARIABLE)
    if driver:
        os.environ["XPU_DRIVER"] = driver


def choose_memory_options():
    """PYTORCH_ALLOC_CONF has an effect here as well, as far as it is about what our allocators know, unless XPU_MEMORY_CONF says something."""
    options = os.environ.get("PYTORCH_ALLOC_CONF")
    if not options or os.environ.get(MEMORY_VARIABLE):
        return
    # A list in brackets is one value, whatever commas it has.
    entries = re.findall(r"[^,\[\]]+(?:\[[^\]]*\])?", options)
    known = [entry for entry in entries if entry.split(":")[0].strip() in MEMORY_OPTIONS]
    if known:
        os.environ[MEMORY_VARIABLE] = ",".join(known)

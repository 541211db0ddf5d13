"""Stock PyTorch on libxpu: after the import PyTorch has the device "xpu", and torch.xpu works in full.

`import torch` does this import by itself (entry point torch.backends). Done by hand it has to come before anything that asks PyTorch for its
accelerator: a backward pass, torch.accelerator, a profiler. It raises ImportError, with what to do, where PyTorch cannot have the device.
"""
import sys

import torch  # its last step may be this very import

from ._load import load

__version__ = "0.1.0"

try:
    _native = load(torch)
except ImportError as _fault:
    # `python -m xpu_torch doctor` is there to say why, and is on its way here.
    if sys.argv[:1] != ["-m"]:
        raise
    why_not_loaded = str(_fault)

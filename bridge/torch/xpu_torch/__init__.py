"""Stock PyTorch on libxpu: after the import PyTorch has the device "xpu", and torch.xpu works in full.

`import torch` does this import by itself (entry point torch.backends). Done by hand it has to come before anything that asks PyTorch for its
accelerator: a backward pass, torch.accelerator, a profiler. It raises ImportError, with what to do, where PyTorch cannot have the device.
"""
import torch  # its last step may be this very import

from ._load import load

_native = load(torch)
__version__ = "0.1.0"

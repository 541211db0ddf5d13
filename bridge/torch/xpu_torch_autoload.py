"""What PyTorch calls at the end of `import torch` (entry point torch.backends)."""


def autoload():
    """Gives PyTorch the device xpu. A fault becomes a warning: `import torch` works without us."""
    try:
        import xpu_torch  # noqa: F401  # the import is the work
    except Exception as fault:
        import warnings

        warnings.warn(f"PyTorch goes on without the device xpu: {fault} (`python -m xpu_torch doctor` tells more; "
                      "TORCH_DEVICE_BACKEND_AUTOLOAD=0 leaves it out)", RuntimeWarning, stacklevel=2)

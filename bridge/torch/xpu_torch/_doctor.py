"""What works here and why the rest does not: `python -m xpu_torch doctor`."""
import os
import sys


def examine():
    """A list of (subject, what is the matter). Nothing is loaded that was not loaded before, but PyTorch itself."""
    import torch

    from ._load import DRIVER_VARIABLE, NATIVE_MODULE

    findings = [("PyTorch", f"{torch.__version__} in {os.path.dirname(torch.__file__)}")]
    native = sys.modules.get(NATIVE_MODULE)
    if native is not None and native.hooks_are_ours():
        findings.append(("device xpu", f"on, with libxpu {native.libxpu_version}; torch.xpu sees {native.device_count()} device(s)"))
        if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "0":
            findings.append(("autoload", "off: TORCH_DEVICE_BACKEND_AUTOLOAD=0; programs have to import xpu_torch right after torch"))
    else:
        findings.append(("device xpu", "off: " + sys.modules["xpu_torch"].why_not_loaded))
    driver = os.environ.get(DRIVER_VARIABLE) or os.environ.get("XPU_DRIVER") or "host, by default"
    findings.append(("driver", f"{driver} ({DRIVER_VARIABLE}, or else XPU_DRIVER, chooses it)"))
    return findings


def main():
    """Prints the findings and, behind them, what the runtime finds."""
    findings = examine()
    width = max(len(subject) for subject, _ in findings)
    for subject, text in findings:
        print(f"{subject:<{width}}  {text}")
    try:
        import xpu

        print()
        print(xpu.doctor())
    except ImportError as fault:
        print(f"{'libxpu':<{width}}  cannot be imported: {fault}")

"""What training costs on the device, against the CPU in the same process: a perceptron's step, and small operators.

The step (256-256-10, batch 64, SGD) is timed in alternating blocks; the ratio of the lower quartiles is the figure. Prints one line for each; with --limit the
exit code is 1 when the step's ratio is above it.
"""
import argparse
import os
import sys
import time

os.environ.setdefault("XPU_DRIVER", "host")

import torch  # noqa: E402  (looks at the environment)
from torch.nn import functional  # noqa: E402

DEVICES = ("cpu", "xpu")
BLOCKS = 31
STEPS_OF_BLOCK = 20
CALLS_OF_BLOCK = 300


def perceptron_step(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, target = torch.randn(64, 256).to(device), torch.randint(0, 10, (64,)).to(device)

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), target).backward()
        optimizer.step()
    return step


def small_operators(device):
    torch.manual_seed(0)
    one, other, number = torch.rand(4, device=device), torch.rand(4, device=device), torch.rand((), device=device)
    square, bias, target = torch.rand(4, 4, device=device), torch.rand(4, device=device), torch.tensor([1, 0, 3, 2], device=device)
    return {
        "add": lambda: one + other,
        "add_": lambda: one.add_(other, alpha=1e-3),
        "mul by a number": lambda: one * 2.0,
        "sqrt": one.sqrt,
        "relu": one.relu,
        "addcmul_": lambda: number.addcmul_(number, number, value=1e-3),
        "tanh": one.tanh,
        "gelu": lambda: functional.gelu(one),
        "sum": lambda: square.sum(0),
        "mm": lambda: square @ square,
        "addmm": lambda: torch.addmm(bias, square, square),
        "log_softmax": lambda: functional.log_softmax(square, 1),
        "nll_loss": lambda: functional.nll_loss(square, target),
        "zero_": one.zero_,
    }


def seconds_of_block(function, calls):
    started = time.perf_counter()
    for _ in range(calls):
        function()
    torch.xpu.synchronize()
    return (time.perf_counter() - started) / calls


def lower_quartiles(functions, calls):
    """Of the seconds of one call on each device, over alternating blocks."""
    seconds = {device: [] for device in DEVICES}
    for device in DEVICES:
        seconds_of_block(functions[device], calls)
    for _ in range(BLOCKS):
        for device in DEVICES:
            seconds[device].append(seconds_of_block(functions[device], calls))
    return {device: sorted(values)[len(values) // 4] for device, values in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, help="the most that the step's ratio may be")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch's CPU kernels, on both devices")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    operators = {device: small_operators(device) for device in DEVICES}
    for name in operators["cpu"]:
        us = {device: s * 1e6 for device, s in lower_quartiles({device: operators[device][name] for device in DEVICES}, CALLS_OF_BLOCK).items()}
        print(f"{name:16} cpu {us['cpu']:8.2f} us   xpu {us['xpu']:8.2f} us   more {us['xpu'] - us['cpu']:+.2f} us")
    us = {device: s * 1e6 for device, s in lower_quartiles({device: perceptron_step(device) for device in DEVICES}, STEPS_OF_BLOCK).items()}
    ratio = us["xpu"] / us["cpu"]
    print(f"{'training step':16} cpu {us['cpu']:8.1f} us   xpu {us['xpu']:8.1f} us   ratio {ratio:.3f}")
    if options.limit is not None and ratio > options.limit:
        print(f"the step's ratio is above {options.limit}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

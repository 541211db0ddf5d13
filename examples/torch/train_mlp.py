"""Trains a small network on the device xpu and shows where its time went.

    python examples/torch/train_mlp.py [--steps 200] [--trace mlp.json]

Needs stock PyTorch for CPUs with libxpu-torch beside it (make torch-venv), and no GPU.
"""
import argparse
import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="training steps (default: 200)")
    parser.add_argument("--trace", metavar="FILE", help="writes the profile there, for https://ui.perfetto.dev")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error(f"--steps is at least 1, not {options.steps}")

    torch.manual_seed(0)
    # Four noisy classes in 256 dimensions.
    centres = torch.randn(4, 256)
    labels = torch.randint(0, 4, (2048,))
    points = centres[labels] + 3 * torch.randn(2048, 256)
    points, labels = points.to("xpu"), labels.to("xpu")

    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 4)).to("xpu")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step(number):
        batch = torch.arange(number * 64, number * 64 + 64, device="xpu") % len(labels)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(points[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        return loss

    begin, end = torch.xpu.Event(enable_timing=True), torch.xpu.Event(enable_timing=True)
    begin.record()
    for number in range(options.steps):
        loss = step(number)
    end.record()
    end.synchronize()
    with torch.no_grad():
        right = (net(points).argmax(1) == labels).float().mean().item()
    print(f"{options.steps} steps on {torch.xpu.get_device_name()}: loss {loss.item():.3f}, {100 * right:.1f} % right, "
          f"{begin.elapsed_time(end) / options.steps:.3f} ms a step")

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as profiler:
        for number in range(10):
            with record_function("train step"):
                step(number)
        torch.xpu.synchronize()
    print(profiler.key_averages().table(sort_by="self_xpu_time_total", row_limit=8, max_name_column_width=44))
    if options.trace:
        profiler.export_chrome_trace(options.trace)
        if not os.path.exists(options.trace):  # PyTorch only logs that it could not
            sys.exit(f"{options.trace} could not be written")
        print(f"{options.trace} -> open it at https://ui.perfetto.dev")


if __name__ == "__main__":
    main()

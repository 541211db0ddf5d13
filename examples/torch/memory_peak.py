"""Finds out which line of a program holds the most memory at its peak, from a snapshot of the caching allocator.

    python examples/torch/memory_peak.py [--snapshot FILE.pickle]
"""
import argparse
from pathlib import Path

import torch


def forward(width):
    """Keeps what a backward pass would need."""
    inputs = torch.randn(512, width, device="xpu")
    weights = torch.randn(width, width, device="xpu", requires_grad=True)
    hidden = inputs @ weights
    squashed = hidden.tanh()
    return (squashed * squashed).sum()


def lines_at_peak(trace):
    """Walks through what happened and returns the bytes of each line at the moment of the most. A frame of this file stands for a block."""
    live, of_line, total, peak, at_peak = {}, {}, 0, 0, {}
    for event in trace:
        if event["action"] == "alloc":
            own = [frame["line"] for frame in event.get("frames", []) if Path(frame["filename"]).name == Path(__file__).name]
            line = own[0] if own else 0
            live[event["addr"]] = (line, event["size"])
            of_line[line] = of_line.get(line, 0) + event["size"]
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in live:
            line, size = live.pop(event["addr"])
            of_line[line] -= size
            total -= size
        if total > peak:
            peak, at_peak = total, dict(of_line)
    return peak, at_peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--snapshot", metavar="FILE", help="writes it there, for https://pytorch.org/memory_viz")
    options = parser.parse_args()

    torch.xpu.memory._record_memory_history(stacks="python")
    loss = forward(1024)
    loss.backward()
    snapshot = torch.xpu.memory._snapshot()
    if options.snapshot:
        torch.xpu.memory._dump_snapshot(options.snapshot)
    torch.xpu.memory._record_memory_history(enabled=None)

    peak, at_peak = lines_at_peak(snapshot["device_traces"][0])
    print(f"peak of what was asked for: {peak / 2**20:.1f} MiB (the allocator's own figure: {torch.xpu.max_memory_allocated() / 2**20:.1f} MiB)")
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    for line, size in sorted(at_peak.items(), key=lambda item: -item[1]):
        if size:
            print(f"{size / 2**20:8.1f} MiB  {f'line {line}: {source[line - 1].strip()}' if line else 'elsewhere'}")


if __name__ == "__main__":
    main()

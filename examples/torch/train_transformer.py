"""Trains a small transformer to reverse sequences, in bfloat16 where that is enough, and profiles some steps of a schedule.

    python examples/torch/train_transformer.py [--steps 60]
"""
import argparse

import torch
from torch.profiler import ProfilerActivity, profile, schedule

VOCABULARY, LENGTH, WIDTH = 16, 12, 64


class Reverser(torch.nn.Module):
    """Reads a sequence and writes it backwards."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.places = torch.nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=128, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.out = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, sequence):
        return self.out(self.encoder(self.tokens(sequence) + self.places))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="training steps (default: 60)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error(f"--steps is at least 1, not {options.steps}")

    torch.manual_seed(0)
    net = Reverser().to("xpu")
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    first = last = None
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU], schedule=plan) as profiler:
        for _ in range(options.steps):
            sequence = torch.randint(0, VOCABULARY, (32, LENGTH), device="xpu")
            with torch.autocast("xpu", dtype=torch.bfloat16):
                scores = net(sequence)
            loss = torch.nn.functional.cross_entropy(scores.float().flatten(0, 1), sequence.flip(1).flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()
            last = loss.item()
            first = last if first is None else first
    print(f"loss {first:.3f} at first, {last:.3f} after {options.steps} steps")
    print(profiler.key_averages().table(sort_by="self_xpu_time_total", row_limit=8, max_name_column_width=52))


if __name__ == "__main__":
    main()

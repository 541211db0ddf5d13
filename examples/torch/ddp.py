"""Data-parallel training on two ranks, each on its device xpu. No backend is named: PyTorch takes gloo for it.

    python examples/torch/ddp.py
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2


def train(rank, rendezvous):
    dist.init_process_group(init_method=f"file://{rendezvous}", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1).to("xpu"))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(rank)).to("xpu")
    targets = inputs.sum(1, keepdim=True)
    for _ in range(50):
        optimizer.zero_grad()
        loss = (net(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()

    # Both ranks have the same weights, though each saw its own data only.
    weights = net.module.weight.detach().clone()
    others = [torch.empty_like(weights) for _ in range(RANKS)]
    dist.all_gather(others, weights)
    same = all(torch.equal(weights, other) for other in others)
    print(f"rank {rank} on {weights.device}: loss {loss.item():.4f}, weights {'agree' if same else 'DIFFER'}", flush=True)
    dist.destroy_process_group()
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(os.path.join(folder, "rendezvous"),), nprocs=RANKS)

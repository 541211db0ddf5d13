"""Copies the next batch to the device while the current one is computed, on two streams, and shows that the two really overlap.

    python examples/torch/overlap.py [--batches 8]
"""
import argparse

import torch
from torch.profiler import ProfilerActivity, profile


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=8, help="how many (default: 8)")
    options = parser.parse_args()
    if options.batches < 1:
        parser.error(f"--batches is at least 1, not {options.batches}")

    batches = [torch.randn(2048, 512).pin_memory() for _ in range(options.batches)]
    weights = torch.randn(512, 512, device="xpu")
    copying, computing = torch.xpu.Stream(), torch.xpu.Stream()
    computing.wait_stream(torch.xpu.current_stream())

    def start_copy(batch):
        with torch.xpu.stream(copying):
            return batch.to("xpu", non_blocking=True)

    results = []
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as profiler:
        coming = start_copy(batches[0])
        for following in [*batches[1:], None]:
            batch = coming
            computing.wait_stream(copying)
            coming = start_copy(following) if following is not None else None
            with torch.xpu.stream(computing):
                results.append((batch @ weights).relu().sum())
                batch.record_stream(computing)
        torch.xpu.synchronize()

    expected = [(batch @ weights.cpu()).relu().sum() for batch in batches]
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result.cpu(), value, rtol=1e-3, atol=1e-1)
    events = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    copies = sorted((event.time_range.start, event.time_range.end) for event in events if event.name.startswith("Memcpy HtoD"))
    kernels = sorted((event.time_range.start, event.time_range.end) for event in events if not event.name.startswith("Mem"))
    overlap = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in copies for b in kernels)
    total = sum(end - start for start, end in copies)
    print(f"{len(copies)} copies took {total / 1000:.2f} ms, of which {overlap / 1000:.2f} ms beside kernels")


if __name__ == "__main__":
    main()

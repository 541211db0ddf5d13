#!/usr/bin/env python3
"""What recording costs the program, on the null driver: CPU time of the program's own process, its exit included, in interleaved rounds.

    bench/overhead.py --build build/release [--peer PEER_LAYER.so] [--rounds 15] [--launches 1000000]

Each round runs every variant once, in the order A B C … and, in the next round, … C B A, so that drift of the machine falls on all alike. Printed are medians
over the rounds of (variant - untraced) in nanoseconds per launch. The peer is any OpenCL layer that is set up by environment
variables; the one that we compare with takes LT_BIN for writing its records to a file.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def cpu_seconds(command, env):
    """CPU time of the workload's process alone: a shell times it, so neither `xpu record` nor the shell counts."""
    script = 'TIMEFORMAT="CPU %3U %3S"; time "$@"'
    finished = subprocess.run([*command[0], "bash", "-c", script, "bash", *map(str, command[1])], env=env, capture_output=True, text=True, timeout=300,
                              check=False)
    if finished.returncode != 0:
        sys.exit(f"{command}: exit {finished.returncode}\n{finished.stderr}")
    line = next(line for line in finished.stderr.splitlines() if line.startswith("CPU "))
    user, system = line.split()[1:]
    return float(user) + float(system)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--launches", type=int, default=1_000_000)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    workload = [build / "bin" / "xpu_test_workload", "launch", arguments.launches, 1000]
    base = {name: value for name, value in os.environ.items() if not name.startswith(("XPU_", "OPENCL_LAYERS", "OCL_ICD_", "LT_"))}
    base["OCL_ICD_VENDORS"] = str(build / "lib" / "null_icd")

    with tempfile.TemporaryDirectory(prefix="xpu-overhead-", dir=os.environ.get("TMPDIR")) as folder:
        recording = Path(folder) / "run.xpu"
        ours = [str(build / "bin" / "xpu"), "record", "-f", "-o", str(recording)]
        variants = {
            "untraced": ([], base),
            "xpu --device-only": ([*ours, "--device-only", "--"], base),
            "xpu (default)": ([*ours, "--"], base),
        }
        if arguments.peer:
            layer = {**base, "OPENCL_LAYERS": str(arguments.peer.resolve())}
            variants["peer, timing only"] = ([], layer)
            variants["peer, with a file"] = ([], {**layer, "LT_BIN": str(Path(folder) / "peer.bin")})
        seconds = {name: [] for name in variants}
        for number in range(arguments.rounds):
            names = list(variants) if number % 2 == 0 else list(reversed(variants))
            for name in names:
                prefix, env = variants[name]
                seconds[name].append(cpu_seconds((prefix, workload), env))
        print(f"{arguments.rounds} rounds of {arguments.launches} launches; CPU of the program's process, exit included; ns per launch")
        print("| variant | median | added (median of differences) | spread of added (quartiles) |")
        print("|---|---:|---:|---:|")
        added = {}
        for name, values in seconds.items():
            differences = [(value - untraced) * 1e9 / arguments.launches for value, untraced in zip(values, seconds["untraced"])]
            added[name] = statistics.median(differences)
            low, _, high = statistics.quantiles(differences, n=4)
            print(f"| {name} | {statistics.median(values) * 1e9 / arguments.launches:.0f} | {added[name]:.0f} | {low:.0f} to {high:.0f} |")
        if arguments.peer:
            print(f"\n--device-only / peer, timing only: {added['xpu --device-only'] / added['peer, timing only']:.2f}")
            print(f"default / peer, with a file: {added['xpu (default)'] / added['peer, with a file']:.2f}")
        print(f"(children's peak resident memory: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB)")


if __name__ == "__main__":
    main()

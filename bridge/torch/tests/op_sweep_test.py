"""PyTorch's operator database on the device: what agrees with the CPU, counted for each dtype; what does not has to be in op_sweep_tables.py.

The sweep runs in processes of its own, one for each core. A process that crashes or hangs costs the entry that it was at, and the rest is swept all the same.
"""
import collections
import json
import os
import queue
import subprocess
import sys
import threading
import time
import unittest

import op_sweep_tables as tables
from harness import TESTS, environment, kill_group, start

SHARDS = min(os.cpu_count() or 1, 4)
STALL_S = 90
# What the database gave when the bridge was proved possible; less means that something was lost.
FLOAT32_AGREE_AT_LEAST = 637
AGREES, FORWARD_ONLY, DIFFERS, NOTHING_COMPARED, NO_DTYPE = "agrees", "agrees forward", "differs", "nothing compared", "no such dtype"


class Shard(threading.Thread):
    """Sweeps every SHARDS-th entry; `results` afterwards has one result for each."""

    def __init__(self, dtype, index, samples):
        super().__init__()
        self.command = [sys.executable, TESTS / "op_sweep.py", "--json", "--dtype", dtype, "--samples", samples, "--shard", f"{index}/{SHARDS}"]
        self.results, self.addresses_checked, self.problem = [], False, None

    def run(self):
        try:
            after = []
            while after is not None:
                after = self.sweep(after)
        except Exception as error:  # must reach the test, not the thread's end
            self.problem = repr(error)

    def sweep(self, after):
        """One process; what to sweep next when it did not reach the end."""
        process = start(self.command + after, environment(OMP_NUM_THREADS=1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = queue.Queue()
        readers = [
            threading.Thread(target=self.queue_lines_of, args=(process.stdout, lines)),
            threading.Thread(target=self.keep_end_of, args=(process.stderr,)),
        ]
        for reader in readers:
            reader.start()
        current, ended, hung, begun = None, False, False, time.monotonic()
        while True:
            try:
                message = json.loads(lines.get(timeout=0.5))
            except queue.Empty:
                if not readers[0].is_alive() and lines.empty():
                    break
                if time.monotonic() - begun > STALL_S:
                    hung = True
                    kill_group(process)
                continue
            begun = time.monotonic()
            if "begins" in message:
                current = message["begins"]
            elif "entry" in message:
                self.results.append(message)
                current = None
            else:
                ended, self.addresses_checked = True, message["addresses_checked"]
        process.wait()
        kill_group(process)
        readers[1].join()
        if ended and process.returncode == 0:
            return None
        if current is None:
            raise RuntimeError(f"{' '.join(map(str, self.command + after))}: exit {process.returncode}: {self.stderr_end}")
        what = f"did not end in {STALL_S} s" if hung else f"killed the process (exit {process.returncode})"
        self.results.append({"entry": current, "status": DIFFERS, "why": f"{what}: {self.stderr_end}", "compared": {}, "dropped": {}})
        return ["--after", current]

    @staticmethod
    def queue_lines_of(stream, lines):
        with stream:
            for line in stream:
                lines.put(line)

    def keep_end_of(self, stream):
        with stream:
            self.stderr_end = stream.read()[-1500:]


class OpSweepTest(unittest.TestCase):
    maxDiff = None

    def sweep(self, dtype, samples):
        started = time.monotonic()
        shards = [Shard(dtype, index, samples) for index in range(SHARDS)]
        for shard in shards:
            shard.start()
        for shard in shards:
            shard.join()
        self.assertFalse([shard.problem for shard in shards if shard.problem])
        results = [result for shard in shards for result in shard.results]
        self.report(dtype, results, time.monotonic() - started, all(shard.addresses_checked for shard in shards))
        self.check(dtype, results)
        return collections.Counter(result["status"] for result in results)

    @staticmethod
    def report(dtype, results, seconds, addresses_checked):
        counts = collections.Counter(result["status"] for result in results)
        compared, dropped = collections.Counter(), collections.Counter()
        for result in results:
            compared.update(result["compared"])
            dropped.update(result["dropped"])
        print(f"\n{dtype}: {len(results)} entries in {seconds:.0f} s: " + ", ".join(f"{count} {status}" for status, count in counts.most_common()))
        print("  comparisons: " + ", ".join(f"{count} {what}" for what, count in compared.most_common()))
        print(f"  addresses looked up in the device's memory: {'yes' if addresses_checked else 'no, the snapshot is empty'}")
        print(f"  references that failed themselves: {dropped.total()}")
        for reason, count in dropped.most_common(8):
            print(f"    {count} times {reason}")
        sys.stdout.flush()

    def check(self, dtype, results):
        names = [result["entry"] for result in results]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 600, "entries are missing")
        unexpected, stale = [], []
        for result in results:
            entry, status = result["entry"], result["status"]
            reason = tables.known(entry, dtype)
            if status == DIFFERS and not reason:
                unexpected.append(f"{entry}: {result['why']}")
            elif status == NOTHING_COMPARED and not reason and entry not in tables.NOT_COMPARABLE:
                unexpected.append(f"{entry}: nothing could be compared: {result['why']}")
            elif status in (AGREES, FORWARD_ONLY) and reason:
                stale.append(f"{entry} agrees, but is listed as different: {reason}")
            elif status in (AGREES, FORWARD_ONLY) and entry in tables.NOT_COMPARABLE:
                stale.append(f"{entry} agrees, but is listed as not comparable: {tables.NOT_COMPARABLE[entry]}")
        gone = (set(tables.KNOWN) | set(tables.NOT_COMPARABLE)) - set(names)
        stale += [f"{entry} is listed, but not in the database" for entry in sorted(gone)]
        if unexpected + stale:
            self.fail("\n" + "\n".join(unexpected + stale))

    def test_float32(self):
        counts = self.sweep("float32", samples=60)
        self.assertGreaterEqual(counts[AGREES], FLOAT32_AGREE_AT_LEAST)

    def test_float64(self):
        self.sweep("float64", samples=16)

    def test_bfloat16(self):
        self.sweep("bfloat16", samples=16)

    def test_int64(self):
        self.sweep("int64", samples=16)

    def test_bool(self):
        self.sweep("bool", samples=16)

    def test_complex64(self):
        self.sweep("complex64", samples=16)


if __name__ == "__main__":
    unittest.main(verbosity=2)

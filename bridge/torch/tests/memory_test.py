"""The memory of torch.xpu: statistics, snapshot, limits, out of memory, history, pools, and a program's own allocator."""
import gc
import pickle
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import ProcessTest, run_python
import torch

MIB = 1 << 20
COUNTS = ["allocation", "segment", "active", "inactive_split"]
ARRAY_METRICS = [*COUNTS, "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes"]
SCALARS = ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size"]

SEGMENT_KEYS = {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type", "segment_pool_id",
                "is_expandable", "frames", "blocks"}


def every_key():
    values = ("current", "peak", "allocated", "freed")
    keys = {f"{metric}.{pool}.{value}" for metric in ARRAY_METRICS for pool in ("all", "small_pool", "large_pool") for value in values}
    keys |= {f"{metric}.{value}" for metric in ("oversize_allocations", "oversize_segments") for value in values}
    return keys | set(SCALARS)


def floats(size_bytes, device="xpu"):
    return torch.empty(size_bytes // 4, device=device)


class MemoryTest(unittest.TestCase):
    def setUp(self):
        gc.collect()
        torch.xpu.synchronize()
        torch.xpu.empty_cache()
        torch.xpu.reset_peak_memory_stats()
        torch.xpu.reset_accumulated_memory_stats()


class StatisticsTest(MemoryTest):
    def test_all_122_keys(self):
        stats = torch.xpu.memory_stats()
        self.assertEqual(set(stats), every_key())
        self.assertEqual((len(stats), list(stats)), (122, sorted(stats)))
        self.assertTrue(all(type(value) is int for value in stats.values()))
        nested = torch.xpu.memory_stats_as_nested_dict()
        self.assertEqual(nested["allocated_bytes"]["all"]["current"], stats["allocated_bytes.all.current"])

    def test_a_tensor_comes_and_goes(self):
        before = torch.xpu.memory_stats()
        tensor = torch.empty(256, device="xpu")
        during = torch.xpu.memory_stats()
        self.assertEqual(during["active_bytes.all.current"] - before["active_bytes.all.current"], 1024)
        self.assertEqual(during["requested_bytes.all.current"] - before["requested_bytes.all.current"], 1024)
        self.assertEqual((during["allocated_bytes.all.freed"], during["allocation.all.freed"]), (0, 0))
        del tensor
        after = torch.xpu.memory_stats()
        self.assertEqual((after["allocated_bytes.all.freed"], after["allocation.all.freed"]), (1024, 1))
        self.assertEqual(after["allocated_bytes.all.current"], before["allocated_bytes.all.current"])

    def test_the_short_functions(self):
        before = torch.xpu.memory_allocated()
        tensor = floats(3 * MIB)
        self.assertEqual(torch.xpu.memory_allocated(), before + 3 * MIB)
        self.assertGreaterEqual(torch.xpu.memory_reserved(), torch.xpu.memory_allocated())
        del tensor
        self.assertEqual((torch.xpu.memory_allocated(), torch.xpu.max_memory_allocated()), (before, before + 3 * MIB))
        self.assertGreaterEqual(torch.xpu.max_memory_reserved(), torch.xpu.memory_reserved())
        torch.xpu.reset_peak_memory_stats()
        self.assertEqual(torch.xpu.max_memory_allocated(), before)

    def test_each_device_counts_its_own(self):
        before = [torch.xpu.memory_allocated(index) for index in range(2)]
        tensor = floats(MIB, "xpu:1")
        self.assertEqual([torch.xpu.memory_allocated(index) for index in range(2)], [before[0], before[1] + MIB])
        self.assertEqual(torch.xpu.memory_allocated("xpu:1"), before[1] + MIB)
        del tensor

    def test_the_accelerator_says_the_same(self):
        tensor = floats(MIB)
        memory = torch.accelerator
        for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
            self.assertEqual(getattr(memory, name)(), getattr(torch.xpu, name)(), name)
        own, generic = torch.xpu.memory_stats(), memory.memory_stats()
        for key in generic:
            self.assertEqual(generic[key], own[key], key)
        del tensor
        torch.accelerator.empty_cache()
        memory.reset_peak_memory_stats()
        stats = memory.memory_stats()
        self.assertEqual(stats["allocated_bytes.all.peak"], stats["allocated_bytes.all.current"])
        memory.reset_accumulated_memory_stats()
        self.assertEqual(memory.memory_stats()["allocated_bytes.all.allocated"], 0)

    def test_free_and_total(self):
        free, total = torch.xpu.mem_get_info()
        tensor = torch.ones(8 * MIB, device="xpu")
        now_free, now_total = torch.xpu.mem_get_info()
        self.assertLessEqual(now_free, free)
        self.assertEqual((now_total, torch.xpu.get_device_properties().total_memory), (total, total))
        self.assertEqual(torch.accelerator.get_memory_info()[1], total)
        del tensor

    def test_one_mebibyte_is_small(self):
        before = torch.xpu.memory_stats()
        tensors = [floats(MIB), floats(MIB)]
        after = torch.xpu.memory_stats()
        self.assertEqual(after["allocated_bytes.small_pool.current"] - before["allocated_bytes.small_pool.current"], 2 * MIB)
        self.assertEqual(after["allocated_bytes.large_pool.current"], before["allocated_bytes.large_pool.current"])
        del tensors

    def test_results_of_every_operator_are_counted(self):
        data = torch.randn(2, 8, 32, 32, device="xpu")
        weight = torch.randn(8, 8, 3, 3, device="xpu")
        operators = [
            lambda: data + 1,
            lambda: torch.nn.functional.conv2d(data, weight, padding=1),
            lambda: data.nonzero(),
            lambda: data.sort(),
            lambda: data.cpu().xpu(),
            lambda: data @ data,
            lambda: torch.fft.fft(data),
            lambda: data[data > 0],
        ]
        for operator in operators:
            before = torch.xpu.memory_allocated()
            result = operator()
            tensors = [result] if isinstance(result, torch.Tensor) else list(result)
            exact = sum((tensor.untyped_storage().nbytes() + 511) // 512 * 512 for tensor in tensors)
            self.assertEqual(torch.xpu.memory_allocated() - before, exact)
            del result, tensors
            self.assertEqual(torch.xpu.memory_allocated(), before)

    def test_empty_cache_is_idempotent(self):
        tensor = floats(30 * MIB)
        del tensor
        self.assertGreaterEqual(torch.xpu.memory_reserved(), 30 * MIB)
        torch.xpu.empty_cache()
        reserved = torch.xpu.memory_reserved()
        self.assertLess(reserved, 30 * MIB)
        torch.xpu.empty_cache()
        self.assertEqual(torch.xpu.memory_reserved(), reserved)
        self.assertEqual(reserved, sum(segment["total_size"] for segment in torch.xpu.memory_snapshot() if segment["device"] == 0))


class SnapshotTest(MemoryTest):
    def assert_sums_are_statistics(self):
        sums = {device: dict.fromkeys(ARRAY_METRICS, 0) for device in range(2)}
        for segment in torch.xpu.memory_snapshot():
            here = sums[segment["device"]]
            here["reserved_bytes"] += segment["total_size"]
            here["allocated_bytes"] += segment["allocated_size"]
            here["active_bytes"] += segment["active_size"]
            here["requested_bytes"] += segment["requested_size"]
            here["segment"] += not segment["is_expandable"]
            self.assertEqual(sum(block["size"] for block in segment["blocks"]), segment["total_size"])
            for block in segment["blocks"]:
                self.assertIn(block["state"], ("active_allocated", "active_pending_free", "inactive"))
                here["allocation"] += block["state"] == "active_allocated"
                here["active"] += block["state"].startswith("active")
                if block["state"] == "inactive" and len(segment["blocks"]) > 1 and not segment["is_expandable"]:
                    here["inactive_split"] += 1
                    here["inactive_split_bytes"] += block["size"]
        for device, expected in sums.items():
            stats = torch.xpu.memory_stats(device)
            self.assertEqual({name: stats[f"{name}.all.current"] for name in expected}, expected)

    def test_a_random_workload(self):
        generator = random.Random(1)
        live = []
        for step in range(200):
            if generator.random() < 0.6 or not live:
                size_bytes = generator.choice([512, 5000, MIB, 3 * MIB, 12 * MIB]) + 4 * generator.randrange(1000)
                live.append(floats(size_bytes, f"xpu:{generator.randrange(2)}"))
                if generator.random() < 0.2:
                    live[-1].record_stream(torch.xpu.Stream(device=live[-1].device))
            else:
                live.pop(generator.randrange(len(live)))
            if step % 50 == 49:
                torch.xpu.empty_cache()
            self.assert_sums_are_statistics()
        live.clear()
        torch.xpu.synchronize(0)
        torch.xpu.synchronize(1)
        torch.xpu.empty_cache()
        self.assert_sums_are_statistics()

    def test_the_format(self):
        tensor = floats(3000)
        snapshot = torch.xpu.memory._snapshot()
        self.assertLessEqual({"segments", "device_traces", "allocator_settings"}, set(snapshot))
        self.assertIn("PYTORCH_ALLOC_CONF", snapshot["allocator_settings"])
        self.assertEqual(len(snapshot["device_traces"]), 2)
        addresses = [segment["address"] for segment in snapshot["segments"]]
        self.assertEqual(addresses, sorted(addresses))
        for segment in snapshot["segments"]:
            self.assertLessEqual(SEGMENT_KEYS, set(segment))
            self.assertIn(segment["segment_type"], ("small", "large"))
            address = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], address)
                address += block["size"]
        mine = [block for segment in snapshot["segments"] for block in segment["blocks"] if block["address"] == tensor.data_ptr()]
        self.assertEqual([(block["requested_size"], block["size"], block["state"]) for block in mine], [(3000, 3072, "active_allocated")])

    def test_a_dump_can_be_read(self):
        with tempfile.TemporaryDirectory(prefix="xpu_torch_test_") as folder:
            path = Path(folder) / "snapshot.pickle"
            torch.xpu.memory._dump_snapshot(str(path))
            with open(path, "rb") as file:
                self.assertIn("segments", pickle.load(file))


class LimitTest(MemoryTest):
    def tearDown(self):
        torch.xpu.set_per_process_memory_fraction(1.0)
        torch.xpu.empty_cache()

    def test_the_text(self):
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            torch.empty(800000000 << 30, dtype=torch.uint8, device="xpu")
        text = str(caught.exception)
        sizes = r"[\d.]+ [A-Za-z]+"
        self.assertRegex(text, r"^XPU out of memory\. Tried to allocate 800000000\.00 GiB\. GPU 0 has a total capacity of "
                         f"{sizes} of which {sizes} is free")
        self.assertRegex(text, rf"Of the allocated memory {sizes} is allocated by .+, and {sizes} is reserved .*but unallocated")
        self.assertIn("Please use `empty_cache` to release all unoccupied cached memory.", text)
        self.assertIsInstance(caught.exception, RuntimeError)

    def test_what_was_there_before_is_intact(self):
        kept = torch.arange(100000, device="xpu")
        before, ooms = torch.xpu.memory_allocated(), torch.xpu.memory_stats()["num_ooms"]
        for make in (lambda: torch.ones(1 << 60, dtype=torch.uint8, device="xpu"), lambda: kept.expand(1 << 40, -1).contiguous()):
            with self.assertRaises(torch.OutOfMemoryError):
                make()
        self.assertEqual(torch.xpu.memory_allocated(), before)
        self.assertGreater(torch.xpu.memory_stats()["num_ooms"], ooms)
        self.assertTrue(torch.equal(kept.cpu(), torch.arange(100000)))
        self.assertEqual(torch.ones(3, device="xpu").sum().item(), 3)

    def test_the_fraction(self):
        total = torch.xpu.mem_get_info()[1]
        fraction = 64 * MIB / total
        torch.xpu.set_per_process_memory_fraction(fraction)
        self.assertEqual(torch.xpu.get_per_process_memory_fraction(), fraction)
        tensor = floats(30 * MIB)
        del tensor
        torch.xpu.empty_cache()
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            floats(80 * MIB)
        self.assertIn(" allowed; ", str(caught.exception))
        torch.xpu.set_per_process_memory_fraction(1.0)
        del caught
        self.assertEqual(floats(80 * MIB).numel(), 20 * MIB)

    def test_the_fraction_is_of_one_device(self):
        torch.xpu.set_per_process_memory_fraction(0.5, 1)
        self.assertEqual((torch.xpu.get_per_process_memory_fraction(0), torch.xpu.get_per_process_memory_fraction(1)), (1.0, 0.5))
        torch.xpu.set_per_process_memory_fraction(1.0, 1)

    def test_fractions_that_are_none(self):
        for wrong in (-0.1, 1.1):
            with self.assertRaisesRegex(ValueError, f"invalid fraction:{wrong}"):
                torch.xpu.set_per_process_memory_fraction(wrong)
        with self.assertRaisesRegex(TypeError, "Invalid type for fraction argument, must be `float`"):
            torch.xpu.set_per_process_memory_fraction(1)

    def test_a_cache_is_given_up_before_anyone_is_refused(self):
        torch.xpu.set_per_process_memory_fraction(100 * MIB / torch.xpu.mem_get_info()[1])
        tensor = floats(60 * MIB)
        del tensor
        self.assertEqual(floats(70 * MIB).numel() * 4, 70 * MIB)


class HistoryTest(MemoryTest):
    def tearDown(self):
        torch.xpu.memory._record_memory_history(None)

    @staticmethod
    def block_of(tensor):
        blocks = [block for segment in torch.xpu.memory_snapshot() for block in segment["blocks"] if block["address"] == tensor.data_ptr()]
        return blocks[0]

    @staticmethod
    def trace():
        return torch.xpu.memory._snapshot()["device_traces"][0]

    def test_python_frames(self):
        torch.xpu.memory._record_memory_history("state", stacks="python")
        tensor = torch.empty(311, 411, device="xpu")
        block = self.block_of(tensor)
        self.assertEqual(block["requested_size"], 311 * 411 * 4)
        self.assertTrue(block["frames"][0]["filename"].endswith("memory_test.py"), block["frames"][:2])
        self.assertEqual(block["frames"][0]["name"], "test_python_frames")
        self.assertFalse([entry for entry in self.trace() if entry["action"] != "snapshot"])

    def test_what_happened(self):
        torch.xpu.memory._record_memory_history("all", clear_history=True)
        tensor = floats(40 * MIB)
        address = tensor.data_ptr()
        del tensor
        torch.xpu.empty_cache()
        trace = self.trace()
        life = ["alloc", "free_requested", "free_completed"]
        self.assertEqual([entry["action"] for entry in trace if entry["addr"] == address and entry["action"] in life], life)
        self.assertIn(trace[-1]["action"], ("segment_free", "segment_unmap", "snapshot"))
        self.assertEqual({entry["size"] for entry in trace if entry["action"] in life}, {40 * MIB})
        times = [entry["time_us"] for entry in trace]
        self.assertEqual(times, sorted(times))

    def test_the_ring_keeps_the_last(self):
        torch.xpu.memory._record_memory_history("all", max_entries=10, clear_history=True)
        for _ in range(50):
            floats(512)
        self.assertEqual(len(self.trace()), 10)

    def test_contexts(self):
        for context, on_alloc, on_free in (("all", True, True), ("alloc", True, False), ("state", False, False), (None, False, False)):
            torch.xpu.memory._record_memory_history(None)
            torch.xpu.memory._record_memory_history("all", context=context, stacks="python", clear_history=True)
            tensor = floats(2048)
            del tensor
            frames = {entry["action"]: bool(entry.get("frames")) for entry in self.trace()}
            self.assertEqual((frames["alloc"], frames["free_requested"]), (on_alloc, on_free), context)

    def test_actions_can_be_left_out(self):
        torch.xpu.memory._record_memory_history("all", clear_history=True, skip_actions=["free_requested", "free_completed"])
        floats(512)
        self.assertEqual({entry["action"] for entry in self.trace()} & {"alloc", "free_requested", "free_completed"}, {"alloc"})
        with self.assertRaisesRegex((RuntimeError, ValueError), "(?i)unknown skip action"):
            torch.xpu.memory._record_memory_history("all", skip_actions=["nonsense"])

    def test_an_out_of_memory_is_in_it(self):
        torch.xpu.memory._record_memory_history("all", clear_history=True)
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(1 << 60, dtype=torch.uint8, device="xpu")
        self.assertIn("oom", [entry["action"] for entry in self.trace()])


class PoolTest(MemoryTest):
    def test_ids(self):
        first, second = torch.xpu.MemPool(), torch.xpu.MemPool()
        self.assertEqual((first.id[0], second.id[0]), (0, 0))
        self.assertLess(first.id[1], second.id[1])

    def test_ids_of_many_threads(self):
        import threading

        pools = []
        threads = [threading.Thread(target=lambda: pools.append(torch.xpu.MemPool())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({pool.id for pool in pools}), 4)

    def test_what_is_allocated_in_it(self):
        pool = torch.xpu.MemPool()
        with torch.xpu.use_mem_pool(pool):
            inside = floats(3 * MIB)
        outside = floats(3 * MIB)
        ids = {}
        for segment in torch.xpu.memory_snapshot():
            for tensor in (inside, outside):
                if segment["address"] <= tensor.data_ptr() < segment["address"] + segment["total_size"]:
                    ids[tensor is inside] = tuple(segment["segment_pool_id"])
        self.assertEqual(ids, {True: pool.id, False: (0, 0)})

    def test_a_pool_that_goes_gives_back(self):
        pool = torch.xpu.MemPool()
        outside = floats(MIB)
        with torch.xpu.use_mem_pool(pool):
            inside = floats(30 * MIB)
        peak = torch.xpu.memory_reserved()
        del inside
        del pool
        gc.collect()
        self.assertLess(torch.xpu.memory_reserved(), peak)
        self.assertGreater(torch.xpu.memory_reserved(), 0)
        del outside

    def test_handles(self):
        first, second = torch.xpu.graph_pool_handle(), torch.xpu.graph_pool_handle()
        self.assertEqual(len({first, second, torch.xpu.MemPool().id}), 3)


class OwnAllocatorTest(ProcessTest):
    SOURCE = r"""
#include <stdlib.h>
#include <stdio.h>
static int allocations, frees;
void* own_allocate(size_t size, int device, void* queue) { ++allocations; return aligned_alloc(512, (size + 511) / 512 * 512); }
void own_free(void* memory, size_t size, int device, void* queue) { ++frees; free(memory); }
int own_allocations(void) { return allocations; }
int own_frees(void) { return frees; }
"""

    def test_an_allocator_of_ones_own(self):
        with tempfile.TemporaryDirectory(prefix="xpu_torch_test_") as folder:
            (Path(folder) / "own.c").write_text(self.SOURCE)
            library = Path(folder) / "libown.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, Path(folder) / "own.c"], check=True, timeout=60)
            source = f"""
import ctypes, gc, torch
allocator = torch.xpu.memory.XPUPluggableAllocator({str(library)!r}, "own_allocate", "own_free")
torch.xpu.memory.change_current_allocator(allocator)
tensor = torch.ones(1000, device="xpu")
print(tensor.sum().item())
del tensor
gc.collect()
torch.xpu.synchronize()
own = ctypes.CDLL({str(library)!r})
print(own.own_allocations() > 0, own.own_frees() > 0)
try:
    torch.xpu.memory.XPUPluggableAllocator({str(library)!r}, "nonsense", "own_free")
except (RuntimeError, AttributeError):
    print("refused")
"""
            finished = run_python(source)
        self.assert_prints(finished, "1000.0\nTrue True\nrefused")

    def test_it_is_too_late_after_the_first_tensor(self):
        source = """
import torch
current = torch.xpu.memory._get_current_allocator()
torch.ones(1, device="xpu")
try:
    torch.xpu.memory.change_current_allocator(current)
except RuntimeError as error:
    print("refused")
"""
        self.assert_python_prints(source, "refused")

    def test_options(self):
        source = """
import torch
torch.ones(1, device="xpu")
settings = torch.xpu.memory._snapshot()
print(settings["allocator_settings"]["expandable_segments"], settings["segments"][0]["is_expandable"])
"""
        for value in ("True", "False"):
            self.assert_python_prints(source, f"{value} {value}", PYTORCH_ALLOC_CONF=f"expandable_segments:{value}")


if __name__ == "__main__":
    unittest.main(verbosity=2)

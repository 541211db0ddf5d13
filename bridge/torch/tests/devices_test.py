"""torch.xpu's devices: what there is, which is current, what they say of themselves, when they are initialised, and processes that fork."""
import itertools
import unittest

from harness import ProcessTest, run_python
import torch

OUT_OF_RANGE = r"The device index is out of range\. It must be in \[0, 2\), but got 2\."
PROPERTIES = {
    "name": str, "platform_name": str, "vendor": str, "device_id": int, "driver_version": str, "version": str, "max_compute_units": int, "gpu_eu_count": int,
    "max_work_group_size": int, "max_num_sub_groups": int, "memory_clock_rate": int, "memory_bus_width": int, "sub_group_sizes": list, "local_mem_size": int,
    "last_level_cache_size": int, "has_fp16": bool, "has_fp64": bool, "has_atomic64": bool, "has_bfloat16_conversions": bool,
    "has_subgroup_matrix_multiply_accumulate": bool, "has_subgroup_matrix_multiply_accumulate_tensor_float32": bool, "has_subgroup_2d_block_io": bool,
    "is_integrated_gpu": bool, "total_memory": int, "gpu_subslice_count": int, "architecture": int, "type": str,
}
# In this order; without those whose value depends on nothing that a reader looks for.
REPR = ["name", "platform_name", "type", "device_id", "uuid", "driver_version", "total_memory", "local_mem_size", "max_compute_units", "memory_clock_rate",
        "memory_bus_width", "gpu_eu_count", "gpu_subslice_count", "max_work_group_size", "max_num_sub_groups", "sub_group_sizes", "has_fp16", "has_fp64",
        "has_atomic64"]


class DeviceTest(unittest.TestCase):
    def tearDown(self):
        torch.xpu.set_device(0)

    def test_there_are_devices(self):
        self.assertTrue(torch.xpu.is_available())
        self.assertEqual((torch.xpu.device_count(), torch.accelerator.device_count()), (2, 2))
        self.assertEqual(torch.accelerator.current_accelerator(), torch.device("xpu"))
        self.assertEqual(torch.accelerator.current_accelerator(check_available=True), torch.device("xpu"))
        self.assertTrue(torch.xpu._is_compiled())

    def test_setting_the_device(self):
        for device in (1, "xpu:1", torch.device("xpu", 1), torch.xpu.device(1)):
            torch.xpu.set_device(0)
            torch.xpu.set_device(device)
            self.assertEqual((torch.xpu.current_device(), torch.accelerator.current_device_index()), (1, 1))
            self.assertEqual(torch.empty(1, device="xpu").device, torch.device("xpu:1"))
        torch.xpu.set_device(-1)
        self.assertEqual(torch.xpu.current_device(), 1)
        torch.accelerator.set_device_index(0)
        self.assertEqual(torch.xpu.current_device(), 0)

    def test_an_index_out_of_range_is_named(self):
        calls = [torch.xpu.set_device, torch.xpu.synchronize, torch.accelerator.set_device_index, torch.xpu.get_device_properties, torch.xpu.get_device_name]
        for call in [*calls, torch.xpu.current_stream]:
            with self.subTest(call.__name__), self.assertRaisesRegex((RuntimeError, AssertionError), r"out of range|[Ii]nvalid"):
                call(2)
        for call in (torch.xpu.set_device, torch.accelerator.set_device_index):
            with self.assertRaisesRegex(RuntimeError, OUT_OF_RANGE):
                call(2)
        with self.assertRaisesRegex(RuntimeError, OUT_OF_RANGE):
            with torch.xpu.device(2):
                self.fail("there are two devices")
        with self.assertRaisesRegex(RuntimeError, r"out of range"):
            torch.empty(1, device="xpu:2")
        self.assertEqual(torch.xpu.current_device(), 0)

    def test_wrong_kinds_of_device(self):
        with self.assertRaisesRegex(ValueError, "Expected a xpu device, but got: cpu"):
            torch.xpu.set_device("cpu")
        with self.assertRaises((ValueError, RuntimeError)):
            torch.xpu.set_device("nonsense")

    def test_guards_nest_and_restore(self):
        guards = {
            "xpu.device": torch.xpu.device,
            "_DeviceGuard": torch.xpu._DeviceGuard,
            "accelerator.device_index": torch.accelerator.device_index,
            "device_of": lambda index: torch.xpu.device_of(torch.empty(1, device=f"xpu:{index}")),
        }
        for name, guard in guards.items():
            with self.subTest(name):
                with guard(1):
                    self.assertEqual(torch.xpu.current_device(), 1)
                    with guard(0):
                        self.assertEqual(torch.xpu.current_device(), 0)
                    self.assertEqual(torch.xpu.current_device(), 1)
                self.assertEqual(torch.xpu.current_device(), 0)
                with self.assertRaises(KeyError), guard(1):
                    raise KeyError
                self.assertEqual(torch.xpu.current_device(), 0)

    def test_guards_of_nothing(self):
        torch.xpu.set_device(1)
        for guard in (torch.xpu.device(None), torch.xpu.device(-1), torch.accelerator.device_index(None), torch.xpu.device_of(torch.empty(1))):
            with guard:
                self.assertEqual(torch.xpu.current_device(), 1)
            self.assertEqual(torch.xpu.current_device(), 1)

    def test_each_thread_begins_with_device_0(self):
        import threading

        torch.xpu.set_device(1)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.xpu.current_device()))
        thread.start()
        thread.join()
        self.assertEqual((seen, torch.xpu.current_device()), ([0], 1))

    def test_exchange(self):
        self.assertEqual(torch.xpu._exchange_device(1), 0)
        self.assertEqual(torch.xpu._exchange_device(1), 1)
        self.assertEqual(torch.xpu._maybe_exchange_device(0), 1)
        self.assertEqual(torch.xpu._exchange_device(-1), -1)

    def test_tensors_across_devices(self):
        first, second = torch.ones(3, device="xpu:0"), torch.ones(3, device="xpu:1")
        self.assertEqual((first + second.to("xpu:0")).tolist(), [2, 2, 2])
        with self.assertRaisesRegex(RuntimeError, "same device"):
            first + second
        with self.assertRaisesRegex(RuntimeError, "same device"):
            first + torch.ones(3)
        self.assertEqual((first * torch.tensor(2.0)).tolist(), [2, 2, 2])
        leaf = torch.ones(3, device="xpu:0", requires_grad=True)
        (leaf.to("xpu:1") * second * 3).sum().backward()
        self.assertEqual((leaf.grad.device, leaf.grad.tolist()), (torch.device("xpu:0"), [3, 3, 3]))

    def test_peers(self):
        for left, right in itertools.product(range(2), range(2)):
            self.assertEqual(torch.xpu.can_device_access_peer(left, right), torch.xpu.can_device_access_peer(right, left))


class PropertiesTest(unittest.TestCase):
    def tearDown(self):
        torch.xpu.set_device(0)

    def test_every_field(self):
        properties = torch.xpu.get_device_properties(0)
        for name, kind in PROPERTIES.items():
            self.assertIsInstance(getattr(properties, name), kind, name)
        self.assertIn(properties.type, ("cpu", "gpu", "accelerator", "host"))
        self.assertEqual((len(str(properties.uuid)), len(properties.uuid.bytes)), (36, 16))
        self.assertGreater(properties.total_memory, 0)
        self.assertNotEqual(str(properties.uuid), str(torch.xpu.get_device_properties(1).uuid))

    def test_the_text(self):
        text = repr(torch.xpu.get_device_properties(0))
        places = [text.find(f"{name}=") for name in REPR]
        self.assertNotIn(-1, places, text)
        self.assertEqual(places, sorted(places), text)
        self.assertRegex(text, r"device_id=0x[0-9A-Fa-f]+, .*total_memory=\d+MB, local_mem_size=\d+KB")

    def test_every_way_to_ask_gives_the_same(self):
        for device in (0, None, "xpu:0", torch.device("xpu")):
            self.assertEqual(torch.xpu.get_device_properties(device), torch.xpu.get_device_properties(0))
            self.assertEqual(torch.xpu.get_device_name(device), torch.xpu.get_device_properties(0).name)

    def test_none_is_the_current_device(self):
        for index in (0, 1, 0):
            torch.xpu.set_device(index)
            self.assertEqual(torch.xpu.get_device_properties(), torch.xpu.get_device_properties(index))
            self.assertEqual(str(torch.xpu.get_device_properties().uuid), str(torch.xpu.get_device_properties(index).uuid))

    def test_capability(self):
        properties, capability = torch.xpu.get_device_properties(0), torch.xpu.get_device_capability(0)
        for name in ("device_id", "max_work_group_size", "max_num_sub_groups"):
            self.assertGreaterEqual(capability[name], 0)
        for name in capability:
            if name.startswith("has_") or name == "driver_version":
                self.assertEqual(capability[name], getattr(properties, name))

    def test_supported_dtypes(self):
        dtypes = torch.accelerator.get_device_capability(0)["supported_dtypes"]
        for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32, torch.complex64, torch.bfloat16):
            self.assertIn(dtype, dtypes)
        properties = torch.xpu.get_device_properties(0)
        self.assertEqual((torch.float16 in dtypes, torch.float64 in dtypes), (properties.has_fp16, properties.has_fp64))
        self.assertTrue(torch.xpu.is_bf16_supported())
        self.assertIsInstance(torch.xpu.is_tf32_supported(), bool)

    def test_architectures(self):
        architectures, flags = torch.xpu.get_arch_list(), torch.xpu.get_gencode_flags()
        self.assertTrue(architectures)
        for architecture in architectures:
            self.assertIn(architecture, flags)


class LazyInitTest(ProcessTest):
    """Nothing happens until it must, and what was asked for before happens then, in order."""

    def test_what_initialises(self):
        source = """
import torch
torch.xpu.is_available(); torch.xpu.device_count(); torch.xpu._is_compiled(); torch.xpu.manual_seed(3)
torch.device("xpu"); torch.accelerator.current_accelerator()
print(torch.xpu.is_initialized(), dict(torch.xpu.memory_stats()), torch.xpu.memory_snapshot())
torch.ones(1, device="xpu")
print(torch.xpu.is_initialized(), len(torch.xpu.default_generators), torch.xpu.initial_seed())
torch.xpu.init()
"""
        self.assert_python_prints(source, "False {} []\nTrue 2 3")

    def test_the_queue_and_the_seeds(self):
        source = """
import torch
seen = []
torch.xpu._lazy_call(lambda: seen.append("first"))
torch.xpu.manual_seed_all(1)
torch.xpu.manual_seed(2)
torch.xpu._lazy_call(lambda: seen.append("second"))
print(seen)
torch.xpu.init()
print(seen, torch.xpu.initial_seed(), torch.xpu.default_generators[1].initial_seed())
torch.xpu._lazy_call(lambda: seen.append("at once"))
print(seen)
"""
        self.assert_python_prints(source, "[]\n['first', 'second'] 2 1\n['first', 'second', 'at once']")

    def test_a_queued_call_that_fails(self):
        source = """
import torch
def of_this_name():
    raise KeyError("gone wrong")
torch.xpu._lazy_call(of_this_name)
try:
    torch.xpu.init()
except Exception as error:
    text = str(error)
    print(text.startswith("XPU call failed lazily at initialization with error: 'gone wrong'"), "XPU call was originally invoked at:" in text,
          "script.py" in text, type(error.__cause__).__name__)
"""
        self.assert_python_prints(source, "True True True KeyError")

    def test_memory_functions_before(self):
        source = """
import torch
torch.xpu.empty_cache()
print(torch.xpu.memory_allocated(), torch.xpu.max_memory_reserved(), torch.xpu.memory_stats_as_nested_dict(), torch.xpu.is_initialized())
print(torch.accelerator.memory_allocated())
"""
        self.assert_python_prints(source, "0 0 {} False\n0")

    def test_many_threads_initialise_once(self):
        source = """
import threading, torch
count = []
torch.xpu._lazy_call(lambda: count.append(1))
def work():
    assert torch.ones(2, device="xpu").sum().item() == 2
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(count))
"""
        self.assert_python_prints(source, "1")


class ForkTest(ProcessTest):
    FORK = """
def child_of(function):
    import os, sys, traceback
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
    MODEL = """
def model():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4)
    data = torch.randn(2, 4)
    expected = layer(data)
    result = layer.to("xpu")(data.to("xpu"))
    result.sum().backward()
    torch.testing.assert_close(result.cpu(), expected)
    assert layer.weight.grad.is_xpu
"""

    def test_asking_before_a_fork_keeps_the_child_usable(self):
        source = "import torch\n" + self.FORK + self.MODEL + """
torch.xpu.is_available(); torch.xpu.device_count(); torch.accelerator.is_available(); torch.xpu.manual_seed(1); torch.ones(3).sum()
print(child_of(model), child_of(model))
model()
print("parent too")
"""
        self.assert_python_prints(source, "0 0\nparent too")

    def test_after_initialisation_the_child_is_told(self):
        source = "import torch\n" + self.FORK + """
torch.ones(1, device="xpu")
def child():
    print(torch.xpu._is_in_bad_fork(), torch.xpu.is_initialized())
    for call in (torch.xpu.init, lambda: torch.ones(1, device="xpu"), lambda: torch.xpu.current_stream(), lambda: torch.ones(1).to("xpu")):
        try:
            call()
        except RuntimeError as error:
            print(str(error))
    print(torch.ones(2).sum().item())
print(child_of(child))
print(torch.ones(2, device="xpu").sum().item())
"""
        said = "Cannot re-initialize XPU in forked subprocess. To use XPU with multiprocessing, you must use the 'spawn' start method"
        self.assert_python_prints(source, f"True False\n{said}\n{said}\n{said}\n{said}\n2.0\n0\n2.0")

    def test_multiprocessing_with_fork(self):
        source = "import torch, torch.multiprocessing as multiprocessing\n" + self.MODEL + """
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        children = [context.Process(target=model) for _ in range(2)]
        for child in children: child.start()
        for child in children: child.join()
        print(method, [child.exitcode for child in children])
"""
        self.assert_python_prints(source, "fork [0, 0]\nspawn [0, 0]\nforkserver [0, 0]")

    def test_a_forked_child_that_only_ends(self):
        source = """
import os, torch
tensor = torch.ones(1000, device="xpu")
stream, event = torch.xpu.Stream(), torch.xpu.Event()
event.record(stream)
child = os.fork()
if child == 0:
    del tensor, stream, event
    raise SystemExit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), tensor.sum().item())
"""
        self.assert_python_prints(source, "7 1000.0")


class RandomTest(unittest.TestCase):
    def tearDown(self):
        torch.xpu.set_device(0)

    @staticmethod
    def numbers(device="xpu"):
        return torch.rand(5, device=device).tolist()

    def test_a_seed_repeats(self):
        torch.xpu.manual_seed(3)
        first, second = self.numbers(), self.numbers()
        self.assertNotEqual(first, second)
        for seed in (torch.xpu.manual_seed, torch.manual_seed, torch.xpu.manual_seed_all):
            seed(3)
            self.assertEqual(self.numbers(), first)
            self.assertEqual(torch.xpu.initial_seed(), 3)

    def test_states(self):
        state = torch.xpu.get_rng_state()
        self.assertEqual((state.device.type, state.dtype), ("cpu", torch.uint8))
        first = self.numbers()
        torch.xpu.set_rng_state(state)
        self.assertEqual(self.numbers(), first)
        states = torch.xpu.get_rng_state_all()
        self.assertEqual(len(states), 2)
        both = self.numbers("xpu:0"), self.numbers("xpu:1")
        torch.xpu.set_rng_state_all(states)
        self.assertEqual((self.numbers("xpu:0"), self.numbers("xpu:1")), both)

    def test_the_initial_seed_follows_the_state(self):
        torch.xpu.manual_seed(11)
        state = torch.xpu.get_rng_state()
        torch.xpu.manual_seed(12)
        self.assertFalse(torch.equal(state, torch.xpu.get_rng_state()))
        torch.xpu.set_rng_state(state)
        self.assertEqual(torch.xpu.initial_seed(), 11)

    def test_devices_have_their_own(self):
        torch.xpu.manual_seed_all(5)
        first = self.numbers("xpu:0")
        self.numbers("xpu:0")
        self.assertEqual(self.numbers("xpu:1"), first)

    def test_seeds_that_are_drawn(self):
        torch.xpu.seed_all()
        seeds = {generator.initial_seed() for generator in torch.xpu.default_generators}
        self.assertEqual(len(seeds), 1)
        torch.xpu.seed()
        self.assertNotIn(torch.xpu.initial_seed(), seeds)

    def test_generators(self):
        generator = torch.Generator("xpu:1")
        self.assertEqual(generator.device, torch.device("xpu:1"))
        generator.manual_seed(4)
        first = torch.randn(4, generator=generator, device="xpu:1")
        generator.manual_seed(4)
        self.assertTrue(torch.equal(torch.randn(4, generator=generator, device="xpu:1"), first))
        self.assertEqual(torch.randperm(5, generator=generator, device="xpu:1").device, torch.device("xpu:1"))
        with self.assertRaisesRegex(RuntimeError, "generator"):
            torch.randn(4, generator=torch.Generator(), device="xpu")
        clone = generator.clone_state() if hasattr(generator, "clone_state") else generator
        self.assertEqual(clone.initial_seed(), 4)

    def test_forking_the_state(self):
        torch.manual_seed(1)
        before = torch.xpu.get_rng_state()
        with torch.random.fork_rng(device_type="xpu"):
            self.numbers()
            torch.manual_seed(99)
        self.assertTrue(torch.equal(torch.xpu.get_rng_state(), before))

    def test_dropout_and_checkpoint_repeat(self):
        from torch.utils.checkpoint import checkpoint

        data = torch.ones(64, device="xpu", requires_grad=True)
        for reentrant in (True, False):
            result = checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), data, use_reentrant=reentrant)
            (gradient,) = torch.autograd.grad(result.sum(), data) if not reentrant else (self.gradient_of(result, data),)
            self.assertEqual(gradient.tolist(), result.tolist())

    @staticmethod
    def gradient_of(result, data):
        data.grad = None
        result.sum().backward()
        return data.grad


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""When the bridge may be loaded: what a program may have done before, what makes it too late, and what is said then.

PyTorch looks for the hooks of its accelerator once. What asks for them before the bridge is there gets "none" for the life of the process.
"""
import itertools
import re
import tempfile
import unittest
from pathlib import Path

from harness import ProcessTest, run_forked, run_python

# Name -> what a program does between `import torch` and the bridge. `refused` runs code that is expected to fail without the device.
PRELUDE = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
def refused(function):
    try:
        function()
    except (AssertionError, RuntimeError):
        return
    raise SystemExit("worked without a device")
"""
HARMLESS = {
    "nothing": "",
    "a tensor": "torch.ones(2) + 1",
    "the name of the device": "torch.device('xpu')",
    "a tensor of the device": "refused(lambda: torch.ones(1, device='xpu'))",
    "a tensor moved": "refused(lambda: torch.ones(1).xpu())",
    "a module moved": "refused(lambda: torch.nn.Linear(1, 1).xpu())",
    "a seed": "torch.manual_seed(7)",
    "xpu.is_available": "assert not torch.xpu.is_available()",
    "cuda.is_available": "torch.cuda.is_available()",
    "a data loader": "list(torch.utils.data.DataLoader([1, 2]))",
    "dynamo": "import torch._dynamo",
    "extensions": "import torch.utils.cpp_extension",
    "saving and loading": "import io; file = io.BytesIO(); torch.save(torch.ones(1), file); file.seek(0); torch.load(file)",
    "shared memory": "import torch.multiprocessing; torch.ones(1).share_memory_()",
    "distributed": "import torch.distributed",
}
FREEZES = {
    "a backward pass": "torch.ones(1, requires_grad=True).sum().backward()",
    "accelerator.is_available": "torch.accelerator.is_available()",
    "accelerator.current_accelerator": "torch.accelerator.current_accelerator()",
    "accelerator.device_count": "torch.accelerator.device_count()",
    "is_pinned": "torch.ones(1).is_pinned()",
    "supported_activities": "torch.profiler.supported_activities()",
    "a profiler": "with torch.profiler.profile(): pass",
    "a stream": "torch.Stream()",
    "a generator": "refused(lambda: torch.Generator('xpu'))",
    "the configuration": "torch.__config__.show()",
    "a compiled function": "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1))",
}
# Everything that a frozen process would get wrong: the accelerator, a backward pass, the stock torch.xpu.
WORKS = """
assert torch.xpu.is_available() and torch.xpu.device_count() == 2
assert torch.accelerator.current_accelerator() == torch.device("xpu"), torch.accelerator.current_accelerator()
data = torch.arange(3.0, device="xpu", requires_grad=True)
(data * data).sum().backward()
assert data.grad.tolist() == [0, 2, 4] and data.grad.device == torch.device("xpu:0"), data.grad
with torch.xpu.stream(torch.xpu.Stream()):
    (data + 1).sum().item()
torch.accelerator.synchronize()
assert torch.profiler.ProfilerActivity.XPU in torch.profiler.supported_activities()
assert torch.ones(2).pin_memory().is_pinned()
print("works")
"""
LATE = """
BEFORE
try:
    import xpu_torch
except ImportError as error:
    assert type(error) is ImportError, type(error)
    print(error)
else:
    print("was not refused")
# What a program had before it still has.
data = torch.ones(2, requires_grad=True)
(data * 2).sum().backward()
print(data.grad.tolist(), torch.xpu.is_available(), torch.device("xpu"))
"""


class OrderTest(ProcessTest):
    # What PyTorch itself says on these occasions.
    TORCHS_OWN_WORDS = re.compile(r"^.*(?:USDT:|cpp_extension\.py).*\n", re.MULTILINE)

    def assert_prints(self, finished, expected):
        finished.stderr = self.TORCHS_OWN_WORDS.sub("", finished.stderr)
        super().assert_prints(finished, expected)


class ExplicitLoadTest(OrderTest):
    """TORCH_DEVICE_BACKEND_AUTOLOAD=0 and `import xpu_torch` by hand."""

    def assert_all_work(self, cases):
        sources = {name: f"{before}\nimport xpu_torch\n{WORKS}" for name, before in cases.items()}
        finished = run_forked(PRELUDE, sources, TORCH_DEVICE_BACKEND_AUTOLOAD=0)
        for name in cases:
            with self.subTest(name):
                self.assert_prints(finished[name], "works")

    def test_what_is_harmless_before(self):
        self.assert_all_work(HARMLESS)

    def test_pairs_of_harmless_things(self):
        chosen = ("a tensor moved", "a seed", "xpu.is_available", "distributed")
        self.assert_all_work({names: "\n".join(HARMLESS[name] for name in names) for names in itertools.permutations(chosen, 2)})

    def test_all_that_is_harmless_together(self):
        for order in (list, reversed):
            source = "\n".join([PRELUDE, *order(list(HARMLESS.values())), "import xpu_torch", WORKS])
            self.assert_prints(run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD=0), "works")

    def test_the_package_first(self):
        self.assert_prints(run_python("import xpu_torch\nimport torch\n" + WORKS, TORCH_DEVICE_BACKEND_AUTOLOAD=0), "works")

    def test_what_is_too_late(self):
        results = run_forked(PRELUDE, {name: LATE.replace("BEFORE", before) for name, before in FREEZES.items()}, TORCH_DEVICE_BACKEND_AUTOLOAD=0)
        for name, finished in results.items():
            with self.subTest(name):
                said = finished.stdout.partition("\n")[0]
                self.assert_prints(finished, f"{said}\n[2.0, 2.0] False xpu")
                self.assertIn("late", said)
                self.assertIn("import xpu_torch", said)
                self.assertIn("TORCH_DEVICE_BACKEND_AUTOLOAD", said)

    def test_a_refusal_is_repeated(self):
        source = PRELUDE + FREEZES["a backward pass"] + """
for attempt in range(2):
    try:
        import xpu_torch
    except ImportError as error:
        print("late" in str(error))
"""
        self.assert_prints(run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD=0), "True\nTrue")

    def test_a_seed_from_before_counts(self):
        for autoload in (None, "0"):
            source = PRELUDE + "torch.xpu.manual_seed_all(5)\nimport xpu_torch\nprint(torch.xpu.initial_seed())"
            self.assert_prints(run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload), "5")
        source = PRELUDE + """
torch.manual_seed(7)
import xpu_torch
first = torch.rand(3, device="xpu").tolist()
torch.manual_seed(7)
print(first == torch.rand(3, device="xpu").tolist())
"""
        self.assert_prints(run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD=0), "True")

    def test_twice_is_once(self):
        source = PRELUDE + "import xpu_torch\nstream = torch.xpu.Stream\nimport importlib\nimport xpu_torch\nprint(stream is torch.xpu.Stream)\n" + WORKS
        self.assert_prints(run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD=0), "True\nworks")


class AutoloadTest(OrderTest):
    """A plain `import torch`."""

    def test_everything_works_after_everything(self):
        # Without "refused" and "not available": here it all works.
        cases = {name: f"{action}\n{WORKS}".replace("refused(", "apply(").replace("assert not ", "assert ") for name, action in (HARMLESS | FREEZES).items()}
        for name, finished in run_forked(PRELUDE + "def apply(function):\n    function()\n", cases).items():
            with self.subTest(name):
                self.assert_prints(finished, "works")

    def test_importing_is_silent(self):
        self.assert_prints(run_python("import torch"), "")
        self.assert_prints(run_python("import warnings\nwarnings.simplefilter('error')\nimport torch"), "")

    def test_switched_off_it_leaves_torch_as_it_was(self):
        source = """
import sys, torch
assert not torch.xpu.is_available() and torch.xpu.device_count() == 0 and not torch.xpu._is_compiled()
assert torch.accelerator.current_accelerator() is None
assert not [name for name in sys.modules if name.split(".")[0] in ("xpu", "xpu_torch", "xpu_torch_autoload")]
try:
    torch.ones(1, device="xpu")
except AssertionError as error:
    print(error)
"""
        self.assert_prints(run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD=0), "Torch not compiled with XPU enabled")

    def test_importing_initialises_nothing(self):
        source = """
import threading, torch
assert not torch.xpu.is_initialized()
threads = int(open("/proc/self/status").read().split("Threads:")[1].split()[0])
assert torch.xpu.is_available() and torch.xpu.device_count() == 2
assert not torch.xpu.is_initialized()
print(int(open("/proc/self/status").read().split("Threads:")[1].split()[0]) - threads)
"""
        self.assert_prints(run_python(source), "0")

    def test_importing_costs_little(self):
        """Against torch alone, which takes a second or more: no bound in absolute time, but twice as long would be wrong."""
        def best(autoload):
            return min(run_python("import torch", TORCH_DEVICE_BACKEND_AUTOLOAD=autoload).seconds for _ in range(3))

        self.assertLess(best(None), 2 * best("0"))


class FaultTest(ProcessTest):
    """Something is wrong with the bridge: `import torch` works all the same, and one warning says what."""

    TORCH_GOES_ON = "import torch\nprint(torch.ones(2).sum().item(), torch.xpu.is_available())"

    def assert_warns(self, finished, *words):
        self.assertEqual((finished.code, finished.stdout), (0, "2.0 False\n"), finished)
        self.assertNotIn("Traceback", finished.stderr)
        self.assertEqual(finished.stderr.count("Warning"), 1, finished)
        for word in words:
            self.assertIn(word, finished.stderr)

    def broken(self, modules):
        """Runs with a folder first on the path whose modules stand before ours."""
        with tempfile.TemporaryDirectory(prefix="xpu_torch_broken_") as folder:
            for name, source in modules.items():
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(source)
            # Put before everything else, site-packages too, and still outside of what the script itself says.
            return run_python(f"import sys\nsys.path.insert(0, {folder!r})\n" + self.TORCH_GOES_ON)

    def test_a_package_that_cannot_be_imported(self):
        self.assert_warns(self.broken({"xpu_torch/__init__.py": "raise RuntimeError('broken on purpose')"}), "broken on purpose")

    def test_a_native_module_that_cannot_be_imported(self):
        import xpu_torch

        original = Path(xpu_torch.__file__).parent
        finished = self.broken({
            "xpu_torch/__init__.py": f"__path__.append({str(original)!r})\nexec(open({str(original / '__init__.py')!r}).read())",
            "xpu_torch/_native.py": "raise ImportError('libtorch_cpu.so: undefined symbol: on_purpose')",
        })
        self.assert_warns(finished, "undefined symbol")

    def test_another_version_of_torch(self):
        source = """
import sys
class Version:
    '''Makes torch call itself another version, as an upgrade does.'''
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "xpu_torch_autoload":
            sys.modules["torch"].__version__ = "2.99.0+cpu"
sys.meta_path.insert(0, Version)
"""
        finished = run_python(source + self.TORCH_GOES_ON)
        self.assert_warns(finished, "2.13.0", "2.99.0+cpu")

    def test_a_driver_that_does_not_exist(self):
        """Nothing is initialised by the import, so that nothing is said; the first use names the variable's value."""
        source = """
import torch
print(torch.ones(2).sum().item(), torch.xpu.device_count())
try:
    torch.ones(1, device="xpu")
except RuntimeError as error:
    print("nonsense" in str(error))
"""
        for variable in ("XPU_DRIVER", "XPU_TORCH_DRIVER"):
            with self.subTest(variable):
                finished = run_python(source, **{variable: "nonsense"})
                self.assertEqual(finished.code, 0, finished)
                self.assertEqual(finished.stdout, "2.0 0\nTrue\n", finished)
                self.assertNotIn("Traceback", finished.stderr)

    def test_a_device_that_does_not_exist(self):
        finished = run_python("import torch\nprint(torch.xpu.device_count())", XPU_VISIBLE_DEVICES="7")
        self.assertEqual(finished.code, 0, finished)
        self.assertEqual(finished.stdout, "0\n", finished)

    def test_no_device_is_no_fault(self):
        source = "import torch\nprint(torch.xpu.is_available(), torch.xpu.device_count(), torch.accelerator.is_available())"
        self.assert_prints(run_python(source, XPU_VISIBLE_DEVICES=""), "False 0 False")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Whole pieces of training: models, optimisers, transforms, compilation, threads, several processes, and how a program ends."""
import copy
import threading
import unittest

from harness import ProcessTest, run_python
import torch
from torch import nn


def small_models():
    image = torch.randn(4, 3, 12, 12)
    return {
        "linear": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)), torch.randn(4, 8)),
        "convolutional": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 3)), image),
        "attention": (nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Flatten(), nn.Linear(40, 3)), torch.randn(4, 5, 8)),
        "embedding": (nn.Sequential(nn.Embedding(10, 6), nn.Flatten(), nn.Linear(18, 3)), torch.randint(0, 10, (4, 3))),
    }


class TrainingTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    @staticmethod
    def train(model, data, device, make_optimiser, steps=3):
        model = copy.deepcopy(model).to(device)
        data, target = data.to(device), torch.arange(len(data), device=device) % 3
        optimiser = make_optimiser(model.parameters())
        losses = []
        for _ in range(steps):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(data), target)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses, {name: value.cpu() for name, value in model.state_dict().items()}

    def same_training(self, model, data, make_optimiser, **tolerances):
        (expected, weights), (losses, device_weights) = (self.train(model, data, device, make_optimiser) for device in ("cpu", "xpu"))
        torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(device_weights, weights, **(tolerances or {"rtol": 1e-3, "atol": 1e-4}))
        self.assertLess(losses[-1], losses[0])

    def test_models(self):
        for name, (model, data) in small_models().items():
            with self.subTest(name):
                self.same_training(model, data, lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9))

    def test_optimisers(self):
        model, data = small_models()["linear"]
        kinds = {
            "SGD": lambda **options: lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, **options),
            "Adam": lambda **options: lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, **options),
            "AdamW": lambda **options: lambda p: torch.optim.AdamW(p, lr=0.01, **options),
            "Adagrad": lambda **options: lambda p: torch.optim.Adagrad(p, lr=0.01, **options),
        }
        for name, kind in kinds.items():
            for options in ({"foreach": False}, {"foreach": True}, {"fused": True}):
                with self.subTest(name, **options):
                    self.same_training(model, data, kind(**options))
        for kind in (torch.optim.RMSprop, torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax, torch.optim.Rprop, torch.optim.ASGD, torch.optim.Adadelta):
            for foreach in (False, True):
                with self.subTest(kind.__name__, foreach=foreach):
                    expected, actual = (self.train(model, data, device, lambda p: kind(p, foreach=foreach)) for device in ("cpu", "xpu"))
                    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)

    def test_lists_of_tensors(self):
        tensors = [torch.randn(3), torch.randn(2, 2), torch.randn(1)]
        others = [torch.randn_like(t) for t in tensors]
        for name, arguments in {"add": (others,), "mul": (2.0,), "sqrt": (), "addcmul": (others, others), "lerp": (others, 0.5), "norm": ()}.items():
            with self.subTest(name):
                source = [t.abs() for t in tensors]
                expected = getattr(torch, f"_foreach_{name}")(source, *arguments)
                moved = [[t.xpu() for t in a] if isinstance(a, list) else a for a in arguments]
                actual = getattr(torch, f"_foreach_{name}")([t.xpu() for t in source], *moved)
                self.assertTrue(all(t.is_xpu for t in actual))
                torch.testing.assert_close([t.cpu() for t in actual], list(expected))
        model = nn.Linear(4, 4).xpu()
        model(torch.randn(2, 4, device="xpu")).sum().backward()
        self.assertTrue(nn.utils.clip_grad_norm_(model.parameters(), 1.0).is_xpu)

    def test_function_transforms(self):
        def loss(weight, data):
            return (data @ weight).sin().sum()

        weight, data = torch.randn(3), torch.randn(5, 3)
        for name, transform in {
            "grad": lambda w, d: torch.func.grad(loss)(w, d),
            "vmap of grad": lambda w, d: torch.func.vmap(torch.func.grad(loss), (None, 0))(w, d),
            "jacrev": lambda w, d: torch.func.jacrev(lambda v: d @ v)(w),
            "jacfwd": lambda w, d: torch.func.jacfwd(lambda v: (d @ v).tanh())(w),
            "hessian": lambda w, d: torch.func.hessian(lambda v: loss(v, d))(w),
            "functional_call": lambda w, d: torch.func.functional_call(nn.Linear(3, 1, bias=False, device=w.device), {"weight": w[None]}, (d,)),
        }.items():
            with self.subTest(name):
                result = transform(weight.xpu(), data.xpu())
                self.assertTrue(result.is_xpu)
                torch.testing.assert_close(result.cpu(), transform(weight, data), rtol=1e-4, atol=1e-5)

    def test_gradients_are_right(self):
        data = torch.randn(3, 4, dtype=torch.float64, device="xpu", requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda t: (t @ t.t()).tanh(), data))
        self.assertTrue(torch.autograd.gradgradcheck(lambda t: t.sin().prod(0), data))

    def test_functions_and_hooks_of_ones_own(self):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(context, data):
                context.save_for_backward(data)
                return data ** 3

            @staticmethod
            def backward(context, gradient):
                (data,) = context.saved_tensors
                return gradient * 3 * data ** 2

        data = torch.tensor([2.0], device="xpu", requires_grad=True)
        seen = []
        data.register_hook(lambda gradient: seen.append(gradient.device.type))
        Cube.apply(data).backward()
        self.assertEqual((data.grad.item(), seen), (12, ["xpu"]))

    def test_nested_tensors(self):
        parts = [torch.randn(2, 4), torch.randn(3, 4)]
        nested = torch.nested.nested_tensor([part.xpu() for part in parts], layout=torch.jagged)
        self.assertEqual(nested.device.type, "xpu")
        result = (nested * 2).sin()
        for part, expected in zip(result.unbind(), parts):
            torch.testing.assert_close(part.cpu(), (expected * 2).sin())

    def test_parametrisations_and_sequences(self):
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)).xpu()
        layer(torch.randn(2, 4, device="xpu")).sum().backward()
        padded = nn.utils.rnn.pad_sequence([torch.ones(2, device="xpu"), torch.ones(3, device="xpu")])
        self.assertEqual((padded.device.type, padded.sum().item()), ("xpu", 5))

    def test_sparse_says_so(self):
        """A result on another device, in silence, would be worse than an error."""
        with self.assertRaises(NotImplementedError):
            torch.eye(3, device="xpu").to_sparse()

    def test_threads(self):
        failures = []

        def work(index):
            try:
                device = f"xpu:{index % 2}"
                torch.xpu.set_device(index % 2)
                with torch.xpu.stream(torch.xpu.Stream()):
                    weight = torch.ones(16, 16, device=device, requires_grad=True)
                    for _ in range(20):
                        weight.grad = None
                        (weight @ torch.full((16, 16), float(index), device=device)).sum().backward()
                        if weight.grad.unique().tolist() != [16.0 * index]:
                            failures.append((index, weight.grad.unique().tolist()))
            except Exception as error:
                failures.append((index, repr(error)))

        threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])


class CompilationTest(unittest.TestCase):
    def function(self, data, weight):
        return torch.nn.functional.relu(data @ weight).sum(0)

    def test_compile_without_a_code_generator(self):
        data, weight = torch.randn(4, 4, device="xpu"), torch.randn(4, 4, device="xpu", requires_grad=True)
        expected = self.function(data, weight)
        (gradient,) = torch.autograd.grad(expected.sum(), weight)
        for backend in ("eager", "aot_eager"):
            with self.subTest(backend):
                torch._dynamo.reset()
                compiled = torch.compile(self.function, backend=backend, fullgraph=True)
                actual = compiled(data, weight)
                torch.testing.assert_close(actual, expected)
                torch.testing.assert_close(torch.autograd.grad(actual.sum(), weight)[0], gradient)

    def test_streams_inside(self):
        torch._dynamo.reset()

        def function(data):
            torch.xpu.current_device()
            return data + 1

        self.assertEqual(torch.compile(function, backend="eager")(torch.ones(2, device="xpu")).tolist(), [2, 2])

    def test_fake_tensors_and_export(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            self.assertEqual(torch.nn.functional.conv2d(torch.empty(1, 2, 5, 5, device="xpu"), torch.empty(3, 2, 3, 3, device="xpu")).device.type, "xpu")
        program = torch.export.export(nn.Linear(3, 3).xpu(), (torch.ones(2, 3, device="xpu"),))
        self.assertTrue(program.module()(torch.ones(2, 3, device="xpu")).is_xpu)


class DistributedTest(ProcessTest):
    SOURCE = """
import os, sys, tempfile
import torch, torch.distributed, torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

def rank(index, file, results):
    os.environ.update(RANK=str(index), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
    torch.distributed.init_process_group(init_method="file://" + file, rank=index, world_size=2)
    torch.xpu.set_device(index)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 1).xpu(), device_ids=[index])
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimiser.zero_grad()
        model(torch.full((2, 4), float(index + step), device="xpu")).sum().backward()
        optimiser.step()
    total = torch.ones(3, device="xpu") * (index + 1)
    torch.distributed.all_reduce(total)
    gathered = [torch.zeros(1, device="xpu") for _ in range(2)]
    torch.distributed.all_gather(gathered, torch.tensor([float(index)], device="xpu"))
    torch.distributed.broadcast(total, 0)
    torch.distributed.barrier()
    results[index] = (total.tolist(), [t.item() for t in gathered], str(model.module.weight.device), model.module.weight.tolist())
    torch.distributed.destroy_process_group()

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        results = torch.multiprocessing.Manager().dict()
        torch.multiprocessing.spawn(rank, (os.path.join(folder, "store"), results), nprocs=2)
    for index in range(2):
        print(*results[index][:3])
    # What one process does with both ranks' data.
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimiser.zero_grad()
        sum(model(torch.full((2, 4), float(index + step))).sum() for index in range(2)).div(2).backward()
        optimiser.step()
    for index in range(2):
        torch.testing.assert_close(torch.tensor(results[index][3]), model.weight.detach())
"""

    def test_two_ranks_without_naming_a_backend(self):
        finished = run_python(self.SOURCE, OMP_NUM_THREADS=1)
        self.assertEqual(finished.code, 0, finished)
        self.assertEqual(finished.stdout.splitlines(), [f"[3.0, 3.0, 3.0] [0.0, 1.0] xpu:{index}" for index in range(2)])


class ExitTest(ProcessTest):
    LIVE = """
import threading, torch
from torch import nn
tensor = torch.ones(1000, device="xpu:1", requires_grad=True)
stream, event = torch.xpu.Stream(), torch.xpu.Event(enable_timing=True)
event.record(stream)
model = nn.Linear(4, 4).xpu()
model(torch.ones(2, 4, device="xpu")).sum().backward()
pinned = torch.ones(10).pin_memory()
with torch.xpu.stream(stream):
    torch._C._xpu_sleep(50_000_000)
cycle = [tensor]; cycle.append(cycle)
print("end", flush=True)
"""

    def test_with_live_objects(self):
        endings = {
            "": 0,
            "raise SystemExit(3)": 3,
            "import os; os._exit(4)": 4,
            "import atexit; atexit.register(lambda: (tensor + 1).sum().item())": 0,
            "threading.Thread(target=lambda: torch.ones(5, device='xpu').sum().item()).start()": 0,
            "threading.Thread(target=lambda: torch._C._xpu_sleep(50_000_000), daemon=True).start()": 0,
            "torch.xpu.memory._record_memory_history()": 0,
        }
        for ending, code in endings.items():
            with self.subTest(ending):
                finished = run_python(self.LIVE + ending)
                self.assertEqual((finished.code, finished.stdout, finished.stderr), (code, "end\n", ""), finished)

    def test_right_behind_a_backward_pass(self):
        """A thread of autograd that still drops what it held must not find the interpreter gone."""
        source = "import torch\nt = torch.ones(4, device='xpu', requires_grad=True)\n(t * 2).sum().backward()\n"
        finished = [run_python(source) for _ in range(8)]
        self.assertEqual([(each.code, each.stderr) for each in finished], [(0, "")] * 8)

    def test_with_an_exception(self):
        finished = run_python(self.LIVE + "raise KeyError('on purpose')")
        self.assertEqual(finished.code, 1, finished)
        self.assertIn("KeyError: 'on purpose'", finished.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Tensors that travel: between devices, through files, to other libraries, out of data loaders and processes."""
import copy
import io
import itertools
import tempfile
import unittest
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

from harness import ProcessTest, run_python
import numpy
import torch


class CopyTest(unittest.TestCase):
    def test_every_way(self):
        """Contiguous or not, pinned or not, of the same or another dtype, blocking or not: between the CPU and both devices."""
        places = ("cpu", "xpu:0", "xpu:1")
        layouts = {
            "contiguous": lambda t: t,
            "transposed": lambda t: t.t(),
            "strided": lambda t: t[::2, 1:],
            "expanded": lambda t: t[:1].expand(4, -1),
            "empty": lambda t: t[:0],
            "one value": lambda t: t[1, 2],
        }
        base = torch.arange(24.0).reshape(4, 6)
        for source, target, (name, layout), non_blocking in itertools.product(places, places, layouts.items(), (False, True)):
            with self.subTest(source=source, target=target, layout=name, non_blocking=non_blocking):
                expected = layout(base)
                moved = layout(base.to(source)).to(target, non_blocking=non_blocking)
                torch.xpu.synchronize(0)
                torch.xpu.synchronize(1)
                self.assertEqual(moved.device, torch.device(target))
                self.assertTrue(torch.equal(moved.cpu(), expected))
                if expected.dim() == 2:
                    into = torch.full((expected.shape[0], 7), -1, dtype=torch.int32, device=target)
                    view = into[:, : expected.shape[1]]
                    view.copy_(layout(base.to(source)), non_blocking=non_blocking)
                    torch.xpu.synchronize(0)
                    torch.xpu.synchronize(1)
                    self.assertTrue(torch.equal(view.cpu(), expected.int()))
                    self.assertTrue((into[:, expected.shape[1]:] == -1).all())

    def test_a_pageable_source_may_go_at_once(self):
        """What a copy that does not block reads from may be a temporary."""
        expected = torch.arange(1 << 20)
        results = []
        for _ in range(10):
            temporary = expected.clone()
            results.append(temporary.to("xpu", non_blocking=True))
            temporary.fill_(-1)
            del temporary
        for result in results:
            self.assertTrue(torch.equal(result.cpu(), expected))

    def test_a_pageable_target_is_complete(self):
        data = torch.arange(1 << 20, device="xpu")
        with torch.xpu.stream(torch.xpu.Stream()):
            torch._C._xpu_sleep(50_000_000)
            result = data.to("cpu", non_blocking=True)
            torch.xpu.current_stream().synchronize()
        self.assertTrue(torch.equal(result, torch.arange(1 << 20)))

    def test_values_of_every_dtype(self):
        for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
                      torch.complex64, torch.complex128, torch.float8_e4m3fn):
            data = torch.tensor([0, 1, 2]).to(dtype)
            self.assertTrue(torch.equal(data.xpu().cpu().to(torch.complex128), data.to(torch.complex128)), dtype)
            self.assertIn("device='xpu:0'", repr(data.xpu()))

    def test_what_is_true(self):
        """Bytes other than 0 and 1 are true as well."""
        values = torch.arange(2, 256, dtype=torch.uint8, device="xpu").view(torch.bool)
        self.assertTrue(values.all().item())
        self.assertTrue((values == torch.ones_like(values)).all().item())

    def test_moved_by_other_names(self):
        data = torch.arange(3)
        self.assertEqual([t.device.type for t in (data.xpu(), data.to("xpu"), data.to(torch.device("xpu")), data.to(torch.ones(1, device="xpu")))], ["xpu"] * 4)
        self.assertEqual((data.xpu(1).device.index, data.xpu().xpu(1).get_device(), data.xpu().is_xpu, data.is_xpu), (1, 1, True, False))
        self.assertEqual(data.type(torch.float).xpu().type(), "torch.xpu.FloatTensor")
        with torch.device("xpu:1"):
            self.assertEqual((torch.zeros(2).device.index, torch.nn.Linear(2, 2).weight.device.index, torch.tensor([1.0]).device.index), (1, 1, 1))
        moved = torch.nn.Linear(2, 2).xpu()
        self.assertTrue(moved.weight.is_xpu and moved.cpu().weight.device.type == "cpu")

    def test_new_ones_like_it(self):
        data = torch.ones(2, 3, device="xpu:1")
        made = [copy.deepcopy(data), data.new_zeros(2), torch.zeros_like(data), data.clone(), torch.empty_like(data), data.new_tensor([1])]
        self.assertEqual({t.device for t in made}, {torch.device("xpu:1")})
        self.assertNotEqual(made[0].data_ptr(), data.data_ptr())
        shared = copy.deepcopy({"a": data, "b": data[0]})
        self.assertEqual(shared["a"].untyped_storage().data_ptr(), shared["b"].untyped_storage().data_ptr())


class ExchangeTest(unittest.TestCase):
    def test_numpy(self):
        with self.assertRaisesRegex(TypeError, "can't convert xpu:0 device type tensor to numpy"):
            torch.ones(3, device="xpu").numpy()
        array = numpy.arange(6.0).reshape(2, 3)
        data = torch.from_numpy(array).xpu()
        self.assertTrue((data.cpu().numpy() == array).all())
        self.assertEqual(torch.tensor(array, device="xpu").device.type, "xpu")
        self.assertEqual(torch.as_tensor(array, device="xpu:1").tolist(), array.tolist())
        self.assertEqual(int(torch.tensor(3, device="xpu")), 3)
        self.assertEqual([1, 2, 3][torch.tensor(1, device="xpu")], 2)

    def test_dlpack_shares_memory(self):
        for device in ("xpu:0", "xpu:1"):
            data = torch.arange(4.0, device=device)
            other = torch.from_dlpack(data)
            self.assertEqual((other.device, other.data_ptr()), (data.device, data.data_ptr()))
            other[0] = 9
            self.assertEqual(data.tolist(), [9, 1, 2, 3])
            capsule = torch.utils.dlpack.to_dlpack(data[1:])
            self.assertEqual(torch.utils.dlpack.from_dlpack(capsule).tolist(), [1, 2, 3])
            kind, index = data.__dlpack_device__()
            self.assertEqual((int(kind), index), (14, data.device.index))

    def test_multiprocessing_says_what_it_cannot(self):
        with self.assertRaises((RuntimeError, NotImplementedError)) as caught:
            ForkingPickler.dumps(torch.ones(3, device="xpu"))
        self.assertTrue(str(caught.exception))


class SerializationTest(ProcessTest):
    @staticmethod
    def bytes_of(thing):
        file = io.BytesIO()
        torch.save(thing, file)
        return file

    def test_round_trip(self):
        data = torch.arange(6.0, device="xpu:1")
        saved = {"all": data, "part": data[2:4], "empty": torch.empty(0, 3, device="xpu"), "half": torch.ones(2, dtype=torch.bfloat16, device="xpu"),
                 "parameter": torch.nn.Parameter(torch.ones(2, device="xpu"))}
        file = self.bytes_of(saved)
        for options in ({}, {"weights_only": True}, {"weights_only": False}):
            file.seek(0)
            loaded = torch.load(file, **options)
            for name, tensor in saved.items():
                self.assertEqual((loaded[name].device, loaded[name].dtype, loaded[name].tolist()), (tensor.device, tensor.dtype, tensor.tolist()), name)
            loaded["part"].fill_(7)
            self.assertEqual(loaded["all"].tolist(), [0, 1, 7, 7, 4, 5])
            self.assertIsInstance(loaded["parameter"], torch.nn.Parameter)

    def test_other_places(self):
        file = self.bytes_of(torch.arange(3, device="xpu:1"))
        for place, device in {"cpu": "cpu", "xpu:0": "xpu:0", torch.device("xpu"): "xpu:0"}.items():
            file.seek(0)
            self.assertEqual(torch.load(file, map_location=place).device, torch.device(device))
        file.seek(0)
        self.assertEqual(torch.load(file, map_location={"xpu:1": "xpu:0"}).device, torch.device("xpu:0"))
        file = self.bytes_of(torch.arange(3))
        file.seek(0)
        self.assertEqual(torch.load(file, map_location="xpu").device, torch.device("xpu:0"))

    def test_a_model_with_its_optimiser(self):
        model = torch.nn.Linear(3, 3).xpu()
        optimiser = torch.optim.Adam(model.parameters())
        model(torch.ones(2, 3, device="xpu")).sum().backward()
        optimiser.step()
        file = self.bytes_of({"model": model.state_dict(), "optimiser": optimiser.state_dict()})
        file.seek(0)
        other = torch.nn.Linear(3, 3).xpu()
        state = torch.load(file)
        other.load_state_dict(state["model"])
        torch.optim.Adam(other.parameters()).load_state_dict(state["optimiser"])
        self.assertTrue(torch.equal(other.weight, model.weight))

    def test_on_a_machine_without_the_bridge(self):
        with tempfile.TemporaryDirectory(prefix="xpu_torch_test_") as folder:
            path = Path(folder) / "data.pt"
            torch.save({"weight": torch.arange(3.0, device="xpu:1")}, path)
            source = f"""
import torch
print(torch.load({str(path)!r}, map_location="cpu")["weight"].tolist())
try:
    torch.load({str(path)!r})
except RuntimeError as error:
    print("map_location" in str(error) or "xpu" in str(error))
"""
            finished = run_python(source, TORCH_DEVICE_BACKEND_AUTOLOAD=0)
        self.assert_prints(finished, "[0.0, 1.0, 2.0]\nTrue")

    def test_a_device_that_is_not_here(self):
        file = self.bytes_of(torch.arange(3, device="xpu:1"))
        with tempfile.TemporaryDirectory(prefix="xpu_torch_test_") as folder:
            path = Path(folder) / "data.pt"
            path.write_bytes(file.getvalue())
            source = f"""
import torch
try:
    torch.load({str(path)!r})
except RuntimeError as error:
    print("Attempting to deserialize object on" in str(error) or "device" in str(error))
"""
            self.assert_prints(run_python(source, XPU_HOST_DEVICES=1), "True")


class PinnedTest(unittest.TestCase):
    def test_pinned_tensors(self):
        data = torch.arange(1000.0)
        pinned = data.pin_memory()
        self.assertEqual((data.is_pinned(), pinned.is_pinned(), pinned.device.type), (False, True, "cpu"))
        self.assertTrue(torch.empty(3, pin_memory=True).is_pinned())
        self.assertTrue(torch.equal(pinned.to("xpu", non_blocking=True).cpu(), data))
        back = torch.empty(1000, pin_memory=True)
        back.copy_(pinned.xpu(), non_blocking=True)
        torch.xpu.synchronize()
        self.assertTrue(torch.equal(back, data))
        self.assertTrue(pinned[10:].is_pinned())

    def test_pinned_memory_is_not_reused_too_early(self):
        stream = torch.xpu.Stream()
        with torch.xpu.stream(stream):
            torch._C._xpu_sleep(100_000_000)
            pinned = torch.full((1000,), 5.0).pin_memory()
            on_device = pinned.to("xpu", non_blocking=True)
            del pinned
            others = [torch.zeros(1000, pin_memory=True) for _ in range(4)]
        stream.synchronize()
        self.assertEqual(on_device.unique().tolist(), [5.0])
        del others

    def test_the_cache_can_be_emptied(self):
        tensor = torch.empty(1 << 20, pin_memory=True)
        del tensor
        torch.accelerator.empty_host_cache()
        self.assertTrue(torch.empty(3, pin_memory=True).is_pinned())


class DataLoaderTest(ProcessTest):
    SOURCE = """
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return torch.tensor([float(index * index)])
if __name__ == "__main__":
    torch.ones(1, device="xpu")
    for method in ("fork", "spawn"):
        for workers in (0, 2):
            loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=workers, pin_memory=True,
                                                 multiprocessing_context=method if workers else None)
            total, pinned = torch.zeros(1, device="xpu"), []
            for batch in loader:
                pinned.append(batch.is_pinned())
                total += batch.to("xpu", non_blocking=True).sum()
            print(method, workers, pinned, total.item())
"""

    def test_pinned_batches_of_workers(self):
        lines = [f"{method} {workers} [True, True, True] 506.0" for method in ("fork", "spawn") for workers in (0, 2)]
        self.assert_python_prints(self.SOURCE, "\n".join(lines))

    def test_a_spawned_worker_uses_the_device(self):
        source = """
import torch
class OnDevice(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return (torch.ones(2, device="xpu") * index).sum().item()
if __name__ == "__main__":
    print([batch.tolist() for batch in torch.utils.data.DataLoader(OnDevice(), 2, num_workers=1, multiprocessing_context="spawn")])
"""
        self.assert_python_prints(source, "[[0.0, 2.0], [4.0, 6.0]]")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Autocast on the device, by PyTorch's own lists of operators, and gradient scaling."""
import unittest

import harness  # noqa: F401  (chooses the devices)
import torch
from torch.testing._internal.autocast_test_lists import AutocastTestLists

DEVICE = torch.device("xpu")
# Of another vendor's library; with arguments that do not fit; whose cells are one operator on this device.
NOT_HERE = {"cudnn_convolution", "cudnn_convolution_transpose", "einsum", "gru_cell", "lstm_cell"}


class AutocastTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.lists = AutocastTestLists(DEVICE)

    def tearDown(self):
        self.assertFalse(torch.is_autocast_enabled("xpu"))

    def run_under_autocast(self, entry, dtype, expected_dtype, modules=(torch, torch.Tensor)):
        name, arguments, *rest = entry
        options = rest[0] if rest and isinstance(rest[0], dict) else {}
        found = False
        with torch.autocast("xpu", dtype=dtype):
            for module in modules:
                function = getattr(module, name, None)
                if function is None:
                    continue
                found = True
                result = function(*arguments, **options)
                first = result[0] if isinstance(result, (tuple, list)) else result
                if isinstance(first, torch.Tensor):
                    self.assertEqual((first.dtype, first.device.type), (expected_dtype, "xpu"), f"{name} of {module.__name__}")
                with torch.autocast("xpu", enabled=False):
                    function(*self.as_autocast_would(arguments, expected_dtype), **options)
        self.assertTrue(found, name)

    @staticmethod
    def as_autocast_would(arguments, dtype):
        def cast(value):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                return value.to(dtype)
            return type(value)(cast(item) for item in value) if isinstance(value, (list, tuple)) else value

        return cast(arguments)

    def test_operators_of_low_precision(self):
        for dtype in (torch.float16, torch.bfloat16):
            for entry in self.lists.torch_fp16 + self.lists.methods_fp16:
                if entry[0] not in NOT_HERE:
                    with self.subTest(entry[0], dtype=dtype):
                        self.run_under_autocast(entry, dtype, dtype)
            for entry in self.lists.nn_fp16:
                with self.subTest(entry[0], dtype=dtype):
                    self.run_under_autocast(entry, dtype, dtype, [torch._C._nn])

    def test_operators_that_promote(self):
        for entry in self.lists.torch_need_autocast_promote:
            with self.subTest(entry[0]):
                self.run_under_autocast(entry, torch.float16, torch.float32)
        for name, arguments, expected in self.lists.torch_expect_builtin_promote:
            with self.subTest(name):
                with torch.autocast("xpu"):
                    result = getattr(torch, name)(*arguments)
                if isinstance(result, torch.Tensor):
                    self.assertEqual(result.dtype, expected)

    def test_the_default_is_float16(self):
        left, right = torch.randn(4, 4, device="xpu"), torch.randn(4, 4, device="xpu")
        with torch.autocast("xpu"):
            self.assertEqual((torch.mm(left, right).dtype, torch.get_autocast_dtype("xpu")), (torch.float16, torch.float16))
        with torch.autocast("xpu", dtype=torch.bfloat16):
            self.assertEqual(torch.mm(left, right).dtype, torch.bfloat16)
        self.assertEqual(torch.mm(left, right).dtype, torch.float32)

    def test_values_are_those_of_the_cpu(self):
        left, right = torch.randn(16, 16), torch.randn(16, 16)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            expected = torch.mm(left, right)
        with torch.autocast("xpu", dtype=torch.bfloat16):
            actual = torch.mm(left.xpu(), right.xpu())
        torch.testing.assert_close(actual.cpu(), expected)

    def test_checkpoints(self):
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)).xpu()
        for reentrant in (True, False):
            data = torch.rand(8, 8, device="xpu", requires_grad=True)
            with torch.autocast("xpu"):
                output = torch.utils.checkpoint.checkpoint_sequential(model, 2, data, use_reentrant=reentrant)
            self.assertEqual((output.requires_grad, output.dtype), (True, torch.float16))
            output.sum().backward()
            self.assertIsNotNone(data.grad)

    def test_nested_regions(self):
        data = torch.randn(4, 4, device="xpu")
        with torch.autocast("xpu", dtype=torch.bfloat16):
            with torch.autocast("xpu", enabled=False):
                self.assertEqual((data @ data).dtype, torch.float32)
            self.assertEqual((data @ data).dtype, torch.bfloat16)


class GradScalerTest(unittest.TestCase):
    def train(self, device, spoil=False):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 4).to(device)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler(device, init_scale=1024, growth_interval=2)
        scales = []
        for step in range(4):
            optimiser.zero_grad()
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = model(torch.ones(2, 4, device=device)).float().pow(2).mean()
            scaler.scale(loss).backward()
            if spoil and step == 1:
                model.weight.grad[0, 0] = float("inf")
            scaler.unscale_(optimiser)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimiser)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales, model.weight.detach().cpu()

    def test_it_scales_as_on_the_cpu(self):
        for spoil in (False, True):
            (expected, weight), (scales, device_weight) = self.train("cpu", spoil), self.train("xpu", spoil)
            self.assertEqual(scales, expected)
            torch.testing.assert_close(device_weight, weight, rtol=1e-2, atol=1e-2)
            self.assertTrue(torch.isfinite(device_weight).all())


if __name__ == "__main__":
    unittest.main(verbosity=2)

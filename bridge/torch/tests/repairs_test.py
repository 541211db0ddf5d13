"""Operators that need a word of ours on this device, because PyTorch itself asks what kind of device it is: values and gradients against the CPU."""
import copy
import itertools
import unittest

import harness  # noqa: F401  (chooses the devices)
import torch
from torch.nn import functional

VALUE_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-4


def uneven(tensor):
    """Weights for a gradient: that of a plain sum is too often zero or one."""
    return (torch.arange(tensor.numel()) % 7 - 2.5).reshape(tensor.shape).to(tensor)


class RepairTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def both(self, function, *inputs, modules=()):
        """`function(device, inputs, modules)` on the CPU and on the device: results, gradients of inputs and of parameters are the same."""
        outcomes = []
        for device in ("cpu", "xpu"):
            arguments = [t.detach().clone().to(device).requires_grad_(t.is_floating_point()) for t in inputs]
            copies = [copy.deepcopy(module).to(device) for module in modules]
            results = function(device, arguments, copies)
            results = [results] if isinstance(results, torch.Tensor) else list(results)
            torch.autograd.backward(results, [uneven(result) for result in results])
            parameters = [parameter for module in copies for parameter in module.parameters()]
            gradients = [t.grad for t in arguments + parameters if t.requires_grad]
            for tensor in results + [gradient for gradient in gradients if gradient is not None]:
                self.assertEqual(tensor.device.type, device)
            outcomes.append((results, gradients))
        (expected, expected_gradients), (actual, actual_gradients) = outcomes
        self.assertEqual(len(expected), len(actual))
        self.assertTrue(any(gradient is not None and gradient.abs().sum() > 0 for gradient in expected_gradients), "the test compares no gradient")
        for left, right in zip(expected, actual):
            torch.testing.assert_close(right.detach().cpu(), left.detach(), rtol=VALUE_TOLERANCE, atol=VALUE_TOLERANCE)
        for left, right in zip(expected_gradients, actual_gradients):
            self.assertEqual(left is None, right is None)
            if left is not None:
                torch.testing.assert_close(right.cpu(), left, rtol=GRADIENT_TOLERANCE, atol=GRADIENT_TOLERANCE)


class ConvolutionTest(RepairTest):
    def convolve(self, dimensions, transposed, groups, bias, **options):
        name = f"conv_transpose{dimensions}d" if transposed else f"conv{dimensions}d"
        inputs, outputs, length = 4, 6, {1: 11, 2: 7, 3: 5}[dimensions]
        shape = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
        tensors = [torch.randn(2, inputs, *[length] * dimensions), torch.randn(*shape, *[3] * dimensions)] + ([torch.randn(outputs)] if bias else [])
        with self.subTest(name, groups=groups, bias=bias, **options):
            self.both(lambda device, arguments, modules: getattr(functional, name)(*arguments, groups=groups, **options), *tensors)

    def test_every_form(self):
        options = [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}]
        for dimensions, groups, bias, option in itertools.product((1, 2, 3), (1, 2), (False, True), options):
            self.convolve(dimensions, False, groups, bias, **option)
            self.convolve(dimensions, True, groups, bias, **option)

    def test_the_output_padding_of_transposed_ones(self):
        for dimensions in (1, 2, 3):
            self.convolve(dimensions, True, 1, True, stride=2, output_padding=1)

    def test_padding_by_name_and_by_side(self):
        for padding in ("same", "valid", (2, 1)):
            self.convolve(2, False, 1, True, padding=padding)

    def test_depthwise_and_without_batch(self):
        self.both(lambda device, t, modules: functional.conv2d(*t, groups=4), torch.randn(2, 4, 6, 6), torch.randn(4, 1, 3, 3), torch.randn(4))
        self.both(lambda device, t, modules: functional.conv2d(*t), torch.randn(4, 6, 6), torch.randn(3, 4, 3, 3))

    def test_channels_last_and_strided_inputs(self):
        tensors = torch.randn(2, 4, 6, 6), torch.randn(3, 4, 3, 3), torch.randn(3)
        self.both(lambda device, t, modules: functional.conv2d(t[0].to(memory_format=torch.channels_last), *t[1:]), *tensors)
        self.both(lambda device, t, modules: functional.conv2d(t[0].transpose(2, 3)[..., ::2], *t[1:]), torch.randn(2, 4, 12, 6), *tensors[1:])

    def test_gradients_that_nobody_wants_are_not_made(self):
        weight = torch.randn(3, 4, 3, 3, device="xpu", requires_grad=True)
        image = torch.randn(1, 4, 6, 6, device="xpu")
        functional.conv2d(image, weight).sum().backward()
        self.assertIsNone(image.grad)
        self.assertEqual(weight.grad.shape, weight.shape)

    def test_the_second_derivative(self):
        outcomes = []
        image, weight = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3)
        for device in ("cpu", "xpu"):
            t, w = image.to(device).requires_grad_(), weight.to(device).requires_grad_()
            (first,) = torch.autograd.grad(functional.conv2d(t, w).pow(2).sum(), t, create_graph=True)
            outcomes.append([gradient.cpu() for gradient in torch.autograd.grad(first.pow(2).sum(), (t, w))])
        torch.testing.assert_close(*outcomes, rtol=1e-4, atol=1e-3)


class AttentionTest(RepairTest):
    def attend(self, query, key, value, mask=None, **options):
        def run(device, arguments, modules):
            return functional.scaled_dot_product_attention(*arguments, attn_mask=None if mask is None else mask.to(device), **options)

        self.both(run, query, key, value)

    def heads(self, count=4, length=6, batch=2):
        return torch.randn(batch, count, length, 8)

    def test_plain_and_causal(self):
        for options in ({}, {"is_causal": True}, {"dropout_p": 0.0}, {"scale": 0.3}):
            with self.subTest(**options):
                self.attend(self.heads(), self.heads(), self.heads(), **options)

    def test_masks(self):
        allowed = torch.rand(6, 6) > 0.3
        allowed[:, 0] = True
        for name, mask in {"bool": allowed, "float": torch.randn(6, 6), "of every head": torch.randn(2, 4, 6, 6), "broadcast": allowed[None, None]}.items():
            with self.subTest(name):
                self.attend(self.heads(), self.heads(), self.heads(), mask)

    def test_a_mask_learns(self):
        self.both(lambda device, t, modules: functional.scaled_dot_product_attention(*t[:3], attn_mask=t[3]), *[self.heads()] * 3, torch.randn(6, 6))

    def test_grouped_queries_and_other_lengths(self):
        self.attend(self.heads(4), self.heads(2), self.heads(2), enable_gqa=True)
        self.attend(self.heads(length=5), self.heads(length=7), self.heads(length=7))
        self.attend(self.heads(4, 5), self.heads(2, 7), self.heads(2, 7), is_causal=True, enable_gqa=True)

    def test_dropout_is_of_the_seed(self):
        query = self.heads().to("xpu")
        results = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            results.append(functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5).cpu())
        self.assertTrue(torch.equal(results[0], results[1]))
        self.assertFalse(torch.equal(results[0], results[2]))

    def test_modules(self):
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.both(lambda device, t, modules: modules[0](t[0]), torch.randn(2, 5, 16), modules=[layer])
        attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        self.both(lambda device, t, modules: modules[0](*t, need_weights=True), *[torch.randn(2, 5, 16) for _ in range(3)], modules=[attention])
        layer.eval()
        with torch.inference_mode():
            data = torch.randn(2, 5, 16)
            expected = layer(data)
            torch.testing.assert_close(layer.to("xpu")(data.to("xpu")).cpu(), expected, rtol=1e-4, atol=1e-4)


class RecurrentTest(RepairTest):
    def test_lstm_and_gru(self):
        forms = [
            {},
            {"num_layers": 2},
            {"bidirectional": True},
            {"num_layers": 2, "bidirectional": True},
            {"bias": False},
            {"batch_first": True},
        ]
        for kind, options in itertools.product((torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN), forms):
            with self.subTest(kind.__name__, **options):
                module = kind(4, 5, **options)
                self.both(lambda device, t, modules: self.flat(modules[0](t[0])), torch.randn(6, 3, 4), modules=[module])

    @staticmethod
    def flat(result):
        output, state = result
        return [output, *(state if isinstance(state, tuple) else [state])]

    def test_lstm_with_projection(self):
        self.both(lambda device, t, modules: self.flat(modules[0](t[0])), torch.randn(6, 3, 4), modules=[torch.nn.LSTM(4, 5, proj_size=2)])

    def test_initial_states_learn(self):
        def run(device, t, modules):
            return self.flat(modules[0](t[0], (t[1], t[2])))

        self.both(run, torch.randn(6, 3, 4), torch.randn(1, 3, 5), torch.randn(1, 3, 5), modules=[torch.nn.LSTM(4, 5)])

    def test_packed_sequences(self):
        def run(device, t, modules):
            packed = torch.nn.utils.rnn.pack_padded_sequence(t[0], [6, 4, 1])
            return torch.nn.utils.rnn.pad_packed_sequence(modules[0](packed)[0])[0]

        for kind in (torch.nn.LSTM, torch.nn.GRU):
            with self.subTest(kind.__name__):
                self.both(run, torch.randn(6, 3, 4), modules=[kind(4, 5)])

    def test_single_cells(self):
        states = torch.randn(3, 5), torch.randn(3, 5)
        self.both(lambda device, t, modules: modules[0](t[0], (t[1], t[2])), torch.randn(3, 4), *states, modules=[torch.nn.LSTMCell(4, 5)])
        self.both(lambda device, t, modules: modules[0](*t), torch.randn(3, 4), torch.randn(3, 5), modules=[torch.nn.GRUCell(4, 5)])


class NormalisationTest(RepairTest):
    def test_group_norm_with_gradients_of_any_layout(self):
        forms = {
            "plain": lambda t: t,
            "transposed": lambda t: t.transpose(1, 2),
            "expanded": lambda t: t.sum(2, keepdim=True).expand_as(t),
        }
        for affine in (True, False):
            module = torch.nn.GroupNorm(2, 6, affine=affine)
            for name, after in forms.items():
                with self.subTest(name, affine=affine):
                    self.both(lambda device, t, modules: after(modules[0](t[0])), torch.randn(3, 6, 5), modules=[module])

    def test_group_norm_of_channels_last(self):
        module = torch.nn.GroupNorm(2, 6)
        self.both(lambda device, t, modules: modules[0](t[0].to(memory_format=torch.channels_last)), torch.randn(2, 6, 4, 4), modules=[module])

    def test_layer_norm_over_one_value_is_the_bias(self):
        """A detour over other operators gives rounding errors times 1 / sqrt(eps)."""
        data = torch.randn(4, 1)
        weight, bias = torch.randn(1), torch.randn(1)
        expected = functional.layer_norm(data, (1,), weight, bias)
        self.assertTrue(torch.equal(functional.layer_norm(data.xpu(), (1,), weight.xpu(), bias.xpu()).cpu(), expected))

    def test_layer_batch_and_instance_norm(self):
        for module in (torch.nn.LayerNorm((6, 5)), torch.nn.BatchNorm1d(6), torch.nn.InstanceNorm1d(6, affine=True)):
            with self.subTest(type(module).__name__):
                self.both(lambda device, t, modules: modules[0](t[0]), torch.randn(3, 6, 5), modules=[module])

    def test_batch_norm_keeps_its_statistics_on_the_device(self):
        module, data = torch.nn.BatchNorm1d(4), torch.randn(8, 4) * 3 + 1
        device_module = copy.deepcopy(module).to("xpu")
        for each, values in ((module, data), (device_module, data.xpu())):
            each(values)
        self.assertTrue(device_module.running_mean.is_xpu)
        torch.testing.assert_close(device_module.running_mean.cpu(), module.running_mean)
        torch.testing.assert_close(device_module.running_var.cpu(), module.running_var)
        self.assertEqual(device_module.num_batches_tracked.item(), 1)


class BareTensorTest(RepairTest):
    def test_zeros_without_memory(self):
        """Functions whose derivative is zero give tensors without a byte behind them; all of what may follow works."""
        data = torch.randn(5, device="xpu", requires_grad=True)
        for function in (torch.sgn, torch.sign, torch.round, torch.floor, torch.trunc):
            (gradient,) = torch.autograd.grad(function(data).sum(), data)
            self.assertEqual(gradient.tolist(), [0.0] * 5)
        zeros = torch._efficientzerotensor((3,), device="xpu")
        self.assertEqual((zeros + 1).tolist(), [1.0] * 3)
        self.assertEqual((torch.ones(3, device="xpu") * zeros).tolist(), [0.0] * 3)
        self.assertEqual(zeros.cpu().tolist(), [0.0] * 3)

    def test_forward_derivatives(self):
        data = torch.randn(4)
        expected = torch.func.jvp(lambda t: torch.sgn(t) * t.sin(), (data,), (torch.ones(4),))
        actual = torch.func.jvp(lambda t: torch.sgn(t) * t.sin(), (data.xpu(),), (torch.ones(4, device="xpu"),))
        torch.testing.assert_close([t.cpu() for t in actual], list(expected))

    def test_resize_to_the_same_sizes_keeps_strides(self):
        tensor = torch.empty_strided((2, 3), (1, 2), device="xpu")
        address = tensor.data_ptr()
        tensor.resize_(2, 3)
        self.assertEqual((tensor.stride(), tensor.data_ptr()), ((1, 2), address))
        tensor.resize_(3, 2)
        self.assertEqual(tensor.stride(), (2, 1))

    def test_resize_keeps_what_was_there(self):
        tensor = torch.arange(4.0, device="xpu")
        tensor.resize_(2)
        self.assertEqual(tensor.tolist(), [0, 1])
        tensor.resize_(1000)
        self.assertEqual(tensor[:4].tolist(), [0, 1, 2, 3])
        self.assertGreaterEqual(tensor.untyped_storage().nbytes(), 4000)

    def test_storages(self):
        tensor = torch.arange(6.0, device="xpu")
        other = torch.empty(0, device="xpu").set_(tensor.untyped_storage(), 2, (2, 2), (2, 1))
        self.assertEqual((other.tolist(), other.data_ptr() - tensor.data_ptr()), ([[2, 3], [4, 5]], 8))
        other.fill_(9)
        self.assertEqual(tensor.tolist(), [0, 1, 9, 9, 9, 9])
        storage = tensor.untyped_storage()
        self.assertEqual(storage.device, torch.device("xpu:0"))
        self.assertEqual(storage.cpu().nbytes(), 24)
        storage.resize_(0)
        self.assertEqual(storage.nbytes(), 0)

    def test_what_shares_memory_goes_on_to(self):
        base = torch.zeros(4, 4, device="xpu")
        for view in (base.t(), base[1:3], base.view(2, 8), base.diagonal(), base.as_strided((2,), (5,)), base.unfold(0, 2, 1), base.real, base.detach()):
            view.add_(1)
            self.assertEqual(view.untyped_storage().data_ptr(), base.untyped_storage().data_ptr())
        expected = torch.zeros(4, 4)
        for view in (expected.t(), expected[1:3], expected.view(2, 8), expected.diagonal(), expected.as_strided((2,), (5,))):
            view.add_(1)
        expected.unfold(0, 2, 1).add_(1)
        expected.add_(1).add_(1)
        self.assertTrue(torch.equal(base.cpu(), expected))

    def test_conjugates_without_memory_of_their_own(self):
        values = torch.randn(3, 3, dtype=torch.complex64)
        for form in (lambda t: t.conj() + 1, lambda t: t.conj().imag * 2, lambda t: t.mH @ t, lambda t: t.conj().resolve_conj(), lambda t: t.conj_physical()):
            torch.testing.assert_close(form(values.xpu()).cpu(), form(values))

    def test_a_result_may_come_back_conjugated(self):
        """Solving from the right leaves a conjugated view in the result that the caller handed in."""
        matrix, right = torch.randn(3, 3, dtype=torch.complex64), torch.randn(4, 3, dtype=torch.complex64)
        factors = torch.linalg.lu_factor(matrix)
        expected = torch.linalg.lu_solve(*factors, right, left=False)
        actual = torch.linalg.lu_solve(*[factor.xpu() for factor in factors], right.xpu(), left=False)
        torch.testing.assert_close(actual.cpu(), expected)

    def test_operators_that_ask_for_the_kind_of_device(self):
        data = torch.tensor([[1, 2, 2], [3, 3, 1]])
        self.assertEqual(data.xpu().mode()[0].tolist(), data.mode()[0].tolist())
        out = torch.empty(0, dtype=torch.int64, device="xpu"), torch.empty(0, dtype=torch.int64, device="xpu")
        torch.mode(data.xpu(), out=out)
        self.assertEqual(out[0].tolist(), data.mode()[0].tolist())
        values = torch.randn(3, 3, dtype=torch.complex64)
        torch.testing.assert_close(torch.linalg.svdvals(values.xpu()).cpu(), torch.linalg.svdvals(values))
        torch.testing.assert_close(values.xpu().conj_physical_().cpu(), values.conj())


if __name__ == "__main__":
    unittest.main(verbosity=2)

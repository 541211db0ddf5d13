"""Operators with a kernel of their own: values, types, shapes and errors are the CPU's, in every layout and size, and records say that it was a kernel."""
import gzip
import itertools
import json
import tempfile
import threading
import unittest
from pathlib import Path

import harness
import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}
FLOATING = tuple(TOLERANCE)
SHORT = 32 * 1024


def uneven(*shape, dtype=torch.float32, start=0):
    """Values between -2 and 2 without a pattern, none of them 0."""
    count = 1
    for size in shape:
        count *= size
    return ((((torch.arange(count, dtype=torch.float64) + start) * 0.7548776662).remainder(1.0) - 0.5) * 4 + 1e-3).reshape(shape).to(dtype)


def positive(*shape, dtype=torch.float32, start=0):
    return uneven(*shape, dtype=dtype, start=start).abs() + 0.1


UNARY = [torch.sqrt, torch.neg, torch.abs, torch.reciprocal, torch.exp, torch.log, torch.tanh, torch.sigmoid, torch.rsqrt, torch.cos, torch.sin]
BINARY = [torch.add, torch.sub, torch.mul, torch.div]
COMPARISONS = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
WITHOUT_OUT = [torch.relu, functional.gelu, lambda t: functional.gelu(t, approximate="tanh"), functional.silu]


class KernelTest(unittest.TestCase):
    def assert_same(self, actual, expected, message=""):
        if isinstance(expected, (tuple, list)):
            self.assertEqual(len(actual), len(expected), message)
            for one, other in zip(actual, expected):
                self.assert_same(one, other, message)
            return
        self.assertEqual(actual.device.type, "xpu", message)
        self.assertEqual(actual.stride(), expected.stride(), message)
        tolerance = TOLERANCE.get(expected.dtype, 0)
        torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda text: f"{message}: {text}")

    def both(self, function, *inputs, message=""):
        """What `function` makes of the same tensors on the CPU and on the device is the same, and so are the tensors afterwards."""
        on_cpu = [t.clone(memory_format=torch.preserve_format) if isinstance(t, torch.Tensor) else t for t in inputs]
        on_device = [t.to("xpu") if isinstance(t, torch.Tensor) else t for t in inputs]
        expected = function(*on_cpu)
        actual = function(*on_device)
        message = message or getattr(function, "__name__", str(function))
        self.assert_same(actual, expected, message)
        for after, wanted in zip(on_device, on_cpu):
            if isinstance(wanted, torch.Tensor):
                self.assert_same(after, wanted, f"{message}, an input afterwards")

    def same_error(self, function, *inputs):
        messages = []
        for device in ("cpu", "xpu"):
            with self.assertRaises(RuntimeError) as caught:
                function(*[t.to(device) if isinstance(t, torch.Tensor) else t for t in inputs])
            messages.append(str(caught.exception).splitlines()[0])
        self.assertEqual(messages[1], messages[0])


class ElementwiseTest(KernelTest):
    SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (5, 13), (2, 3, 4), (SHORT - 1,), (SHORT + 1,), (70_001,)]

    def layouts(self, *shape, dtype):
        """Tensors of one shape that lie in memory in different ways."""
        yield positive(*shape, dtype=dtype)
        if len(shape) >= 2:
            yield positive(*reversed(shape), dtype=dtype).permute(*reversed(range(len(shape))))
        if shape:
            yield positive(*shape[:-1], shape[-1] * 2, dtype=dtype)[..., ::2]
            yield positive(*shape[:-1], 1, dtype=dtype).expand(shape)

    def test_functions_of_one_tensor(self):
        for function, shape, dtype in itertools.product(UNARY + WITHOUT_OUT, self.SHAPES, FLOATING):
            for tensor in self.layouts(*shape, dtype=dtype):
                self.both(function, tensor, message=f"{function} {shape} {dtype} {tensor.stride()}")

    def test_relu_and_threshold_keep_what_is_not_a_number(self):
        special = torch.tensor([float("nan"), -0.0, 0.0, float("inf"), -float("inf"), -1.0, 1.0] * 3)
        self.both(torch.relu, special)
        self.both(lambda t: torch.ops.aten.threshold_backward(t * 2, t, 0), special)

    def test_arithmetic_of_two_tensors(self):
        for function, shape, dtype in itertools.product(BINARY, self.SHAPES, FLOATING + (torch.int64, torch.int32)):
            for left, right in zip(self.layouts(*shape, dtype=dtype), self.layouts(*shape, dtype=dtype)):
                right = right + 1
                self.both(function, left, right, message=f"{function} {shape} {dtype} {left.stride()}")
            self.both(function, positive(*shape, dtype=dtype), 2.5 if dtype.is_floating_point else 3)
            if shape:
                self.both(function, positive(*shape, dtype=dtype), positive(shape[-1], dtype=dtype) + 1)
                self.both(function, positive(1, *shape, dtype=dtype), positive(*shape, dtype=dtype) + 1)
        for function in BINARY:
            self.both(function, uneven(4, 5), uneven(4, 5).t().contiguous().t())
            self.both(function, uneven(4, 5), uneven(4, 5, dtype=torch.float64))
            self.both(function, uneven(4, 5), torch.arange(1, 21).reshape(4, 5))
            self.both(function, torch.tensor(3.0), uneven(6, dtype=torch.bfloat16))
            self.both(lambda a, f=function: f(a, torch.tensor(2.0, dtype=torch.float64)), uneven(6))

    def test_scaled_by_alpha(self):
        for dtype, alpha in itertools.product(FLOATING, (2, -0.5, 0)):
            self.both(lambda a, b, x=alpha: torch.add(a, b, alpha=x), uneven(300, dtype=dtype), uneven(300, dtype=dtype, start=9))
            self.both(lambda a, b, x=alpha: torch.sub(a, b, alpha=x), uneven(3, 5, dtype=dtype), uneven(5, dtype=dtype))
            self.both(lambda a, x=alpha: torch.sub(a, 1.5, alpha=x), uneven(300, dtype=dtype))
        self.both(lambda a, b: torch.add(a, b, alpha=3), torch.arange(9), torch.arange(9))
        self.same_error(lambda a, b: torch.add(a, b, alpha=1.5), torch.arange(9), torch.arange(9))
        self.same_error(lambda a, b: torch.add(a, b, alpha=1.5, out=torch.empty_like(a)), torch.arange(9), torch.arange(9))
        self.same_error(lambda a, b: torch.sub(a, b), torch.ones(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool))

    def test_three_tensors(self):
        for dtype, shape in itertools.product(FLOATING, [(), (0,), (65,), (SHORT + 3,)]):
            tensors = [positive(*shape, dtype=dtype, start=start) for start in (0, 5, 11)]
            self.both(lambda a, b, c: torch.addcmul(a, b, c, value=0.5), *tensors)
            self.both(lambda a, b, c: torch.addcdiv(a, b, c, value=-2), *tensors)
            self.both(lambda a, b, c: a.addcmul_(b, c, value=0.25).addcdiv_(b, c), *tensors)
            for weight in (0.1, 0.5, 0.9, 1.5):
                self.both(lambda a, b, c, w=weight: torch.lerp(a, b, w), *tensors)
        self.both(torch.addcmul, uneven(4, 3), uneven(3), uneven(4, 1))
        self.both(torch.addcdiv, uneven(4, 3), uneven(3), positive(4, 1))
        self.both(lambda a, b: torch.lerp(a, b, 0.3), uneven(4, 3), uneven(3))

    def test_gradients_of_activations(self):
        aten = torch.ops.aten
        functions = [lambda g, t: aten.threshold_backward(g, t, 0.2), aten.sigmoid_backward, aten.tanh_backward, aten.gelu_backward, aten.silu_backward,
                     lambda g, t: aten.gelu_backward(g, t, approximate="tanh")]
        for function, dtype, shape in itertools.product(functions, FLOATING, [(), (0,), (4, 9), (SHORT + 5,)]):
            self.both(function, uneven(*shape, dtype=dtype), uneven(*shape, dtype=dtype, start=3))
            if len(shape) == 2:
                self.both(function, uneven(9, 4, dtype=dtype).t(), uneven(*shape, dtype=dtype))

    def test_in_place(self):
        for dtype, shape in itertools.product(FLOATING, [(), (0,), (4, 9), (SHORT + 5,)]):
            left, right = positive(*shape, dtype=dtype), positive(*shape, dtype=dtype, start=7)
            for name in ("add_", "sub_", "mul_", "div_"):
                self.both(lambda a, b, n=name: getattr(a, n)(b), left, right)
                self.both(lambda a, n=name: getattr(a, n)(1.75), left)
                self.both(lambda a, n=name: getattr(a, n)(a), left)
            for name in ("sqrt_", "neg_", "abs_", "reciprocal_", "relu_", "exp_", "log_", "tanh_", "sigmoid_"):
                self.both(lambda a, n=name: getattr(a, n)(), left)
        self.both(lambda a, b: a[:, ::2].add_(b), uneven(4, 10), uneven(4, 5))
        self.both(lambda a, b: a[1].mul_(b), uneven(4, 10), uneven(10))
        self.same_error(lambda a, b: a.add_(b), uneven(3), uneven(4, 3))
        self.same_error(lambda a, b: a.add_(b), torch.arange(3), uneven(3))
        self.same_error(lambda a, b: a.expand(4, 3).add_(b), uneven(1, 3), uneven(4, 3))

    def test_results_that_are_given(self):
        for function, dtype in itertools.product(UNARY, FLOATING):
            self.both(lambda a, f=function: f(a, out=torch.empty_like(a)), positive(300, dtype=dtype))
            self.both(lambda a, f=function: f(a, out=a), positive(300, dtype=dtype))
            self.both(lambda a, f=function: f(a, out=torch.empty(10, 300, dtype=a.dtype, device=a.device).t()[:, 3]), positive(300, dtype=dtype))
        for function in BINARY + COMPARISONS:
            self.both(lambda a, b, f=function: f(a, b, out=torch.empty(0, dtype=torch.double, device=a.device)), uneven(4, 3), uneven(3))
            self.both(lambda a, b, f=function: f(a, b, out=torch.empty(4, 3, dtype=torch.double, device=a.device)), uneven(4, 3), uneven(3))
            self.both(lambda a, b, f=function: f(a, b, out=torch.empty(3, 4, device=a.device).t()), positive(4, 3), positive(3))
            if function in BINARY:
                self.same_error(lambda a, f=function: f(a[:-1], a[:-1], out=a[1:]), uneven(9))
        self.same_error(lambda a: torch.sqrt(a, out=torch.empty(3, dtype=torch.long, device=a.device)), positive(3))
        self.same_error(lambda a: torch.sqrt(a[:-1], out=a[1:]), positive(9))
        self.same_error(lambda a: torch.exp(a, out=torch.empty(1, device=a.device).expand(9)), positive(9))

    def test_a_result_beside_its_input_in_one_buffer(self):
        for size in (100, SHORT + 1):
            self.both(lambda a, n=size: torch.sqrt(a[:n], out=a[n:]), positive(2 * size))
            self.both(lambda a, n=size: a[n:].add_(a[:n]), positive(2 * size))

    def test_comparisons_and_choices(self):
        for function, dtype in itertools.product(COMPARISONS, FLOATING + (torch.int64, torch.int32, torch.bool)):
            left, right = uneven(4, 9, dtype=torch.float64).round().to(dtype), uneven(9, start=4, dtype=torch.float64).round().to(dtype)
            self.both(function, left, right)
            self.both(lambda a, f=function: f(a, 1), left)
            self.both(lambda a, f=function: f(a, 0.5), left)
        for dtype in FLOATING + (torch.int64, torch.bool):
            left, right = uneven(4, 9, dtype=torch.float64).to(dtype), uneven(9, dtype=torch.float64).to(dtype)
            condition = uneven(4, 1) > 0
            self.both(torch.where, condition, left, right)
            self.both(lambda c, a: torch.where(c, a, 1), condition, left)
        self.both(lambda a: a.clamp(-0.5, 0.75), uneven(200))
        self.both(lambda a: a.clamp(min=0.1), uneven(200, dtype=torch.bfloat16))
        self.both(lambda a: a.clamp(max=0.1), torch.arange(-3, 9))
        self.both(lambda a: a ** 3, uneven(200))
        self.both(lambda a: a ** 0.5, positive(200, dtype=torch.float64))

    def test_negated_and_conjugated_views(self):
        self.both(lambda a: torch.complex(a, a * 2).conj().imag + 1, uneven(9))
        self.both(lambda a: torch.complex(a, a * 2).conj() * 2, uneven(9))

    def test_seven_dimensions(self):
        self.both(torch.mul, uneven(2, 1, 2, 1, 3, 2, 2), uneven(2, 3, 2, 2, 1, 2, 1))
        self.both(lambda a: a.permute(6, 5, 4, 3, 2, 1, 0).exp(), uneven(2, 1, 2, 1, 3, 2, 2))


class ReductionTest(KernelTest):
    def test_sums_and_means(self):
        for dtype, (shape, dimensions) in itertools.product(FLOATING, [((4, 5, 6), 1), ((4, 5, 6), (0, 2)), ((4, 5, 6), ()), ((), ()), ((7,), -1), ((0, 3), 0),
                                                                       ((300, 400), 0), ((300, 400), (0, 1))]):
            for keepdim in (False, True):
                self.both(lambda t, d=dimensions, k=keepdim: t.sum(d, keepdim=k), uneven(*shape, dtype=dtype))
                if 0 not in shape:
                    self.both(lambda t, d=dimensions, k=keepdim: t.mean(d, keepdim=k), uneven(*shape, dtype=dtype))
        self.both(torch.sum, uneven(5, 6).t())
        self.both(torch.mean, uneven(5, 6)[:, ::2])
        self.both(lambda t: t.sum(0), torch.arange(12).reshape(3, 4))
        self.both(lambda t: (t > 0).sum(), uneven(100))
        self.both(lambda t: t.sum(0, dtype=torch.float64), uneven(5, 6))
        self.both(lambda t: torch.sum(t, 1, out=torch.empty(5, device=t.device)), uneven(5, 6))
        self.both(lambda t: torch.mean(t, 1, out=torch.empty(0, device=t.device)), uneven(5, 6))
        for bad in (2, (0, 0)):
            with self.assertRaises((IndexError, RuntimeError)) as expected:
                uneven(5, 6).sum(bad)
            with self.assertRaisesRegex(type(expected.exception), ".") as actual:
                uneven(5, 6).to("xpu").sum(bad)
            self.assertEqual(str(actual.exception).splitlines()[0], str(expected.exception).splitlines()[0])

    def test_norms(self):
        norm = torch.linalg.vector_norm
        for dtype, order in itertools.product((torch.float32, torch.float64, torch.bfloat16), (2, 1, 0, 3.5, float("inf"))):
            for options in ({}, {"dim": 1}, {"dim": (0, 1), "keepdim": True}):
                self.both(lambda t, o=order, k=options: norm(t, o, **k), uneven(20, 30, dtype=dtype) / 4)
        self.both(lambda t: norm(t, out=torch.empty(0, device=t.device)), uneven(300, 200))
        self.both(norm, uneven(0))
        self.same_error(lambda t: norm(t, float("inf")), uneven(0))
        self.both(lambda t: norm(t, dtype=torch.float64), uneven(9))

    def test_whether_all_are_true(self):
        for shape, dimension in itertools.product([(4, 5), (0, 5), (4, 0), (300, 200)], (0, -1)):
            for keepdim in (False, True):
                self.both(lambda t, d=dimension, k=keepdim: (t > -1.9).all(d, k), uneven(*shape))
        self.both(lambda t: t.all(0), uneven(4, 5))
        self.both(lambda t: t.all(0), torch.tensor(True))
        self.both(torch.isneginf, torch.tensor([1.0, -float("inf"), float("inf"), float("nan")]))
        self.both(torch.isneginf, torch.arange(3))

    def test_softmax_and_its_gradient(self):
        aten = torch.ops.aten
        for dtype, (shape, dimension) in itertools.product(FLOATING, [((64, 10), 1), ((64, 10), 0), ((2, 3, 4), -2), ((), 0), ((0, 3), 1), ((300, 200), 1)]):
            tensor = uneven(*shape, dtype=dtype)
            for forward, backward in ((aten._softmax, aten._softmax_backward_data), (aten._log_softmax, aten._log_softmax_backward_data)):
                self.both(lambda t, d=dimension, f=forward: f(t, d, False), tensor)
                self.both(lambda g, t, d=dimension, f=backward, x=dtype: f(g, t, d, x), uneven(*shape, dtype=dtype, start=4), tensor)
        self.both(lambda t: functional.log_softmax(t.t(), 1), uneven(6, 5))
        with self.assertRaises(IndexError):
            functional.softmax(uneven(6, 5).to("xpu"), 2)

    def test_loss_of_a_classifier(self):
        for dtype, reduction, weighted in itertools.product((torch.float32, torch.float64), ("none", "mean", "sum"), (False, True)):
            scores, target = uneven(64, 10, dtype=dtype), torch.arange(64) * 7 % 10
            weight = positive(10, dtype=dtype) if weighted else None

            def loss(s, t, w, r=reduction):
                s.requires_grad_(True)
                value = functional.cross_entropy(s, t, weight=w, reduction=r, ignore_index=3)
                value.sum().backward()
                gradient, value = s.grad, value.detach()
                s.requires_grad_(False)
                return value, gradient
            self.both(loss, scores, target, weight)
        self.both(lambda s, t: functional.nll_loss(s, t), uneven(0, 10), torch.empty(0, dtype=torch.long))
        self.both(lambda s, t: functional.nll_loss(s, t), uneven(10), torch.tensor(3))
        self.both(lambda s, t: functional.nll_loss(s, t), uneven(2, 5, 3, 3), torch.arange(18).reshape(2, 3, 3) % 5)


class MatrixTest(KernelTest):
    def test_products(self):
        for dtype, (n, k, m) in itertools.product(FLOATING, [(4, 5, 6), (0, 3, 2), (3, 0, 2), (1, 1, 1), (64, 256, 10), (200, 210, 220)]):
            scale = max(k, 1) ** -0.5
            left, right = uneven(n, k, dtype=dtype) * scale, uneven(k, m, dtype=dtype, start=3)
            self.both(torch.mm, left, right)
            self.both(lambda a, b: a.t() @ b.t(), uneven(k, n, dtype=dtype) * scale, uneven(m, k, dtype=dtype))
            for bias in (uneven(m, dtype=dtype), uneven(n, m, dtype=dtype), uneven(dtype=dtype)):
                self.both(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), bias, left, right)
            self.both(torch.bmm, uneven(3, n, k, dtype=dtype) * scale, uneven(3, k, m, dtype=dtype))
            self.both(torch.baddbmm, uneven(m, dtype=dtype), uneven(3, n, k, dtype=dtype) * scale, uneven(3, k, m, dtype=dtype))

    def test_results_that_are_given(self):
        self.both(lambda a, b: torch.mm(a, b, out=torch.empty(4, 6, device=a.device)), uneven(4, 5), uneven(5, 6))
        self.both(lambda a, b: torch.mm(a, b, out=torch.empty(0, device=a.device)), uneven(4, 5), uneven(5, 6))
        self.both(lambda a, b: torch.mm(a, b, out=torch.empty(6, 4, device=a.device).t()), uneven(4, 5), uneven(5, 6))
        self.both(lambda c, a, b: c.addmm_(a, b), uneven(4, 6), uneven(4, 5), uneven(5, 6))
        self.both(lambda a, b: torch.bmm(a, b, out=torch.empty(2, 4, 6, device=a.device)), uneven(2, 4, 5), uneven(2, 5, 6))

    def test_what_does_not_fit(self):
        self.same_error(torch.mm, uneven(4, 5), uneven(4, 5))
        self.same_error(torch.mm, uneven(4, 5), uneven(5))
        self.same_error(torch.mm, uneven(4, 5), uneven(5, 4, dtype=torch.float64))
        self.same_error(torch.bmm, uneven(2, 4, 5), uneven(3, 5, 4))
        self.same_error(torch.addmm, uneven(7), uneven(4, 5), uneven(5, 6))
        self.both(torch.mm, torch.arange(6).reshape(2, 3), torch.arange(6).reshape(3, 2))


class LayersTest(KernelTest):
    def test_layer_norm_with_gradients(self):
        for dtype, (shape, normalized), affine in itertools.product((torch.float32, torch.float64), [((4, 9), (9,)), ((2, 3, 5), (3, 5)), ((300, 200), (200,))], (0, 1)):
            def norm(t, w, b, n=normalized):
                inputs = [x for x in (t, w, b) if x is not None]
                for x in inputs:
                    x.requires_grad_(True)
                value = functional.layer_norm(t, n, w, b)
                gradients = torch.autograd.grad((value * value.detach().roll(1)).sum(), inputs)
                for x in inputs:
                    x.requires_grad_(False)
                return [value.detach(), *gradients]
            weight, bias = (positive(*normalized, dtype=dtype), uneven(*normalized, dtype=dtype)) if affine else (None, None)
            self.both(norm, uneven(*shape, dtype=dtype), weight, bias)
        # Results of the same size as statistics and sums.
        for shape in ((5, 1), (1, 5), (1, 1)):
            aten, weight = torch.ops.aten, positive(shape[1])
            self.both(lambda t, w, n=shape[1:]: torch.native_layer_norm(t, n, w, w, 1e-5), uneven(*shape), weight)
            self.both(lambda g, t, w, n=shape[1:]: aten.native_layer_norm_backward(g, t, n, t[:, :1] / 2, t[:, :1].abs() + 1, w, w, [True] * 3),
                      uneven(*shape), uneven(*shape, start=3), weight)
        self.both(lambda t, w: torch.native_layer_norm(t.t(), (5,), w, None, 1e-5), uneven(5, 4), uneven(10)[::2])
        self.same_error(lambda t, w: functional.layer_norm(t, (4,), w), uneven(3, 5), uneven(4))

    def test_embedding_and_dropout(self):
        indices = torch.tensor([[1, 4, 1], [0, 9, 4]])
        self.both(lambda w, i: functional.embedding(i, w), uneven(10, 6), indices)
        self.both(lambda g, i: torch.ops.aten.embedding_dense_backward(g, i, 10, 4, False), uneven(2, 3, 6), indices)
        self.both(lambda t, i: t.index_select(1, i), uneven(4, 6), torch.tensor([5, 0, 5]))
        self.both(lambda g, i: torch.ops.aten.embedding_dense_backward(g, i, 6, -1, False), uneven(6, 6), torch.tensor([5, 0, 5, 1, 2, 5]))
        for dtype, shape in itertools.product(FLOATING, [(40, 6), (), (0,), (SHORT + 1,)]):
            self.both(lambda g: torch.ops.aten.native_dropout_backward(g, g > 0, 2.5), uneven(*shape, dtype=dtype))
        self.both(lambda g: torch.ops.aten.native_dropout_backward(g.t(), g.t() > 0, 2.5).contiguous(), uneven(40, 6))

    def test_joined_tensors(self):
        for dtype, dimension in itertools.product(FLOATING + (torch.int64, torch.bool, torch.uint8), (0, 1, -1)):
            self.both(lambda *t, d=dimension: torch.cat(t, d), *[uneven(3, 4).round().to(dtype) for _ in range(3)])
        self.both(lambda *t: torch.cat(t), uneven(2, 4), uneven(0, 4), uneven(300, 4), uneven(4, 5).t()[:, ::1])
        self.both(lambda *t: torch.cat(t), torch.empty(0), uneven(2, 4))
        self.both(lambda *t: torch.cat(t), uneven(2, 4), uneven(2, 4, dtype=torch.float64))
        self.both(lambda t: torch.cat([t] * 40), uneven(5))
        self.both(lambda t: torch.cat([t, t], out=torch.empty(0, device=t.device)), uneven(5))
        self.both(lambda t: torch.stack([t, t + 1]), uneven(40, 500))
        self.same_error(lambda *t: torch.cat(t), uneven(2, 4), uneven(2, 5))
        self.same_error(lambda t: torch.cat([t[:5], t[5:]], out=t), uneven(10))

    def test_fills_and_copies(self):
        for dtype in FLOATING + (torch.int64, torch.int32, torch.bool, torch.uint8, torch.complex64):
            for size in (1, 7, SHORT + 1):
                self.both(lambda t: t.zero_(), torch.ones(size).to(dtype))
                self.both(lambda t: t.fill_(3), torch.ones(size).to(dtype))
            self.both(lambda t: t[:, ::2].fill_(1), torch.zeros(4, 6, dtype=dtype))
            self.both(lambda t: t[1:3].zero_(), torch.ones(4, 6).to(dtype))
            self.both(lambda t: t.t().contiguous(), torch.arange(24).reshape(4, 6).to(dtype))
            self.both(lambda t, d=dtype: t.to(d), uneven(300, 200).round())
        self.both(lambda t: t.fill_(float("nan")), uneven(5))
        self.both(lambda t: t.copy_(torch.ones(5, device=t.device).expand(4, 5)), uneven(4, 5))


class ExecutionTest(harness.ProcessTest, KernelTest):
    def test_chains_across_the_limit_of_short_kernels_keep_their_order(self):
        for sizes in ((10, SHORT + 10), (SHORT + 10, 10), (SHORT * 8, 3)):
            large, small = (torch.ones(size, device="xpu") for size in sizes)
            for _ in range(60):
                large.mul_(1.01).add_(0.5)
                small.add_(large[:small.numel()] if small.numel() < large.numel() else large.sum() / large.numel())
            on_cpu = [torch.ones(size) for size in sizes]
            for _ in range(60):
                on_cpu[0].mul_(1.01).add_(0.5)
                on_cpu[1].add_(on_cpu[0][:sizes[1]] if sizes[1] < sizes[0] else on_cpu[0].sum() / sizes[0])
            torch.testing.assert_close(small.cpu(), on_cpu[1], rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(large.cpu(), on_cpu[0], rtol=1e-4, atol=1e-4)

    def test_memory_that_is_freed_while_work_is_pending_is_not_mixed_up(self):
        first = uneven(SHORT * 4).to("xpu")
        result = first
        for _ in range(100):
            result = (result * 1.5 - 0.25) / 1.5 + (0.25 / 1.5)  # every intermediate tensor is gone before it was computed
        torch.testing.assert_close(result.cpu(), first.cpu(), rtol=1e-3, atol=1e-3)

    def test_two_streams_with_events(self):
        one, other = torch.xpu.Stream(), torch.xpu.Stream()
        shared = torch.zeros(SHORT * 4, device="xpu")
        torch.xpu.synchronize()
        for step in range(40):
            with torch.xpu.stream(one if step % 2 == 0 else other) as _:
                shared.mul_(2 if step % 3 == 0 else 0.5).add_(step)
                event = torch.xpu.Event()
                event.record()
            (other if step % 2 == 0 else one).wait_event(event)
        torch.xpu.synchronize()
        expected = torch.zeros(1)
        for step in range(40):
            expected.mul_(2 if step % 3 == 0 else 0.5).add_(step)
        torch.testing.assert_close(shared.cpu(), expected.expand(shared.shape))

    def test_a_value_that_only_the_kernel_sees_to_be_wrong_is_the_streams_error(self):
        self.assert_python_prints("""
import torch
scores, target = torch.zeros(4, 3, device="xpu"), torch.tensor([0, 1, 2, 3], device="xpu")
try:
    torch.nn.functional.nll_loss(scores, target)
    torch.xpu.synchronize()
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(torch.ones(3, device="xpu").sum().item())
""", "the kernel xpu_nll_loss let an exception out: Target 3 is out of bounds.\n3.0")

    def test_a_backward_pass_runs_on_the_thread_that_calls_it_unless_told_otherwise(self):
        threads = []

        def backward():
            tensor = torch.ones(3, device="xpu", requires_grad=True)
            product = tensor * 2
            product.register_hook(lambda gradient: threads.append(threading.get_ident()))
            product.sum().backward()
        backward()
        with torch.autograd.set_multithreading_enabled(True):
            backward()
        self.assertEqual([thread == threading.get_ident() for thread in threads], [True, False])

    def test_inference_mode_and_autograd_see_nothing_of_the_aliases(self):
        with torch.inference_mode():
            self.both(torch.exp, uneven(9))
            self.both(torch.mm, uneven(3, 4), uneven(4, 3))
        tensor = uneven(9).to("xpu").requires_grad_(True)
        tensor.exp().tanh().sum().backward()
        on_cpu = uneven(9).requires_grad_(True)
        on_cpu.exp().tanh().sum().backward()
        torch.testing.assert_close(tensor.grad.cpu(), on_cpu.grad)


TRAINING = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


class RecordTest(KernelTest):
    def kernels_of(self, step):
        for _ in range(2):
            step()
        torch.xpu.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as profiler:
            step()
            torch.xpu.synchronize()
        with tempfile.TemporaryDirectory(prefix="xpu_torch_test_") as folder:
            path = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(path))
            text = path.read_bytes()
        trace = json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)
        return [event for event in trace["traceEvents"] if event.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]

    def perceptron(self, device, activation, optimizer):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(256, 256), activation(), torch.nn.Linear(256, 10)).to(device)
        updates = TRAINING[optimizer](model.parameters())
        inputs, target = uneven(64, 256).to(device), (torch.arange(64) * 7 % 10).to(device)

        def step():
            updates.zero_grad()
            loss = functional.cross_entropy(model(inputs), target)
            loss.backward()
            updates.step()
            return loss.detach()
        return step

    def test_a_training_step_of_a_perceptron_has_no_fallback(self):
        activations = torch.nn.ReLU, torch.nn.GELU, torch.nn.Tanh, torch.nn.Sigmoid, torch.nn.SiLU
        for activation, optimizer in itertools.product(activations, TRAINING):
            events = self.kernels_of(self.perceptron("xpu", activation, optimizer))
            kernels = [event for event in events if event["cat"] == "kernel"]
            self.assertGreaterEqual(len(kernels), 15)
            self.assertEqual([event["name"] for event in kernels if not event["name"].startswith("xpu_")], [], f"{activation} {optimizer}")
            self.assertEqual({event["args"].get("kind") for event in kernels}, {"kernel"})
            self.assertTrue(any(event["cat"] == "gpu_memset" for event in events), "fills are recorded as such")

    def test_a_transformers_step_falls_back_for_what_is_random_only(self):
        torch.manual_seed(0)
        layers = torch.nn.ModuleList([torch.nn.Embedding(50, 32), torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.nn.Linear(32, 50)]).to("xpu")
        updates, tokens = torch.optim.AdamW(layers.parameters()), (torch.arange(48) * 7 % 50).reshape(4, 12).to("xpu")

        def step():
            updates.zero_grad()
            scores = tokens
            for layer in layers:
                scores = layer(scores)
            functional.cross_entropy(scores.reshape(-1, 50), tokens.reshape(-1)).backward()
            torch.nn.utils.clip_grad_norm_(layers.parameters(), 1.0)
            updates.step()
        names = {event["name"] for event in self.kernels_of(step) if event["cat"] == "kernel"}
        self.assertEqual({name for name in names if not name.startswith("xpu_")}, {"fallback aten::native_dropout"})
        self.assertGreater(len(names), 20)

    def test_training_ends_where_it_ends_on_the_cpu(self):
        for optimizer in TRAINING:
            steps = [self.perceptron(device, torch.nn.GELU, optimizer) for device in ("cpu", "xpu")]
            losses = [[step() for _ in range(10)] for step in steps]
            torch.testing.assert_close(torch.stack(losses[1]).cpu(), torch.stack(losses[0]), rtol=1e-3, atol=1e-4)

    def test_the_geometry_is_the_results(self):
        left, right = uneven(48, 32).to("xpu"), uneven(32, 80).to("xpu")
        (product,) = [event for event in self.kernels_of(lambda: left @ right) if event["cat"] == "kernel"]
        self.assertEqual(product["name"], "xpu_mm")
        self.assertEqual(product["args"]["grid"][:2], [1, 1])
        self.assertEqual(product["args"]["block"][:2], [80, 48])


if __name__ == "__main__":
    unittest.main(verbosity=2)

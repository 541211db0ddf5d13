"""Runs PyTorch's own operator database on the device and on the CPU and compares them: values, gradients, in-place and out= forms, views, devices.

    op_sweep.py --dtype float32 [--shard 0/2] [--samples 40] [--entry NAME ...] [--after NAME] [--json]

One line is printed for each entry that does not agree, with --json one JSON object before and one after each entry (op_sweep_test.py reads them, so that an
entry that kills the process is known by name). Nothing counts as agreeing that was not compared.
"""
import argparse
import collections
import faulthandler
import itertools
import json
import os
import random
import sys
import warnings

import harness  # noqa: F401  (chooses the devices)
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

import op_sweep_tables as tables

DEVICE = "xpu"
# Value, gradient. The kernels behind most operators are the CPU's own; the room is for those that are not.
TOLERANCES = {
    torch.float32: (1e-4, 1e-3),
    torch.float64: (1e-8, 1e-7),
    torch.bfloat16: (1.6e-2, 5e-2),
    torch.complex64: (1e-4, 1e-3),
}
EXACT = (0, 0)
# Rounding on the way to a result is relative to the largest value on that way, not to a small one that is left.
TOLERANCE_OF_LARGEST = {torch.bfloat16}
SAMPLES_LOOKED_THROUGH = 100

AGREES, FORWARD_ONLY, DIFFERS, NOTHING_COMPARED, NO_DTYPE = "agrees", "agrees forward", "differs", "nothing compared", "no such dtype"


class Difference(Exception):
    """The device does not do what the CPU does; the text says in what."""


def entry_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def entries():
    return sorted(op_db, key=entry_name)


def tensors_of(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Copies:
    """Copies arguments to a device, storage by storage: strides, offsets and what tensors share stay as they were."""

    def __init__(self, device, keep_gradients=True):
        self.device, self.keep_gradients = device, keep_gradients
        self._storages = {}

    def __call__(self, tree):
        return tree_map(self._leaf, tree)

    def _leaf(self, leaf):
        if isinstance(leaf, torch.Tensor):
            copy = self._strided(leaf.detach()) if leaf.layout is torch.strided else leaf.detach().clone().to(self.device)
            return copy.requires_grad_(leaf.requires_grad and self.keep_gradients)
        if isinstance(leaf, torch.device) and leaf.type == "cpu":
            return torch.device(self.device)
        return self.device if isinstance(leaf, str) and leaf == "cpu" else leaf

    def _strided(self, tensor):
        conjugate, negative = tensor.is_conj(), tensor.is_neg()
        storage = tensor.untyped_storage()
        if storage._cdata not in self._storages:
            content = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._storages[storage._cdata] = content.clone().to(self.device).untyped_storage()
        copy = torch.empty(0, dtype=tensor.dtype, device=self.device)
        copy.set_(self._storages[storage._cdata], tensor.storage_offset(), tensor.size(), tensor.stride())
        copy = copy.conj() if conjugate else copy
        return torch._neg_view(copy) if negative else copy


class DeviceMemory:
    """Knows which addresses belong to the device allocator, by its snapshot; switched off where a snapshot has no segments."""

    def __init__(self):
        self._ranges = []
        torch.zeros(1, device=DEVICE)
        self.known = DEVICE == "xpu" and hasattr(torch._C, "_xpu_memorySnapshot") and bool(torch.xpu.memory_snapshot())

    def holds(self, address):
        if not self._inside(address):
            self._ranges = [(segment["address"], segment["address"] + segment["total_size"]) for segment in torch.xpu.memory_snapshot()]
        return self._inside(address)

    def _inside(self, address):
        return any(begin <= address < end for begin, end in self._ranges)

    def require(self, tree, what):
        for tensor in tensors_of(tree) if self.known else ():
            if tensor.layout is torch.strided and tensor.numel() and not self.holds(tensor.data_ptr()):
                raise Difference(f"{what}: {tensor.data_ptr():#x} is not memory of the device's allocator")


class Call:
    """One way to call an operator on copies of a sample's arguments."""

    def __init__(self, function, sample, device, name, keep_gradients=True):
        copies = Copies(device, keep_gradients)
        self.function, self.device = function, device
        self.input = copies(sample.input)
        others = copies if name not in tables.ARGUMENTS_STAY_ON_THE_HOST else Copies("cpu", keep_gradients)
        self.args, self.kwargs = others(sample.args), others(sample.kwargs)

    def arguments(self):
        return self.input, self.args, self.kwargs

    def __call__(self, **more):
        torch.manual_seed(1)
        kwargs = dict(self.kwargs, **more)
        if tensors_of(self.arguments()) or "device" in kwargs:
            return self.function(self.input, *self.args, **kwargs)
        with torch.device(self.device):  # makes a tensor of numbers alone
            return self.function(self.input, *self.args, **kwargs)


def shared_with(result, arguments):
    """For each tensor of the result the first argument whose memory it uses, or None."""
    def address(tensor):
        return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided and tensor.untyped_storage().nbytes() else None

    owners = {}
    for index, tensor in enumerate(tensors_of(arguments)):
        if address(tensor) is not None:
            owners.setdefault(address(tensor), index)
    return [owners.get(address(tensor)) for tensor in tensors_of(result)]


class Entry:
    """Compares one operator for one dtype; counts what was compared."""

    def __init__(self, op, dtype, memory):
        self.op, self.dtype, self.memory = op, dtype, memory
        self.name = entry_name(op)
        self.gradients = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        self.compared = collections.Counter()
        self.dropped = collections.Counter()
        self.values_are_defined = self.name not in tables.UNINITIALISED

    def run(self, samples_limit):
        if self.dtype not in self.op.dtypes:
            return self.result(NO_DTYPE)
        try:
            found = list(itertools.islice(self.op.sample_inputs("cpu", self.dtype, requires_grad=self.gradients), SAMPLES_LOOKED_THROUGH))
        except Exception as error:  # the database's own fault; such an entry has to be listed
            return self.result(NOTHING_COMPARED, f"no samples: {type(error).__name__}: {error}")
        # Neighbours are alike and kinds of samples come in turn, so drawn at random; the same ones every time.
        chosen = sorted(random.Random(self.name).sample(range(len(found)), min(samples_limit, len(found))))
        for index in chosen:
            try:
                self.compare(found[index])
            except Exception as error:
                kind = "" if isinstance(error, Difference) else f"{type(error).__name__}: "
                return self.result(DIFFERS, f"sample {index}: {kind}{error}")
        if not self.compared["value"]:
            return self.result(NOTHING_COMPARED, "; ".join(self.dropped))
        return self.result(AGREES if self.compared["gradient"] or not self.gradients else FORWARD_ONLY)

    def result(self, status, why=""):
        dropped = {reason: times for reason, times in self.dropped.items()}
        return {"entry": self.name, "status": status, "why": why[:600], "compared": dict(self.compared), "dropped": dropped}

    def drop(self, what, error):
        """The reference itself failed."""
        lines = str(error).splitlines() or [""]
        self.dropped[f"{what}: {type(error).__name__}: {lines[0][:120]}"] += 1

    def compare(self, sample):
        reference = Call(self.op.op, sample, "cpu", self.name)
        try:
            expected = reference()
        except Exception as error:
            self.drop("value", error)
            return
        call = Call(self.op.op, sample, DEVICE, self.name)
        actual = call()
        self.same(expected, actual, "result")
        self.same(reference.arguments(), call.arguments(), "argument", count=None, on_device=False)
        if shared_with(expected, reference.arguments()) != shared_with(actual, call.arguments()):
            raise Difference(f"the result shares memory with arguments {shared_with(actual, call.arguments())}, on the CPU with "
                             f"{shared_with(expected, reference.arguments())}")
        self.memory.require((call.input, actual), "value")
        if self.gradients and self.values_are_defined:
            self.compare_gradients(sample, expected, reference, actual, call)
        if self.values_are_defined:
            self.compare_in_place(sample)
            self.compare_out(sample, expected)

    def same(self, expected, actual, what, count="value", on_device=True, tolerance_index=0):
        """Structure, metadata and values of two trees; tensors of `actual` have to be on the device."""
        expected_leaves, actual_leaves = tree_leaves(expected), tree_leaves(actual)
        if len(expected_leaves) != len(actual_leaves):
            raise Difference(f"{what}: {len(actual_leaves)} parts, on the CPU {len(expected_leaves)}")
        # Integers may have a result of another type, which is rounded like any other of that type.
        of_results = [leaf.dtype for leaf in tree_leaves(expected) if isinstance(leaf, torch.Tensor) and leaf.dtype in TOLERANCES]
        tolerance = TOLERANCES.get(self.dtype, TOLERANCES[of_results[0]] if of_results else EXACT)[tolerance_index]
        for index, (left, right) in enumerate(zip(expected_leaves, actual_leaves)):
            where = f"{what} {index}"
            if not isinstance(left, torch.Tensor):
                if isinstance(left, (bool, int, float, complex)):
                    torch.testing.assert_close(right, left, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda text: f"{where}: {text}")
                    self.count(count)
                continue
            if on_device and (not isinstance(right, torch.Tensor) or right.device.type != DEVICE):
                raise Difference(f"{where} is on {getattr(right, 'device', type(right).__name__)}")
            if (left.dtype, left.shape, left.layout) != (right.dtype, right.shape, right.layout):
                raise Difference(f"{where}: {right.dtype} {tuple(right.shape)} {right.layout}, on the CPU {left.dtype} {tuple(left.shape)} {left.layout}")
            if self.values_are_defined and left.numel():
                self.close(left, right, tolerance, where)
                self.count(count)

    def count(self, what):
        if what:
            self.compared[what] += 1

    def close(self, left, right, tolerance, where):
        left, right = left.detach(), right.detach().cpu()
        if left.layout is not torch.strided:
            left, right = left.to_dense(), right.to_dense()
        inexact = left.dtype.is_floating_point or left.dtype.is_complex
        tolerance = tolerance if inexact else 0
        largest = left.abs().nan_to_num(0, 0, 0).max().item() if inexact and self.dtype in TOLERANCE_OF_LARGEST else 1
        torch.testing.assert_close(right, left, rtol=tolerance, atol=tolerance * max(largest, 1), equal_nan=True, msg=lambda text: f"{where}: {text}")

    def compare_gradients(self, sample, expected, reference, actual, call):
        def outputs(result):
            return [t for t in tensors_of(sample.output_process_fn_grad(result)) if t.requires_grad and (t.dtype.is_floating_point or t.dtype.is_complex)]

        def weights(tensors):
            # Uneven: the gradient of a plain sum is zero or one for many operators, whatever they do.
            return [(torch.arange(t.numel()).remainder(5) + 1).reshape(t.shape).to(t.dtype).to(t.device) for t in tensors]

        try:
            expected_outputs = outputs(expected)
        except Exception as error:
            self.drop("gradient", error)
            return
        actual_outputs = outputs(actual)
        if len(expected_outputs) != len(actual_outputs):
            raise Difference(f"{len(actual_outputs)} results have a gradient, on the CPU {len(expected_outputs)}")
        if not expected_outputs:
            return
        inputs = [t for t in tensors_of(reference.arguments()) if t.requires_grad]
        try:
            expected_gradients = torch.autograd.grad(expected_outputs, inputs, weights(expected_outputs), allow_unused=True)
        except Exception as error:
            self.drop("gradient", error)
            return
        actual_inputs = [t for t in tensors_of(call.arguments()) if t.requires_grad]
        gradients = torch.autograd.grad(actual_outputs, actual_inputs, weights(actual_outputs), allow_unused=True)
        for index, (left, right) in enumerate(zip(expected_gradients, gradients)):
            if (left is None) != (right is None):
                raise Difference(f"gradient {index} is {'missing' if right is None else 'there'}, on the CPU it is not")
            if left is not None:
                on_device = actual_inputs[index].device.type == DEVICE
                self.same(left, right, f"gradient {index}", count="gradient", on_device=on_device, tolerance_index=1)
                if on_device:
                    self.memory.require(right, f"gradient {index}")

    @torch.no_grad()
    def compare_in_place(self, sample):
        if self.op.inplace_variant is None or sample.broadcasts_input:
            return
        reference = Call(self.op.inplace_variant, sample, "cpu", self.name, keep_gradients=False)
        try:
            expected = reference()
        except Exception:
            return  # not every sample may be overwritten: another shape, another dtype
        call = Call(self.op.inplace_variant, sample, DEVICE, self.name, keep_gradients=False)
        actual = call()
        self.same(expected, actual, "in place: result", count="in place")
        self.same(reference.input, call.input, "in place: argument", count=None)
        if isinstance(call.input, torch.Tensor) and actual is not call.input:
            raise Difference("in place: the result is another tensor than the argument")

    @torch.no_grad()
    def compare_out(self, sample, expected):
        """Into empty tensors, which are resized, and into tensors whose strides are not the usual ones."""
        if not self.op.supports_out or not all(isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided for leaf in tree_leaves(expected)):
            return
        expected = tree_map(lambda tensor: tensor.detach(), expected)
        shapes = {
            "resized": lambda tensor, device: torch.empty(0, dtype=tensor.dtype, device=device),
            "strided": lambda tensor, device: torch.empty((*tensor.shape[::-1], 2), dtype=tensor.dtype, device=device)[..., 0].permute(
                *range(tensor.dim())[::-1]
            ),
        }
        if self.name in tables.STRIDED_OUT_IS_BROKEN:
            del shapes["strided"]
        for form, make in shapes.items():
            def run_into(device):
                out = tree_map(lambda tensor: make(tensor, device), expected)
                out = tuple(out) if isinstance(out, (list, tuple)) else out
                Call(self.op.op, sample, device, self.name, keep_gradients=False)(out=out)
                return out

            try:
                into = run_into("cpu")
                self.same(expected, into, "out=", count=None, on_device=False)
            except Exception:
                continue  # this operator takes no such out=, or is wrong itself
            self.same(into, run_into(DEVICE), f"out= {form}", count="out=")


def main():
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shard", default="0/1", help="which part of how many")
    parser.add_argument("--samples", type=int, default=40, help="of each entry at most")
    parser.add_argument("--entry", nargs="*", help="only these")
    parser.add_argument("--after", help="begin behind this entry")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--device", default=DEVICE, help="with cpu the sweep compares the CPU with itself: every difference is the sweep's own fault")
    options = parser.parse_args()

    DEVICE = options.device
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what operators print must not get between the lines
    part, parts = map(int, options.shard.split("/"))
    chosen = entries()[part::parts]
    if options.entry:
        chosen = [op for op in entries() if entry_name(op) in options.entry]
    if options.after:
        chosen = [op for op in chosen if entry_name(op) > options.after]
    memory = DeviceMemory()
    counts = collections.Counter()
    for op in chosen:
        if options.json:
            print(json.dumps({"begins": entry_name(op)}), file=channel, flush=True)
        result = Entry(op, getattr(torch, options.dtype), memory).run(options.samples)
        counts[result["status"]] += 1
        if options.json:
            print(json.dumps(result), file=channel, flush=True)
        elif options.entry or result["status"] in (DIFFERS, NOTHING_COMPARED):
            print(result["entry"], result["status"], result["why"], result["compared"], result["dropped"], file=channel, flush=True)
    if options.json:
        print(json.dumps({"ends": len(chosen), "addresses_checked": memory.known}), file=channel, flush=True)
    else:
        print(options.dtype, dict(counts), "addresses checked:", memory.known, file=channel, flush=True)


if __name__ == "__main__":
    sys.exit(main())

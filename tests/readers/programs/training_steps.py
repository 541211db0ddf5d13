"""A program to be recorded: steps of a training loop with PyOpenCL, on whatever OpenCL device comes first.

    training_steps.py STEPS RANK

Each step is annotated as PyTorch's profiler does it, ProfilerStep#N. HTA cuts the last step off, so that one does nothing. Two queues: one computes and
copies, the other one "communicates", in a kernel that is called as NCCL's are and that runs beside the others.
"""
import ctypes
import os
import sys

import numpy as np
import pyopencl as cl

SOURCE = """
kernel void matmul(global const float* a, global const float* b, global float* c, int n) {
  int row = get_global_id(1), column = get_global_id(0);
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
kernel void relu(global float* x) { x[get_global_id(0)] = fmax(x[get_global_id(0)], 0.0f); }
kernel void sgd_update(global float* weight, global const float* gradient, float rate) {
  weight[get_global_id(0)] -= rate * gradient[get_global_id(0)];
}
kernel void ncclDevKernel_AllReduce_Sum(global float* x, int ranks) { for (int i = 0; i < 2000; ++i) x[get_global_id(0)] += x[get_global_id(0)] / ranks; }
"""


def annotations():
    """Begin and end of a range. The library is there when the program is recorded, and is not loaded otherwise."""
    push, pop = 0, 1
    try:
        publish = ctypes.CDLL("libxpu.so.0", mode=os.RTLD_NOLOAD | os.RTLD_LAZY).xpu_annotate_publish
    except OSError:
        return lambda text: None, lambda: None
    publish.argtypes = [ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_double]
    publish.restype = None
    return lambda text: publish(push, 0, text.encode(), 0.0), lambda: publish(pop, 0, None, 0.0)


def main():
    steps, rank = int(sys.argv[1]), int(sys.argv[2])
    n = 96 + 32 * rank  # so that no two ranks have the same figures
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    profiled = cl.command_queue_properties.PROFILING_ENABLE
    compute, communicate = cl.CommandQueue(context, properties=profiled), cl.CommandQueue(context)
    push, pop = annotations()
    program = cl.Program(context, SOURCE).build()
    flags = cl.mem_flags.READ_WRITE
    batch = np.linspace(-1, 1, n * n, dtype=np.float32)
    result = np.empty_like(batch)
    x, weight, y, gradient = (cl.Buffer(context, flags, batch.nbytes) for _ in range(4))

    push("setup")
    cl.enqueue_fill_buffer(compute, weight, np.float32(0.01), 0, batch.nbytes).wait()
    pop()
    for step in range(steps):
        push(f"ProfilerStep#{step}")
        cl.enqueue_copy(compute, x, batch, is_blocking=False)
        cl.enqueue_fill_buffer(compute, y, np.float32(0), 0, batch.nbytes)
        program.matmul(compute, (n, n), (8, 8), x, weight, y, np.int32(n))
        program.relu(compute, (n * n,), None, y)
        copied = cl.enqueue_copy(compute, gradient, y)
        # Two beside each other: neither waits for the other.
        reduced = program.ncclDevKernel_AllReduce_Sum(communicate, (4096,), None, gradient, np.int32(2), wait_for=[copied])
        communicate.flush()
        program.matmul(compute, (n, n), (8, 8), x, weight, y, np.int32(n))
        program.sgd_update(compute, (n * n,), None, weight, gradient, np.float32(0.001), wait_for=[reduced])
        cl.enqueue_copy(compute, result, weight)  # blocks
        communicate.finish()
        pop()
    push(f"ProfilerStep#{steps}")
    pop()
    compute.finish()
    assert np.isfinite(result).all()


main()

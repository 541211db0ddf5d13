"""Reads traces as TensorBoard's plugin for PyTorch does (torch-tb-profiler) and prints the tables of its pages as one JSON object, by file name.

    tables.py FILE...                   run by the interpreter of reader_packages.python()
"""
import json
import logging
import pathlib
import sys
import tempfile

# The package before its module `run`: the two import each other, and work in this order only.
import torch_tb_profiler.profiler  # noqa: F401
from torch_tb_profiler import consts
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.event_parser import ProfileRole
from torch_tb_profiler.profiler.run_generator import RunGenerator


def read(path, cache):
    # As the plugin finds its files in a folder.
    worker, span = consts.WORKER_PATTERN.match(pathlib.Path(path).name).groups()[:2]
    data = RunProfileData.parse(worker, span, path, cache)
    profile = RunGenerator(worker, span, data).generate_run_profile()
    return {
        "worker": worker,
        "views": [view.display_name for view in profile.views],
        "kernels": {name: {"calls": int(row["count"]), "sum": float(row["sum"]), "max": float(row["max"]), "min": float(row["min"])}
                    for name, row in data.kernel_stat.iterrows()},
        "kernel_table": {"columns": [column["name"] for column in profile.kernel_table["data"]["columns"]],
                         "rows": profile.kernel_table["data"]["rows"]},
        "steps": data.steps_names,
        "copy_time": sum(step.costs[ProfileRole.Memcpy] for step in data.steps_costs),
        "has_runtime": data.has_runtime,
        "has_copies": data.has_memcpy_or_memset,
        "devices": data.used_devices,
        "utilization": [value for value in data.gpu_metrics_parser.gpu_utilization if value is not None],
        "rank": (data.distributed_info or {}).get("rank"),
    }


def main():
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as cache:
        print("tables " + json.dumps({pathlib.Path(path).name: read(path, cache) for path in sys.argv[1:]}))


main()

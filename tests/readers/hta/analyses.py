"""Runs the analyses of HTA on a folder of traces, one file a rank, and prints what they say as one JSON object.

    analyses.py FOLDER                  run by the interpreter of reader_packages.python()

{"ranks": [0, …], "rows": {rank: {…}}, NAME: {"answer": …} or {"error": "TypeError: …"}, …}
"""
import json
import logging
import math
import sys
import warnings

import pandas as pd

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
# An empty file of traces is a mistake of the caller's, which these two would pass over.
from hta.trace_analysis import TraceAnalysis  # noqa: E402


def records(frame):
    """A table as a list of rows, its index among the columns."""
    if frame is None:
        return None
    frame = frame.copy()
    frame.columns = ["_".join(map(str, column)) if isinstance(column, tuple) else column for column in frame.columns]
    return frame.reset_index().to_dict("records")


def device_rows(analysis, rank):
    """What HTA takes for the device's work, as it has read it."""
    trace = analysis.t.get_trace(rank)
    names = analysis.t.symbol_table.get_sym_table()
    device = trace[trace["stream"] >= 0]
    linked = int((device["index_correlation"] > 0).sum()) if "index_correlation" in device else 0
    columns = ["ts", "dur", "stream", "correlation", "memory_bw_gbps"]
    rows = device[[column for column in columns if column in device]].to_dict("records")
    for row, name in zip(rows, device["name"]):
        row["name"] = names[name]
    return {"linked": linked, "events": rows}


def answer(function):
    try:
        result = function()
        return {"answer": records(result) if isinstance(result, pd.DataFrame) else result}
    except Exception as error:  # whatever HTA raises is its answer
        return {"error": f"{type(error).__name__}: {error}"}


def critical_path(analysis, rank):
    # The second step: the first one misses what was set up before it.
    graph, found = analysis.critical_path_analysis(rank=rank, annotation="ProfilerStep", instance_id=1)
    breakdown = graph.get_critical_path_breakdown()
    return {"found": found, "nodes": len(graph.critical_path_nodes), "duration": float(breakdown["duration"].sum()),
            "bound_by": sorted(map(str, breakdown["bound_by"].unique()))}


def per_rank(ranks, function):
    """Of each rank; they are asked one by one, for HTA forgets the ranks of some of its tables."""
    return {rank: records(function(rank)) for rank in ranks}


def plain(value):
    """What JSON has no word for: NumPy's numbers, and what is no number."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def main():
    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    ranks = sorted(analysis.t.traces)
    names = {"num_kernels": 1000, "duration_ratio": 1.0, "include_memory_kernels": True, "visualize": False}
    answers = {
        "ranks": ranks,
        "rows": {rank: device_rows(analysis, rank) for rank in ranks},
        "temporal_breakdown": answer(lambda: analysis.get_temporal_breakdown(visualize=False)),
        "kernel_breakdown": answer(lambda: analysis.get_gpu_kernel_breakdown(**names)[1]),
        "idle_time": answer(lambda: per_rank(ranks, lambda rank: analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)[0])),
        "overlap": answer(lambda: analysis.get_comm_comp_overlap(visualize=False)),
        "launch_stats": answer(lambda: per_rank(ranks, lambda rank: analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank])),
        "memory_bandwidth": answer(lambda: per_rank(ranks, lambda rank: analysis.get_memory_bw_summary(ranks=[rank]))),
        "queue_length": answer(lambda: per_rank(ranks, lambda rank: analysis.get_queue_length_summary(ranks=[rank]))),
        "critical_path": answer(lambda: {rank: critical_path(analysis, rank) for rank in ranks}),
    }
    print("answers " + json.dumps(plain(answers)))


main()

"""HTA (HolisticTraceAnalysis, and the same under its newer name traceinsight) on two ranks: what it finds is what `xpu report` says.

In the form for HTA all eight analyses are understood, in the default form the five that need no CUDA names. Two spoiled traces show that a trace which
is not understood is noticed.
"""
import json
from pathlib import Path

import reader_packages
import readers
from harness import POCL_ICD, dump, environment, needs, run
from readers import STEPS, SYSTEM_PYTHON

HERE = Path(__file__).resolve().parent
RANKS = ("0", "1")
BOTH_FORMS = ("temporal_breakdown", "kernel_breakdown", "idle_time", "overlap", "memory_bandwidth")
FOR_HTA_ONLY = ("launch_stats", "queue_length", "critical_path")
COMMUNICATION = "ncclDevKernel_AllReduce_Sum"
# HTA floors times to microseconds unless it is told not to.
EXACT = {"HTA_DISABLE_NS_ROUNDING": "1"}


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def nearest_rank(values, percent):
    values = sorted(values)
    return values[max(0, -(-len(values) * percent // 100) - 1)]


@needs(POCL_ICD, SYSTEM_PYTHON)
class HtaTest(readers.ReaderTest):
    @classmethod
    def setUpClass(cls):
        cls.python = reader_packages.python()
        cls.versions = {"HolisticTraceAnalysis": {}, "traceinsight": {"PYTHONPATH": reader_packages.traceinsight()}}

    def setUp(self):
        super().setUp()
        self.recordings, self.figures = {}, {}
        for rank in RANKS:
            self.recordings[rank], self.figures[rank] = self.record(f"rank{rank}", *readers.training_steps(rank, self.folder))

    def exported(self, name, *options):
        folder = self.folder / name
        folder.mkdir()
        for rank in RANKS:
            self.export(self.recordings[rank], folder / f"rank{rank}.json", *options)
        return folder

    def ask(self, folder, **env):
        finished = run([self.python, HERE / "analyses.py", folder], environment(PYTHONDONTWRITEBYTECODE="1", **env), timeout=180)
        self.assertEqual(finished.code, 0, finished)
        answers = [line for line in finished.stdout.decode().splitlines() if line.startswith("answers ")]
        self.assertEqual(len(answers), 1, finished)  # HTA prints on its own
        return json.loads(answers[0].removeprefix("answers "))

    def test_the_form_for_hta_is_understood_in_all_eight_analyses(self):
        folder = self.exported("compat", "--compat", "hta")
        for version, env in self.versions.items():
            with self.subTest(version):
                answers = self.ask(folder, **env, **EXACT)
                self.check_what_both_forms_have(answers)
                for rank in RANKS:
                    self.check_launches(answers, rank)
                    self.check_queue_length(answers, rank)
                    self.check_critical_path(answers, rank)

    def test_the_default_form_is_understood_in_five(self):
        folder = self.exported("default")
        for version, env in self.versions.items():
            with self.subTest(version):
                answers = self.ask(folder, **env, **EXACT)
                self.check_what_both_forms_have(answers)
                # The other three look for CUDA's names of calls. Were they there by chance, the form for HTA would prove nothing.
                for rank in RANKS:
                    self.assertEqual(answers["launch_stats"]["answer"][rank], [])
                    self.assertIsNone(answers["queue_length"]["answer"][rank])
                self.assertRegex(answers["critical_path"]["error"], "^(AssertionError|TypeError)")

    def test_rounded_to_microseconds_as_hta_does_by_itself(self):
        answers = self.ask(self.exported("compat", "--compat", "hta"))
        for name in BOTH_FORMS + FOR_HTA_ONLY:
            self.assertIn("answer", answers[name], name)
        for rank in RANKS:
            sums = {row["name"]: row["sum (us)"] for row in answers["kernel_breakdown"]["answer"] if str(row["rank"]) == rank}
            for name, (calls, total_ns) in readers.kernels(self.figures[rank]).items():
                # Start rounded up, end rounded down.
                self.assertLessEqual(sums[name] * 1000, total_ns, name)
                self.assertGreater(sums[name] * 1000, total_ns - 2000 * calls, name)

    def test_without_streams_no_device_work_is_found(self):
        folder = self.exported("no_stream", "--compat", "hta")
        for path in folder.iterdir():
            trace = json.loads(path.read_text())
            for event in trace["traceEvents"]:
                event.get("args", {}).pop("stream", None)
            path.write_text(json.dumps(trace))
        answers = self.ask(folder, **EXACT)
        self.assertEqual(answers["ranks"], [0, 1])
        for rank in RANKS:
            self.assertEqual(answers["rows"][rank]["events"], [])
        for name in ("temporal_breakdown", "idle_time", "critical_path"):
            self.assertIn("error", answers[name], name)
        self.assertEqual(answers["kernel_breakdown"].get("answer", []), [])

    def test_without_the_blank_behind_rank_both_ranks_are_one(self):
        folder = self.exported("minified", "--compat", "hta")
        for path in folder.iterdir():
            path.write_text(json.dumps(json.loads(path.read_text()), separators=(",", ":")))
        self.assertEqual(self.ask(folder)["ranks"], [0])

    def check_what_both_forms_have(self, answers):
        self.assertEqual(answers["ranks"], [0, 1])
        for name in BOTH_FORMS:
            self.assertIn("answer", answers[name], name)
        for rank in RANKS:
            self.check_rows(answers, rank)
            self.check_kernel_breakdown(answers, rank)
            self.check_temporal_breakdown(answers, rank)
            self.check_idle_time(answers, rank)
            self.check_overlap(answers, rank)
            self.check_bandwidth(answers, rank)

    def check_rows(self, answers, rank):
        """Every command of the device is there and linked to its call; names and counts are ours."""
        figures, rows = self.figures[rank], answers["rows"][rank]
        commands = readers.device_commands(figures)
        self.assertEqual(len(rows["events"]), commands)
        self.assertEqual(rows["linked"], commands)
        theirs = {}
        for event in rows["events"]:
            name = event["name"].split(" (")[0]
            theirs[name] = theirs.get(name, 0) + 1
        ours = {name: row[0] for name, row in {**readers.kernels(figures), **readers.copies(figures)}.items()}
        ours["Memset"] = readers.fills(figures)[0]
        self.assertEqual(theirs, ours)
        self.assertEqual(theirs["Memcpy HtoD"], STEPS)

    def check_kernel_breakdown(self, answers, rank):
        rows = [row for row in answers["kernel_breakdown"]["answer"] if str(row["rank"]) == rank]
        figures = self.figures[rank]
        ours = {name: total_ns for name, (_, total_ns) in readers.kernels(figures).items()}
        ours |= {name: total_ns for name, (_, total_ns, _) in readers.copies(figures).items()}
        ours["Memset"] = readers.fills(figures)[1]
        self.assertEqual({row["name"].split(" (")[0]: nanoseconds(row["sum (us)"]) for row in rows}, ours)
        for kernel in figures["kernels"]:
            row = next(row for row in rows if row["name"] == kernel["name"])
            self.assertEqual(nanoseconds(row["max (us)"]), kernel["max_ns"])
            self.assertEqual(nanoseconds(row["min (us)"]), kernel["min_ns"])
            self.assertEqual(row["kernel_type"], "COMMUNICATION" if kernel["name"] == COMMUNICATION else "COMPUTATION")

    def check_temporal_breakdown(self, answers, rank):
        row = next(row for row in answers["temporal_breakdown"]["answer"] if str(row["rank"]) == rank)
        device = next(device for device in self.figures[rank]["devices"] if device["commands"])
        self.assertEqual(nanoseconds(row["kernel_time(us)"]), device["span_ns"])
        self.assertEqual(nanoseconds(row["idle_time(us)"]), device["idle_ns"])
        self.assertEqual(nanoseconds(row["compute_time(us)"] + row["non_compute_time(us)"]), device["busy_ns"])

    def check_idle_time(self, answers, rank):
        """By queue: what lies between its commands, in total."""
        theirs = {}
        for row in answers["idle_time"]["answer"][rank]:
            theirs[row["stream"]] = theirs.get(row["stream"], 0) + nanoseconds(row["idle_time"])
        ours = {queue: times[-1][1] - times[0][0] - sum(end - start for start, end in times) for queue, times in self.times_by_queue(rank).items()}
        self.assertEqual(theirs.keys(), ours.keys())
        for queue, idle_ns in ours.items():
            self.assertAlmostEqual(theirs[queue], idle_ns, delta=20)  # HTA rounds each of at most three rows to 10 ns

    def check_overlap(self, answers, rank):
        row = next(row for row in answers["overlap"]["answer"] if str(row["rank"]) == rank)
        times = {True: [], False: []}
        for operation in self.operations(rank):
            if operation["name"] != "-":
                times[operation["name"] == COMMUNICATION].append(interval(operation))
        both = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in times[True] for b in times[False])
        self.assertAlmostEqual(row["comp_comm_overlap_pctg"], 100 * both / sum(end - start for start, end in times[True]), delta=0.1)

    def check_bandwidth(self, answers, rank):
        summary = {row["name"]: row for row in answers["memory_bandwidth"]["answer"][rank]}
        ours = readers.copies(self.figures[rank])
        self.assertEqual(summary.keys(), ours.keys())
        for name, (calls, total_ns, size_bytes) in ours.items():
            self.assertEqual(summary[name]["memory_bw_gbps_count"], calls)
            self.assertGreaterEqual(size_bytes / total_ns, summary[name]["memory_bw_gbps_min"] - 0.001)
            self.assertLessEqual(size_bytes / total_ns, summary[name]["memory_bw_gbps_max"] + 0.001)
            moved = sum(event["memory_bw_gbps"] * event["dur"] * 1000 for event in answers["rows"][rank]["events"] if event["name"].startswith(name))
            self.assertAlmostEqual(moved, size_bytes, delta=0.001 * total_ns)  # the rate has three decimals

    def check_launches(self, answers, rank):
        figures, rows = self.figures[rank], answers["launch_stats"]["answer"][rank]
        self.assertEqual(len(rows), readers.device_commands(figures))
        calls = [row for row in figures["api"] if row["name"].startswith("clEnqueue")]
        self.assertEqual(nanoseconds(sum(row["cpu_duration"] for row in rows)), sum(call["total_ns"] for call in calls))
        events = answers["rows"][rank]["events"]
        self.assertEqual(nanoseconds(sum(row["gpu_duration"] for row in rows)), nanoseconds(sum(event["dur"] for event in events)))
        names = {event["correlation"]: event["name"] for event in events}
        for kernel in figures["kernels"]:
            delays = [row["launch_delay"] for row in rows if names[row["correlation"]] == kernel["name"]]
            # HTA takes 0 for what began before its call had returned.
            for ours, percent in ((kernel["launch_delay_ns"]["median"], 50), (kernel["launch_delay_ns"]["p99"], 99)):
                self.assertEqual(nanoseconds(nearest_rank(delays, percent)), max(0, ours), kernel["name"])

    def check_queue_length(self, answers, rank):
        """One more and one less for each command."""
        theirs = {row["stream"]: row["queue_length_count"] for row in answers["queue_length"]["answer"][rank]}
        self.assertEqual(theirs, {queue: 2 * len(times) for queue, times in self.times_by_queue(rank).items()})

    def check_critical_path(self, answers, rank):
        path = answers["critical_path"].get("answer", {}).get(rank)
        self.assertIsNotNone(path, answers["critical_path"])
        self.assertTrue(path["found"])
        step = next(row for row in self.figures[rank]["ranges"] if row["name"] == "ProfilerStep#1")
        self.assertLessEqual(path["duration"] * 1000, step["host_ns"])
        self.assertGreater(path["duration"] * 1000, 0.5 * step["host_ns"])

    def operations(self, rank):
        return [operation for operation in dump(self.recordings[rank])["operation"] if operation["done"]]

    def times_by_queue(self, rank):
        queues = {}
        for operation in self.operations(rank):
            queues.setdefault(operation["queue"], []).append(interval(operation))
        return {queue: sorted(times) for queue, times in queues.items()}


def interval(operation):
    return operation["mapped_end"] - (operation["end"] - operation["start"]), operation["mapped_end"]  # PoCL's ticks are nanoseconds


if __name__ == "__main__":
    readers.main()

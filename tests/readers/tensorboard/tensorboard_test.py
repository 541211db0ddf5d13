"""TensorBoard's plugin for PyTorch (torch-tb-profiler) on traces in the default form: the calls and durations in its table of kernels are ours."""
import collections
import json
from pathlib import Path

import reader_packages
import readers
from harness import POCL_ICD, environment, needs, run
from readers import STEPS, SYSTEM_PYTHON

HERE = Path(__file__).resolve().parent


@needs(POCL_ICD, SYSTEM_PYTHON)
class TensorboardTest(readers.ReaderTest):
    @classmethod
    def setUpClass(cls):
        cls.python = reader_packages.python()

    def setUp(self):
        super().setUp()
        self.figures, self.files = {}, []
        for name, (command, env) in readers.programs(self.folder).items():
            recording, self.figures[name] = self.record(name, command, env)
            # The plugin knows its files by their names: worker, time, and these suffixes.
            for suffix in ("json", "json.gz"):
                self.files.append(self.export(recording, self.folder / f"{name}.1700000000000.pt.trace.{suffix}"))

    def tables(self):
        finished = run([self.python, HERE / "tables.py", *self.files], environment(PYTHONDONTWRITEBYTECODE="1"), timeout=120)
        self.assertEqual(finished.code, 0, finished)
        lines = [line for line in finished.stdout.decode().splitlines() if line.startswith("tables ")]
        self.assertEqual(len(lines), 1, finished)
        return json.loads(lines[0].removeprefix("tables "))

    def test_its_table_of_kernels_is_ours(self):
        tables = self.tables()
        self.assertEqual(len(tables), 2 * len(self.figures))
        for name, table in tables.items():
            with self.subTest(name):
                figures = self.figures[table["worker"]]
                self.check_kernels(table, figures)
                self.assertEqual(table["has_copies"], bool(figures["copies"] or figures["fills"]))
                self.assertEqual(table["devices"], [0])
                # Release 0.4.3 knows the category "runtime" of an old PyTorch, and neither xpu_runtime nor cuda_runtime: calls it cannot see.
                self.assertFalse(table["has_runtime"])
                self.assertEqual(set(table["views"]), {"Overview", "Operator", "Kernel", "Trace"})
        training, figures = tables["training.1700000000000.pt.trace.json"], self.figures["training"]
        # It takes what a queue did for a step (Kineto's category gpu_user_annotation) for a step of its own with the same name.
        self.assertEqual(list(dict.fromkeys(training["steps"])), [str(step) for step in range(STEPS + 1)])
        self.assertEqual(training["rank"], 0)
        # Without a step it knows no time for which a device could have been busy.
        self.assertGreater(training["utilization"][0], 0)
        self.assertLessEqual(training["utilization"][0], 1)
        # Of copies it shows the time by step only, without what a kernel ran beside; and once for each step that it takes for one.
        taken = max(collections.Counter(training["steps"]).values())
        self.assertGreater(training["copy_time"], 0)
        self.assertLessEqual(training["copy_time"] * 1000, taken * sum(copy["total_ns"] for copy in figures["copies"]) + 1)

    def check_kernels(self, table, figures):
        theirs = {name: (row["calls"], round(row["sum"] * 1000)) for name, row in table["kernels"].items()}
        ours = readers.kernels(figures)
        self.assertEqual(theirs, ours)
        for kernel in figures["kernels"]:
            self.assertEqual(round(table["kernels"][kernel["name"]]["max"] * 1000), kernel["max_ns"])
            self.assertEqual(round(table["kernels"][kernel["name"]]["min"] * 1000), kernel["min_ns"])
        # The page shows the same in whole microseconds.
        columns = table["kernel_table"]["columns"]
        name, calls, total = (columns.index(column) for column in ("Name", "Calls", "Total Duration (us)"))
        shown = {row[name]: (row[calls], row[total]) for row in table["kernel_table"]["rows"]}
        self.assertEqual(shown.keys(), ours.keys())
        for kernel, (our_calls, total_ns) in ours.items():
            self.assertEqual(shown[kernel][0], our_calls)
            self.assertAlmostEqual(shown[kernel][1], total_ns / 1000, delta=0.501)


if __name__ == "__main__":
    readers.main()

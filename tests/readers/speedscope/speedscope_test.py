"""speedscope on exported traces: what it exports again, in its own format, has the same events and sums as `xpu report`.

Its importer is inside the bundle of its page and in no module of its own, so that the page is opened, in Chromium, with a file.
"""
import collections
import gzip
import itertools
import json
from pathlib import Path

import reader_packages
import readers
from harness import BUILD, POCL_ICD, environment, needs, run
from readers import STEPS, SYSTEM_PYTHON

HERE = Path(__file__).resolve().parent


@needs(POCL_ICD, SYSTEM_PYTHON)
class SpeedscopeTest(readers.ReaderTest):
    @classmethod
    def setUpClass(cls):
        cls.node_modules = reader_packages.node_modules()

    def open(self, traces):
        """By the name of the trace: what speedscope understood, as the file that it saves, and how often it was at a loss."""
        pictures = BUILD / "pictures"
        pictures.mkdir(exist_ok=True)
        finished = run(["node", HERE / "open_in_speedscope.mjs", self.folder, *traces], environment(XPU_NODE_MODULES=self.node_modules), timeout=240)
        self.assertEqual(finished.code, 0, finished)
        seen = json.loads(finished.stdout)
        self.assertEqual(seen["outside"], [])
        self.assertEqual(seen["page_errors"], [])
        for trace in traces:
            complaints = seen["complaints"][trace.name]
            self.assertLessEqual(len(complaints), 2 * touching(trace), complaints[:3])
        for picture in self.folder.glob("*.png"):
            picture.rename(pictures / f"speedscope.{picture.name}")
        return {trace.name: (json.loads((self.folder / f"{trace.name}.speedscope.json").read_text()), len(seen["complaints"][trace.name]))
                for trace in traces}

    def test_events_and_sums_are_ours(self):
        figures, traces = {}, []
        for name, (command, env) in readers.programs(self.folder).items():
            recording, figures[name] = self.record(name, command, env)
            traces.append(self.export(recording, self.folder / f"{name}.json.gz" if name == "training" else self.folder / f"{name}.json"))
        understood = self.open(traces)
        for name, (theirs, complaints) in understood.items():
            with self.subTest(name):
                self.check(theirs, figures[name.split(".")[0]], complaints)
        training = spans(understood["training.json.gz"][0])
        for step in range(STEPS):
            ours = next(row for row in figures["training"]["ranges"] if row["name"] == f"ProfilerStep#{step}")
            self.assertEqual(training[f"ProfilerStep#{step}"], (1, ours["host_ns"]))

    def check(self, theirs, figures, complaints):
        found = spans(theirs)
        for kernel in figures["kernels"]:
            self.assertGreater(kernel["min_ns"], 0, "speedscope leaves out what takes no time")
        for name, ours in readers.kernels(figures).items():
            self.assertEqual(found[name][1], ours[1], name)
            self.assertLessEqual(found[name][0], ours[0], name)
            self.assertGreaterEqual(found[name][0], ours[0] - complaints, name)
        by_kind = collections.defaultdict(lambda: (0, 0))
        for name, (calls, total_ns) in found.items():
            kind = name.split(" (")[0]
            by_kind[kind] = (by_kind[kind][0] + calls, by_kind[kind][1] + total_ns)
        for name, (calls, total_ns, _) in readers.copies(figures).items():
            self.assertEqual(by_kind[name], (calls, total_ns))
        self.assertEqual(by_kind["Memset"], readers.fills(figures))
        # Calls that waited for an event are in the trace as waits; both have the name of the call.
        for call in figures["api"]:
            self.assertEqual(found[call["name"]], (call["calls"], call["total_ns"]), call["name"])
        rows = [profile["name"] for profile in theirs["profiles"]]
        self.assertTrue(any("queue 1" in row for row in rows), rows)
        self.assertEqual({profile["unit"] for profile in theirs["profiles"]}, {"microseconds"})


def touching(trace):
    """How often something begins in the nanosecond in which the one before it in its row ended.

    speedscope adds up floating-point numbers: now and then the end comes out behind the begin, and it gives the one's end to the other, which has then
    no length. Where both have the same name, as here, the sum stays.
    """
    opened = gzip.open(trace) if trace.suffix == ".gz" else open(trace, "rb")
    with opened as file:
        slices = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    rows = collections.defaultdict(list)
    for event in slices:
        begin = round(event["ts"] * 1000)
        rows[event["pid"], event["tid"]].append((begin, begin + round(event["dur"] * 1000)))
    return sum(first[1] == second[0] for row in rows.values() for first, second in itertools.pairwise(sorted(row)))


def spans(theirs):
    """Name to number and nanoseconds in all. speedscope makes the arguments part of the name: they are cut off."""
    frames = [frame["name"].split(' {"')[0] for frame in theirs["shared"]["frames"]]
    found = collections.defaultdict(lambda: (0, 0))
    for profile in theirs["profiles"]:
        if "annotations" in profile["name"]:
            continue  # what a queue did for a range has the range's name, and is no time of the host
        opened = []
        for event in profile["events"]:
            if event["type"] == "O":
                opened.append(event)
                continue
            begin = opened.pop()
            assert begin["frame"] == event["frame"], "a span ends that is not the innermost one"
            calls, total_ns = found[frames[event["frame"]]]
            found[frames[event["frame"]]] = (calls + 1, total_ns + round((event["at"] - begin["at"]) * 1000))
        assert not opened
    return found


if __name__ == "__main__":
    readers.main()

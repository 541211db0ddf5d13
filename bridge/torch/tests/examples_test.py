"""The examples do what they say, as a user runs them."""
import re
import sys
import tempfile
import unittest
from pathlib import Path

import harness

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "torch"


class ExamplesTest(unittest.TestCase):
    def run_example(self, name, *arguments):
        finished = harness.run([sys.executable, EXAMPLES / name, *arguments], timeout_s=240)
        self.assertEqual(finished.code, 0, finished)
        return finished.stdout

    def test_train_mlp(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "mlp.json"
            text = self.run_example("train_mlp.py", "--trace", trace)
            self.assertGreater(trace.stat().st_size, 10_000)
        self.assertGreater(float(re.search(r"([\d.]+) % right", text).group(1)), 90, text)
        self.assertIn("Self XPU", text)

    def test_train_transformer(self):
        text = self.run_example("train_transformer.py", "--steps", "40")
        first, last = (float(value) for value in re.search(r"loss ([\d.]+) at first, ([\d.]+) after", text).groups())
        self.assertLess(last, 0.95 * first)

    def test_memory_peak(self):
        text = self.run_example("memory_peak.py")
        peak, own = (float(value) for value in re.search(r"asked for: ([\d.]+) MiB \(the allocator's own figure: ([\d.]+) MiB\)", text).groups())
        self.assertLess(abs(peak - own), 0.5)
        self.assertRegex(text, r"MiB  line \d+: weights = torch.randn")

    def test_overlap(self):
        text = self.run_example("overlap.py")
        self.assertEqual(re.search(r"(\d+) copies", text).group(1), "8")
        self.assertGreater(float(re.search(r"of which ([\d.]+) ms beside", text).group(1)), 0, text)

    def test_ddp(self):
        text = self.run_example("ddp.py")
        self.assertEqual(len(re.findall(r"rank \d on xpu:0: loss [\d.]+, weights agree", text)), 2, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""What `xpu check` says of recordings and of traces, and how its exit code tells right from wrong from neither."""
import gzip
import json
import unittest

from cli_test import CliTest, submitted


class CheckTest(CliTest):
    def test_a_whole_recording_is_ok(self):
        finished = self.record_workload("a")
        text = self.xpu("check", "a")
        self.assertEqual(text.code, 0, text)
        self.assertRegex(text.stdout, rb"(?m)^OK: ")
        document = self.document("check", "a", "--json")
        self.assertEqual(document["schema"], "xpu.check/1")
        self.assertIs(document["ok"], True)
        self.assertEqual(document["conservation"]["submitted"], submitted(finished.stdout))
        self.assertEqual(sum(queue["submitted"] for queue in document["queues"]), document["conservation"]["submitted"])

    def test_a_damaged_file_is_not_ok(self):
        self.record_workload("a")
        whole = (self.folder / "a.xpu").read_bytes()
        spoiled = bytearray(whole)
        for at in range(len(whole) // 4, len(whole) // 2):
            spoiled[at] ^= 0x5a
        for contents in (whole[: len(whole) // 2], bytes(spoiled)):
            (self.folder / "a.xpu").write_bytes(contents)
            finished = self.xpu("check", "a", "--json")
            self.assertEqual(finished.code, 1, finished)
            document = json.loads(finished.stdout)
            self.assertIs(document["ok"], False)
            self.assertTrue(document["problems"])
            self.assertRegex(self.xpu("check", "a").stdout, rb"(?m)^WRONG: ")


    def test_an_exported_timeline_is_right(self):
        self.record_workload("a")
        self.assertEqual(self.xpu("export", "a", "-o", "plain").code, 0)
        self.assertEqual(self.xpu("export", "a", "-o", "packed.gz").code, 0)
        for name in ("plain", "packed.gz"):  # by contents, whatever the name
            finished = self.xpu("check", name)
            self.assertEqual((finished.code, finished.stderr), (0, b""), finished)
            self.assertRegex(finished.stdout, rb"(?m)^OK: 0 errors, 0 warnings, ")
        document = self.document("check", "packed.gz", "--json")
        self.assertEqual(document["schema"], "xpu.check_trace/1")
        kernels = sum(row["calls"] for row in self.document("report", "a", "--json")["kernels"])
        self.assertEqual(document["kernels"], kernels)
        self.assertEqual(document["device_slices"]["with_call"], document["device_slices"]["count"])

    def test_the_exit_code_tells_a_wrong_trace_from_none(self):
        whole = {"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0.5, "dur": 1}]}
        wrong = {"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0.5, "dur": -1}]}
        for text, code in ((json.dumps(whole), 0), (json.dumps(wrong), 1), (json.dumps(whole)[:-1], 1)):
            (self.folder / "a.json").write_text(text)
            finished = self.xpu("check", "a.json")
            self.assertEqual((finished.code, finished.stderr), (code, b""), finished)
            self.assertRegex(finished.stdout.splitlines()[-1], b"^OK: " if code == 0 else b"^WRONG: ")
            self.assertIs(json.loads(self.xpu("check", "a.json", "--json").stdout)["ok"], code == 0)
        packed = gzip.compress(json.dumps(whole).encode())
        for contents in (b"{}", b'{"traceEvents": 5}', b"[", packed[:-1]):
            (self.folder / "a.json").write_bytes(contents)
            code = 1 if contents == b"[" else 2
            self.assertEqual(self.xpu("check", "a.json").code, code, contents)
            if code == 2:
                self.assert_fails(self.xpu("check", "a.json"), 2, "a.json")


if __name__ == "__main__":
    unittest.main(verbosity=2)

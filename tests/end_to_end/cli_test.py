"""What a person types and sees: names, options, outputs and help of the program `xpu`, and what it hands to the program it records."""
import csv
import gzip
import io
import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import time
import unittest

from harness import BIN, COUNTING_LAYER, LAYER, XPU, EndToEndTest, environment, finish, null_driver, run, start

PATIENCE = 60
WORKLOAD = BIN / "xpu_test_workload"
COUNT = 300


def submitted(stdout):
    return sum(int(value) for value in re.findall(rb"submitted=(\d+)", stdout))


class CliTest(EndToEndTest):
    def xpu(self, *arguments, env=None, **more):
        more.setdefault("cwd", self.folder)
        return run([XPU, *arguments], env or environment(), PATIENCE, **more)

    def record_workload(self, name, *options, mode="launch", count=COUNT):
        finished = self.xpu("record", "-o", name, *options, "--", WORKLOAD, mode, count, 100, env=null_driver())
        self.assertEqual(finished.code, 0, finished)
        return finished

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def document(self, *arguments):
        finished = self.xpu(*arguments)
        self.assertEqual(finished.code, 0, finished)
        return json.loads(finished.stdout)

    def assert_fails(self, finished, code, *words):
        self.assertEqual(finished.code, code, finished)
        self.assertEqual(finished.stdout, b"")
        self.assertRegex(finished.stderr, rb"\Axpu: [^\n]+\n\Z")
        for word in words:
            self.assertIn(str(word).encode(), finished.stderr)


class NameTest(CliTest):
    def test_the_default_name_is_program_and_time_in_the_working_folder(self):
        for _ in range(2):  # both may fall into one second
            self.assertEqual(self.xpu("record", "/bin/true").code, 0)
        names = self.files()
        self.assertEqual(len(names), 2, names)
        for name in names:
            self.assertRegex(name, r"\Atrue-\d{8}-\d{6}(-2)?\.xpu\Z")

    def test_a_name_with_and_without_suffix_is_the_same(self):
        self.assertEqual(self.xpu("record", "-o", "a", "true").code, 0)
        self.assertEqual(self.files(), ["a.xpu"])
        self.assert_fails(self.xpu("record", "-o", "a.xpu", "true"), 125, "a.xpu", "-f")
        self.assertEqual(self.xpu("record", "--output=a.xpu", "--force", "--", "true").code, 0)
        self.assertEqual(self.files(), ["a.xpu"])

    def test_without_f_nothing_is_overwritten_and_the_program_does_not_start(self):
        (self.folder / "a.xpu").write_bytes(b"mine")
        self.assert_fails(self.xpu("record", "-o", "a", "touch", "started"), 125, "a.xpu", "-f")
        (self.folder / "b.xpu.live").mkdir()
        self.assert_fails(self.xpu("record", "-o", "b", "touch", "started"), 125, "b.xpu.live", "-f")
        self.assertEqual((self.folder / "a.xpu").read_bytes(), b"mine")
        self.assertEqual(self.files(), ["a.xpu", "b.xpu.live"])

    def test_f_does_not_write_through_a_link(self):
        (self.folder / "precious").write_bytes(b"mine")
        (self.folder / "a.xpu").symlink_to("precious")
        self.assertEqual(self.xpu("record", "-f", "-o", "a", "true").code, 0)
        self.assertEqual((self.folder / "precious").read_bytes(), b"mine")
        self.assertFalse((self.folder / "a.xpu").is_symlink())

    def test_a_recording_is_for_its_owner_only(self):
        self.assertEqual(self.xpu("record", "-o", "a", "true", preexec_fn=lambda: os.umask(0)).code, 0)
        self.assertEqual(stat.S_IMODE((self.folder / "a.xpu").stat().st_mode), 0o600)

    def test_a_folder_is_no_name(self):
        (self.folder / "sub").mkdir()
        self.assert_fails(self.xpu("record", "-o", "sub", "true"), 125, "sub")
        self.assert_fails(self.xpu("record", "-o", "sub/", "true"), 125, "sub/")
        self.assertEqual(self.xpu("record", "-o", "sub/a", "true").code, 0)
        self.assertTrue((self.folder / "sub" / "a.xpu").exists())

    def test_commands_take_the_newest_recording_here(self):
        for command in ("report", "check", "export"):
            self.assert_fails(self.xpu(command), 1, self.folder, "xpu record")
        self.record_workload("z")
        self.record_workload("a")
        os.utime(self.folder / "z.xpu")  # the newest start counts, not the newest file
        self.assertTrue(self.document("report", "--json")["program"]["path"].endswith("a.xpu"))
        self.assertTrue(self.document("check", "--json")["path"].endswith("a.xpu"))

    def test_a_recording_is_found_under_each_of_its_names(self):
        self.record_workload("a")
        for name in ("a", "a.xpu", self.folder / "a", self.folder / "a.xpu"):
            self.assertEqual(self.xpu("report", name).code, 0)
        for command in ("report", "check", "export"):
            self.assert_fails(self.xpu(command, "nothing"), 1, "nothing")
            (self.folder / "text.xpu").write_text("no recording at all")
            self.assert_fails(self.xpu(command, "text.xpu"), 1, "text.xpu")


class ProgramTest(CliTest):
    """What the recorded program gets and gives."""

    def test_standard_input_and_output_are_untouched(self):
        data = os.urandom(1 << 20)
        finished = subprocess.run([XPU, "record", "-o", "a", "cat"], env=environment(), cwd=self.folder, input=data, capture_output=True, timeout=PATIENCE,
                                  check=True)
        self.assertTrue(finished.stdout == data, "what cat was given came back changed")

    def test_our_lines_go_to_standard_error_only(self):
        finished = self.xpu("record", "-o", "a", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual(finished.stdout, b"out\n")
        self.assertIn(b"err\n", finished.stderr)
        for line in finished.stderr.splitlines():
            self.assertTrue(line == b"err" or line.startswith(b"xpu: "), line)

    def test_closed_standard_descriptors_stay_closed_and_nothing_lands_in_the_recording(self):
        script = "exec env \"$@\" sh -c 'ls -l /proc/self/fd >>log; exit 3' <&- >&- 2>&-"
        finished = run(["sh", "-c", script, "sh", XPU, "record", "-o", "a", "--"], environment(), PATIENCE, cwd=self.folder)
        self.assertEqual(finished.code, 3, finished)
        self.assertNotIn("/dev/null", (self.folder / "log").read_text())
        self.assertEqual(self.xpu("check", "a").code, 0)

    def test_the_environment_has_the_folder_and_our_layer_last(self):
        script = 'echo "$XPU_RECORD"; echo "$OPENCL_LAYERS"'
        for existing, expected in ((None, f"{LAYER}"), ("", f"{LAYER}"), ("/one.so:/two.so", f"/one.so:/two.so:{LAYER}"), (LAYER, f"{LAYER}")):
            finished = self.xpu("record", "-f", "-o", "a", "sh", "-c", script, env=environment(OPENCL_LAYERS=existing))
            self.assertEqual(finished.stdout.decode().splitlines(), [f"{self.folder}/a.xpu.live", expected])

    def test_the_rest_of_the_environment_and_the_arguments_are_untouched(self):
        command = ["sh", "-c", 'env | grep -vE "^(XPU_RECORD|OPENCL_LAYERS|_|PWD|OLDPWD|SHLVL)="; for word; do echo "<$word>"; done', "sh", "-o", "", "a b", "--"]
        plain = run(command, environment(ODD="a\nb"), PATIENCE)
        traced = self.xpu("record", "-o", "a", "--", *command, env=environment(ODD="a\nb"))
        self.assertEqual(sorted(traced.stdout.splitlines()), sorted(plain.stdout.splitlines()))

    def test_a_script_without_an_interpreter_line_runs_as_in_a_shell(self):
        script = self.folder / "script"
        script.write_text('echo "ran $1"\nexit 6\n')
        script.chmod(0o755)
        finished = self.xpu("record", "-o", "a", "./script", "x")
        self.assertEqual((finished.code, finished.stdout), (6, b"ran x\n"))

    def test_a_child_of_the_program_is_recorded_too(self):
        finished = self.xpu("record", "-o", "a", "sh", "-c", f"{WORKLOAD} launch {COUNT} 100; {WORKLOAD} launch {COUNT} 100", env=null_driver())
        books = self.document("report", "a", "--json")["conservation"]
        self.assertGreaterEqual(books["submitted"], 2 * COUNT)
        self.assertEqual(books["submitted"], submitted(finished.stdout))
        self.assertEqual(books["unexplained"], 0)

    def test_layers_that_were_there_keep_working(self):
        finished = self.xpu("record", "-o", "a", WORKLOAD, "launch", COUNT, 100,
                            env=null_driver(OPENCL_LAYERS=COUNTING_LAYER, XPU_TEST_COUNTS=self.folder / "counts"))
        self.assertEqual(self.document("report", "a", "--json")["conservation"]["submitted"], submitted(finished.stdout))
        self.assertTrue(list(self.folder.glob("counts.*")))


class RecordTest(CliTest):
    def test_the_last_line_says_everything_and_what_to_type_next(self):
        finished = self.record_workload("a")
        last = finished.stderr.splitlines()[-1].decode()
        match = re.fullmatch(r"xpu: ([\d,]+) commands \(([\d,]+) kernels\), device busy .+, 0 lost -> a\.xpu   next: (.+)", last)
        self.assertIsNotNone(match, last)
        self.assertEqual(int(match[1].replace(",", "")), submitted(finished.stdout))
        following = run(["sh", "-c", f"PATH={XPU.parent}:$PATH; {match[3]}"], environment(), PATIENCE, cwd=self.folder)
        self.assertEqual(following.code, 0, following)

    def test_kernels_that_were_not_asked_for_are_filtered(self):
        self.record_workload("a", "--kernels", "no such kernel")
        books = self.document("check", "a", "--json")["conservation"]
        self.assertGreaterEqual(books["filtered"], COUNT)
        self.assertEqual(books["unexplained"], 0)
        self.record_workload("b", "--kernels", "^tiny$")
        self.assertGreaterEqual(self.document("check", "b", "--json")["conservation"]["submitted"], COUNT)

    def test_a_delay_longer_than_the_program_records_nothing_and_says_so(self):
        for number, options in enumerate((["--delay", "1000"], ["--start-paused"])):
            finished = self.record_workload(f"a{number}", *options)
            books = self.document("check", f"a{number}", "--json")["conservation"]
            self.assertEqual((books["submitted"], books["lost"], books["unexplained"]), (0, 0, 0))
            self.assertEqual(books["filtered"], submitted(finished.stdout))
            self.assertIn(b"paused or filtered", finished.stderr)

    def paused_in_memory(self, live):
        """What the recorder tells the next process: the flag in every spare segment."""
        flags = [int.from_bytes(path.read_bytes()[64:68], "little") for path in live.glob("spare-*.seg")]
        return flags and all(flags)

    def test_a_paused_start_is_resumed_and_paused_by_the_signal(self):
        script = f"for i in 1 2 3; do {WORKLOAD} launch {COUNT} 100; echo done; read line; done"
        process = start([XPU, "record", "-o", "a", "--start-paused", "--", "sh", "-c", script], null_driver(), cwd=self.folder,
                        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        outputs = []
        for expected in (False, True, None):
            text = b""
            while b"done\n" not in text:
                self.assertTrue(select.select([process.stdout], [], [], PATIENCE)[0])
                text += os.read(process.stdout.fileno(), 4096)
            outputs.append(text)
            if expected is not None:
                process.send_signal(signal.SIGUSR2)
                deadline = time.monotonic() + PATIENCE
                while bool(self.paused_in_memory(self.folder / "a.xpu.live")) is not expected:
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.01)
            process.stdin.write(b"\n")
            process.stdin.flush()
        self.assertEqual(finish(process, PATIENCE).code, 0)
        books = self.document("check", "a", "--json")["conservation"]
        self.assertEqual(books["submitted"], submitted(outputs[1]))
        self.assertEqual(books["filtered"], submitted(outputs[0]) + submitted(outputs[2]))
        self.assertEqual(books["unexplained"], 0)

    def test_modes_differ_in_what_they_record(self):
        for options in ([], ["--device-only"], ["--api"]):
            self.record_workload("a", "-f", *options)
            report = self.document("report", "a", "--json")
            kernel = max(report["kernels"], key=lambda row: row["calls"])
            self.assertEqual(kernel["launch_delay_ns"] is None, options == ["--device-only"], options)
            names = {row["name"] for row in report["api"]}
            self.assertEqual("clSetKernelArg" in names, options == ["--api"], names)

    def test_a_limit_on_memory_is_kept_and_the_loss_is_said(self):
        finished = self.record_workload("a", "--max-live", "8M", mode="launch", count=200_000)
        books = self.document("check", "a", "--json")["conservation"]
        self.assertEqual(books["recorded"] + books["lost"] + books["pending"], books["submitted"])
        self.assertEqual(books["unexplained"], 0)
        if books["lost"]:
            self.assertIn(b"lost (no_chunk", finished.stderr)


class ReportTest(CliTest):
    SHAPE = {
        "schema": str,
        "program": {"argv": list, "exit_code": (int, None), "signal": (int, None), "wall_ns": (int, None)},
        "processes": [{"pid": int, "name": str, "rank": (int, None), "command": str}],
        "devices": [{"id": int, "name": str, "driver": str, "busy_ns": (int, None), "idle_ns": (int, None), "span_ns": (int, None)}],
        "kernels": [{"name": str, "raw_name": str, "device": (int, None), "calls": int, "failed": int, "total_ns": (int, None), "avg_ns": (int, None),
                     "min_ns": (int, None), "median_ns": (int, None), "p99_ns": (int, None), "max_ns": (int, None), "share": (float, int, None),
                     "launch_delay_ns": ({"median": int, "p99": int}, None), "geometries": list}],
        "copies": [{"route": str, "calls": int, "bytes": (int, None), "total_ns": (int, None), "bytes_per_s": (int, None)}],
        "fills": list,
        "api": [{"name": str, "calls": int, "failed": int, "total_ns": (int, None), "max_ns": (int, None)}],
        "ranges": list,
        "memory": [{"context": int, "peak_bytes": int}],
        "conservation": {"submitted": int, "recorded": int, "lost": int, "pending": int, "filtered": int, "left_out": int, "untimed": int, "unexplained": int,
                         "queues": list},
        "errors": {"unused_external_ids": int, "out_of_range": int, "before_call": int, "unnamed_calls": int, "unexpected_records": int,
                   "dropped_for_room": int, "duplicates": int, "orphans": int},
        "losses": list,
        "clocks": [{"device": int, "domain": str, "tick_ns": (float, int, None), "error_ns": (dict, None), "readings": int}],
        "overhead": {"program_ns": (int, None), "recorder_ns": (int, None)},
    }

    def assert_shape(self, value, shape, where="report"):
        if isinstance(shape, tuple):
            if value is None:
                self.assertIn(None, shape, where)
            else:
                fitting = [choice for choice in shape if choice is not None and type(value) is (choice if isinstance(choice, type) else type(choice))]
                self.assertTrue(fitting, f"{where} is {value!r}")
                self.assert_shape(value, fitting[0], where)
        elif isinstance(shape, dict):
            self.assertIs(type(value), dict, where)
            for key, inner in shape.items():
                self.assertIn(key, value, where)
                self.assert_shape(value[key], inner, f"{where}.{key}")
        elif isinstance(shape, list):
            self.assertIs(type(value), list, where)
            for index, element in enumerate(value):
                self.assert_shape(element, shape[0], f"{where}[{index}]")
        else:
            self.assertIs(type(value), shape, f"{where} is {value!r}")

    def test_json_has_the_documented_shape(self):
        finished = self.record_workload("a", mode="copy")
        report = self.document("report", "a", "--json")
        self.assertEqual(report["schema"], "xpu.report/1")
        self.assert_shape(report, self.SHAPE)
        self.assertEqual(report["program"]["exit_code"], 0)
        self.assertEqual(report["program"]["argv"][0], str(WORKLOAD))
        self.assertEqual(report["conservation"]["submitted"], submitted(finished.stdout))
        self.assertTrue(report["copies"])

    def test_an_empty_recording_is_a_report_too(self):
        self.assertEqual(self.xpu("record", "-o", "a", "true").code, 0)
        self.assert_shape(self.document("report", "a", "--json"), self.SHAPE)
        self.assertEqual(self.xpu("report", "a").code, 0)
        self.assertEqual(self.xpu("report", "a", "--csv").stdout.count(b"\n"), 1)

    def test_csv_and_json_and_text_agree(self):
        self.record_workload("a")
        kernels = self.document("report", "a", "--json")["kernels"]
        rows = list(csv.DictReader(io.StringIO(self.xpu("report", "a", "--csv").stdout.decode())))
        self.assertEqual([(row["name"], int(row["calls"]), int(row["total_ns"])) for row in rows],
                         [(kernel["name"], kernel["calls"], kernel["total_ns"]) for kernel in kernels])
        text = self.xpu("report", "a").stdout.decode()
        for kernel in kernels:
            self.assertIn(kernel["name"], text)
        self.assertNotIn("\x1b", text, "colours in a pipe")

    def test_options_choose_rows(self):
        self.record_workload("a", mode="mt")
        self.assertEqual(self.document("report", "a", "--json", "--kernels", "no such kernel")["kernels"], [])
        by_queue = self.document("report", "a", "--json", "--by", "queue")["kernels"]
        by_kernel = self.document("report", "a", "--json", "--by", "kernel")["kernels"]
        self.assertGreater(len(by_queue), len(by_kernel))
        self.assertEqual(sum(row["calls"] for row in by_queue), sum(row["calls"] for row in by_kernel))
        calls = [row["calls"] for row in self.document("report", "a", "--json", "--by", "queue", "--sort", "calls")["kernels"]]
        self.assertEqual(calls, sorted(calls, reverse=True))
        for by in ("process", "thread"):
            self.assertTrue(self.document("report", "a", "--json", "--by", by)["kernels"])
        for options in (["--top", "1"], ["--wide"], ["--by", "queue"]):
            self.assertEqual(self.xpu("report", "a", *options).code, 0)

    def test_wrong_options_are_usage_errors(self):
        self.record_workload("a")
        self.assert_fails(self.xpu("report", "a", "--sort", "size"), 2, "--sort", "size")
        self.assert_fails(self.xpu("report", "a", "--top", "many"), 2, "--top", "many")
        self.assert_fails(self.xpu("report", "a", "--by", "moon"), 2, "--by", "moon")
        self.assert_fails(self.xpu("report", "a", "--json", "--csv"), 2, "--json", "--csv")
        self.assert_fails(self.xpu("report", "a", "--kernels", "("), 2, "(")
        self.assert_fails(self.xpu("report", "a", "b"), 2, "b")

    def test_a_reader_that_goes_away_is_no_error(self):
        self.record_workload("a")
        for command in (["report", "a"], ["report", "a", "--json"], ["check", "a"], ["report", "--help"]):
            read_end, write_end = os.pipe()
            os.close(read_end)
            process = start([XPU, *command], environment(), cwd=self.folder, stdout=write_end)
            os.close(write_end)
            finished = finish(process, PATIENCE)
            self.assertEqual((finished.code, finished.stderr), (0, b""), command)

    def test_a_full_disk_is_said(self):
        self.record_workload("a")
        with open("/dev/full", "wb") as full:
            for command in (["report", "a"], ["check", "a"], ["--help"], ["--version"], ["record", "--help"]):
                finished = self.xpu(*command, stdout=full)
                self.assertEqual(finished.code, 1, (command, finished))
                self.assertIn(b"No space left", finished.stderr)

    def test_an_unfinished_recording_is_said_and_read(self):
        process = start([XPU, "record", "-o", "a", "--", "sh", "-c", f"{WORKLOAD} launch {COUNT} 100; echo done; read line"], null_driver(),
                        cwd=self.folder, stdin=subprocess.PIPE)
        seen = b""
        while b"done" not in seen:
            seen += os.read(process.stdout.fileno(), 4096)
        os.killpg(process.pid, signal.SIGKILL)
        finish(process, PATIENCE)
        self.assertEqual(self.files(), ["a.xpu.live"])
        finished = self.xpu("report", "--json")
        self.assertEqual(finished.code, 0, finished)
        self.assertIn(b"not finished", finished.stderr)
        self.assertEqual(json.loads(finished.stdout)["conservation"]["unexplained"], 0)
        self.assertEqual(json.loads(finished.stdout)["conservation"]["submitted"], submitted(seen))


class ExportTest(CliTest):
    def test_the_file_lies_beside_the_recording_and_opens(self):
        finished = self.record_workload("a")
        exported = self.xpu("export", "a")
        self.assertEqual((exported.code, exported.stdout), (0, b""), exported)
        self.assertRegex(exported.stderr, rb"\Axpu: a\.json\.gz .*perfetto.*\n\Z")
        events = json.loads(gzip.decompress((self.folder / "a.json.gz").read_bytes()))["traceEvents"]
        kernels = [event for event in events if event.get("cat") == "kernel"]
        self.assertEqual(len(kernels), sum(row["calls"] for row in self.document("report", "a", "--json")["kernels"]))
        self.assertGreaterEqual(submitted(finished.stdout), len(kernels))

    def test_perfettos_own_format_is_written_when_asked_for_or_named(self):
        self.record_workload("a")
        self.assertEqual(self.xpu("export", "a", "--format", "perfetto").code, 0)
        self.assertRegex(self.xpu("export", "a", "-o", "b.pftrace").stderr, rb"\Axpu: b\.pftrace .*perfetto.*\n\Z")
        plain = (self.folder / "b.pftrace").read_bytes()
        self.assertEqual(gzip.decompress((self.folder / "a.pftrace.gz").read_bytes()), plain)
        self.assertIn(b"clEnqueueNDRangeKernel", plain)
        self.assertEqual(self.files(), ["a.pftrace.gz", "a.xpu", "b.pftrace"])

    def test_only_f_replaces_a_file(self):
        self.record_workload("a")
        (self.folder / "b.json").write_text("mine")
        self.assert_fails(self.xpu("export", "a", "-o", "b.json"), 1, "b.json", "-f")
        self.assertEqual((self.folder / "b.json").read_text(), "mine")
        self.assertEqual(self.xpu("export", "a", "--format", "chrome", "-f", "-o", "b.json").code, 0)
        json.loads((self.folder / "b.json").read_text())
        self.assertEqual(self.files(), ["a.xpu", "b.json"])

    def test_a_place_that_cannot_be_written_is_said_and_nothing_is_left(self):
        self.record_workload("a")
        self.assert_fails(self.xpu("export", "a", "-o", "nowhere/b.json"), 1, "nowhere/b.json")
        (self.folder / "sub").mkdir()
        self.assert_fails(self.xpu("export", "a", "-f", "-o", "sub"), 1, "sub")
        self.assertEqual(self.files(), ["a.xpu", "sub"])

    def test_an_interrupted_export_leaves_nothing(self):
        self.record_workload("a", mode="launch", count=300_000)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = start([XPU, "export", "a", "-f", "-o", "b.json.gz"], environment(), cwd=self.folder)
            deadline = time.monotonic() + PATIENCE
            while not (self.folder / "b.json.gz.tmp").exists():
                self.assertIsNone(process.poll(), "the export was over before it could be interrupted")
                self.assertLess(time.monotonic(), deadline)
            process.send_signal(number)
            finished = finish(process, PATIENCE)
            self.assertEqual(finished.code, -number, finished)
            self.assertEqual(self.files(), ["a.xpu"])


class HelpTest(CliTest):
    OPTIONS = {
        "record": ["-o", "-f", "--device-only", "--api", "--delay", "--duration", "--kernels", "--start-paused", "--max-live"],
        "report": ["--top", "--sort", "--kernels", "--ranges", "--by", "--json", "--csv", "--table", "--wide"],
        "export": ["--format", "-o", "-f", "--device-only", "--compat"],
        "check": ["--json"],
        "info": ["--device", "--verbose", "--json"],
    }

    def test_every_option_is_in_the_help_with_an_example(self):
        overview = self.xpu("--help")
        self.assertEqual((overview.code, overview.stderr), (0, b""))
        for command, options in self.OPTIONS.items():
            self.assertIn(command.encode(), overview.stdout)
            finished = self.xpu(command, "--help")
            self.assertEqual((finished.code, finished.stderr), (0, b""), finished)
            text = finished.stdout.decode()
            for option in [*options, "--help"]:
                self.assertRegex(text, rf"(?m)^  (-\w,)?(-\w, ?)?{re.escape(option)}\b", (command, option))
            self.assertIn("Examples:", text)
            self.assertIn(f"Usage: xpu {command}", text)
            self.assertEqual(self.xpu("help", command).stdout, finished.stdout)

    def test_the_help_names_no_option_that_does_not_exist(self):
        for command, options in self.OPTIONS.items():
            text = self.xpu(command, "--help").stdout.decode()
            listed = set(re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", text)) - {"--help", "--output", "--force"}
            self.assertEqual(listed, {option for option in options if option.startswith("--")}, command)

    def test_examples_are_valid_command_lines(self):
        self.record_workload("a")
        for command in ("report", "check", "info"):
            for line in re.findall(r"(?m)^  xpu (\w+ [^(|\n]*)", self.xpu(command, "--help").stdout.decode()):
                finished = run(["sh", "-c", f"{XPU} {line}"], environment(), PATIENCE, cwd=self.folder)
                self.assertEqual(finished.code, 0, (line, finished))

    def test_the_version_is_one_line(self):
        finished = self.xpu("--version")
        self.assertEqual(finished.code, 0)
        self.assertRegex(finished.stdout, rb"\Axpu \d+\.\d+\.\d+\n\Z")

    def test_unknown_words_are_named(self):
        self.assert_fails(self.xpu("reprot"), 2, "reprot", "report")
        self.assert_fails(self.xpu("--frobnicate"), 2, "--frobnicate")
        self.assert_fails(self.xpu(), 2, "--help")
        self.assert_fails(self.xpu("help", "nothing"), 2, "nothing")
        for command in ("report", "export", "check", "info"):
            self.assert_fails(self.xpu(command, "--frobnicate"), 2, "--frobnicate", f"xpu {command} --help")
        self.assert_fails(self.xpu("record", "--frobnicate", "true"), 125, "--frobnicate", "xpu record --help")


if __name__ == "__main__":
    unittest.main(verbosity=2)

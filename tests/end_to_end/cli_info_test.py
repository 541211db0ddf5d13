"""What `xpu info` says of drivers and devices, in text, as a document and on a terminal, and that it opens nothing that it was not told to."""
import fcntl
import json
import os
import pty
import struct
import termios
import unittest

from cli_test import PATIENCE, CliTest
from harness import XPU, environment, finish, start

DEVICE_LINE = r"device 0   \S.*  host  cpu  [\d,]+ compute units?  [\d.]+ GiB  [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class InfoTest(CliTest):
    def info(self, *options, **variables):
        return self.xpu("info", *options, env=environment(**variables))

    def info_document(self, *options, **variables):
        finished = self.info("--json", *options, **variables)
        self.assertEqual((finished.code, finished.stderr), (0, b""), finished)
        document = json.loads(finished.stdout)
        self.assertEqual(document["schema"], "xpu.info/1")
        return document

    def sim_program(self, *lines):
        path = self.folder / "sim.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return {"XPU_DRIVER": "sim", "XPU_SIM_PROGRAM": path}


class ListTest(InfoTest):
    def test_a_line_for_each_driver_and_each_device(self):
        finished = self.info()
        self.assertEqual((finished.code, finished.stderr), (0, b""), finished)
        lines = finished.stdout.decode().splitlines()
        self.assertIn("driver     host  1 device", lines)
        self.assertIn("driver     sim   not selected by XPU_DRIVER", lines)
        self.assertRegex(lines[-1], rf"\A{DEVICE_LINE}\Z")

    def test_devices_have_the_order_of_the_variable_and_the_hidden_ones_say_why(self):
        document = self.info_document(XPU_HOST_DEVICES=3, XPU_VISIBLE_DEVICES="2,0")
        uuids = [device["properties"]["uuid"] for device in self.info_document(XPU_HOST_DEVICES=3)["devices"]]
        self.assertEqual([(device["index"], device["properties"]["uuid"]) for device in document["devices"]],
                         [(0, uuids[2]), (1, uuids[0]), (None, uuids[1])])
        self.assertIsNone(document["devices"][0]["reason"])
        self.assertIn("XPU_VISIBLE_DEVICES", document["devices"][2]["reason"])
        lines = self.info(XPU_HOST_DEVICES=3, XPU_VISIBLE_DEVICES="2,0").stdout.decode().splitlines()
        self.assertEqual([line.split("  ")[0] for line in lines if not line.startswith("driver")], ["device 0", "device 1", "hidden"])

    def test_a_uuid_as_it_is_printed_chooses_its_device(self):
        for device in self.info_document(XPU_HOST_DEVICES=2)["devices"]:
            uuid = device["properties"]["uuid"]
            chosen = self.info_document(XPU_HOST_DEVICES=2, XPU_VISIBLE_DEVICES=uuid)["devices"][0]
            self.assertEqual((chosen["index"], chosen["properties"]["uuid"]), (0, uuid))

    def test_drivers_come_in_the_order_of_the_variable(self):
        names = [device["driver"] for device in self.info_document(XPU_DRIVER="sim,host")["devices"]]
        self.assertEqual(names, ["sim", "host"])

    def test_no_visible_device_is_an_answer(self):
        document = self.info_document(XPU_VISIBLE_DEVICES="")
        self.assertEqual([device["index"] for device in document["devices"]], [None])

    def test_a_driver_that_cannot_be_used_says_why(self):
        variables = self.sim_program("devices many")
        document = self.info_document(**variables)
        sim = next(driver for driver in document["drivers"] if driver["name"] == "sim")
        self.assertIn("sim.txt:1", sim["reason"])
        self.assertIn("many", sim["reason"])
        self.assertEqual((sim["is_selected"], document["devices"]), (True, []))
        self.assertIn(b"sim.txt:1", self.info(**variables).stdout)

    def test_nothing_is_opened_unless_it_is_asked_for(self):
        for options, opened in (([], 0), (["--json"], 0), (["--device", "0"], 0), (["-v"], 1)):
            self.assertEqual(self.xpu("record", "-f", "-o", "a", "--", XPU, "info", *options).code, 0)
            self.assertEqual(len(self.document("report", "a", "--json")["devices"]), opened, options)


class DetailTest(InfoTest):
    def test_one_device_alone_with_all_its_properties(self):
        text = self.info("--device", "1", XPU_HOST_DEVICES=2).stdout.decode()
        self.assertRegex(text, r"\Adevice 1   \S")
        self.assertNotIn("device 0", text)
        self.assertNotIn("capabilities", text)
        for key in ("uuid", "max_work_group_size", "total_memory_bytes", "native_vector_widths"):
            self.assertRegex(text, rf"(?m)^    {key} +\S")
        self.assertEqual([device["index"] for device in self.info_document("--device", "1", XPU_HOST_DEVICES=2)["devices"]], [1])

    def test_an_opened_device_tells_what_was_programmed(self):
        variables = self.sim_program("memory 64MiB", "clock tick=625/12ns bits=32")
        closed = self.info_document(**variables)["devices"][0]
        self.assertEqual([closed[key] for key in ("error", "memory", "clock", "capabilities")], [None] * 4)
        device = self.info_document("-v", **variables)["devices"][0]
        self.assertEqual(device["memory"]["total_bytes"], 64 << 20)
        self.assertEqual(device["clock"]["tick_ns"], {"numerator": 625, "denominator": 12})
        self.assertEqual(device["clock"]["valid_bits"], 32)
        self.assertIn("source_cpp", device["capabilities"]["module_formats"])
        text = self.info("-v", **variables).stdout.decode()
        self.assertRegex(text, r"(?m)^    total_bytes +64\.0 MiB \(67,108,864\)$")
        self.assertRegex(text, r"(?m)^    valid_bits +32$")

    def test_two_runs_say_the_same(self):
        self.assertEqual(self.info_document(XPU_DRIVER="host,sim"), self.info_document(XPU_DRIVER="host,sim"))


class WrongTest(InfoTest):
    def assert_error_is_shown(self, word, **variables):
        for options in ([], ["--device", "0"], ["-v"]):
            finished = self.info(*options, **variables)
            self.assertEqual(finished.code, 1, finished)
            self.assertRegex(finished.stderr.decode(), rf"\Axpu: [^\n]*{word}[^\n]*\n\Z")
        finished = self.info("--json", **variables)
        self.assertEqual(finished.code, 1, finished)
        document = json.loads(finished.stdout)
        self.assertEqual(f"xpu: {document['error']}\n".encode(), finished.stderr)
        return document

    def test_a_wrong_list_of_drivers_is_an_error_with_the_drivers_that_there_are(self):
        document = self.assert_error_is_shown("moon", XPU_DRIVER="moon")
        self.assertEqual({driver["name"] for driver in document["drivers"]}, {"host", "sim"})
        self.assertEqual(document["devices"], [])
        self.assertIn(b"driver     host", self.info(XPU_DRIVER="moon").stdout)

    def test_a_wrong_choice_of_devices_is_an_error_with_the_devices_that_there_are(self):
        document = self.assert_error_is_shown("7", XPU_VISIBLE_DEVICES="7")
        self.assertEqual([device["index"] for device in document["devices"]], [None])
        self.assertIn(document["devices"][0]["properties"]["uuid"].encode(), self.info(XPU_VISIBLE_DEVICES="7").stdout)

    def test_a_variable_is_named_once_in_its_message(self):
        for variable, value in (("XPU_DRIVER", "moon"), ("XPU_VISIBLE_DEVICES", "7")):
            self.assertEqual(self.info(**{variable: value}).stderr.count(variable.encode()), 1)

    def test_a_device_that_is_not_there_is_a_wrong_command_line(self):
        self.assert_fails(self.info("--device", "3"), 2, "3", "[0, 1)")
        self.assert_fails(self.info("--device", "x"), 2, "'x'", "xpu info --help")
        self.assert_fails(self.info("--device", "0", XPU_VISIBLE_DEVICES=""), 1, "No XPU devices")


class OutputTest(InfoTest):
    def on_terminal(self, columns, *options, **variables):
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = start([XPU, "info", *options], environment(**variables), cwd=self.folder, stdout=terminal)
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(controller, 65536)
            except OSError:  # the program has closed its end
                break
            if not part:
                break
            text += part
        os.close(controller)
        self.assertEqual(finish(process, PATIENCE).code, 0)
        return text.decode().replace("\r\n", "\n")

    def test_lines_fit_the_terminal_and_nothing_is_missing(self):
        wide = self.info(XPU_DRIVER="host,sim").stdout.decode()
        uuids = [device["properties"]["uuid"] for device in self.info_document(XPU_DRIVER="host,sim")["devices"]]
        for columns in (60, 80):
            narrow = self.on_terminal(columns, XPU_DRIVER="host,sim")
            self.assertLessEqual(max(map(len, narrow.splitlines())), columns, narrow)
            self.assertGreater(narrow.count("\n"), wide.count("\n"))
            for uuid in uuids:
                self.assertIn(uuid, narrow)
        self.assertEqual(self.on_terminal(300, XPU_DRIVER="host,sim"), wide)

    def test_a_reader_that_goes_away_is_no_error_and_a_full_disk_is(self):
        for options in ([], ["--json"], ["-v"]):
            read_end, write_end = os.pipe()
            os.close(read_end)
            process = start([XPU, "info", *options], environment(), cwd=self.folder, stdout=write_end)
            os.close(write_end)
            finished = finish(process, PATIENCE)
            self.assertEqual((finished.code, finished.stderr), (0, b""), options)
        with open("/dev/full", "wb") as full:
            finished = self.xpu("info", stdout=full)
        self.assertEqual(finished.code, 1, finished)
        self.assertIn(b"No space left", finished.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

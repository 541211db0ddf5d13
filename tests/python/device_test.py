"""Devices, their properties, and what the doctor says of them."""

import sys
import types

import support
import xpu
from support import PackageTest

# What users of torch.xpu read.
TORCH_NAMES = (
    "name platform_name vendor device_id driver_version version max_compute_units gpu_eu_count max_work_group_size max_num_sub_groups memory_clock_rate "
    "memory_bus_width sub_group_sizes local_mem_size last_level_cache_size has_fp16 has_fp64 has_atomic64 has_bfloat16_conversions "
    "has_subgroup_matrix_multiply_accumulate has_subgroup_matrix_multiply_accumulate_tensor_float32 has_subgroup_2d_block_io is_integrated_gpu "
    "total_memory gpu_subslice_count architecture type uuid"
).split()


class DeviceTest(PackageTest):
    def test_there_is_a_device(self):
        self.assertTrue(xpu.is_available())
        self.assertGreaterEqual(xpu.device_count(), 1)
        self.assertEqual(xpu.current_device(), 0)

    def test_properties_have_the_names_of_torch_and_are_equal_for_two_calls(self):
        properties = xpu.get_device_properties(0)
        self.assertEqual([name for name in TORCH_NAMES if not hasattr(properties, name)], [])
        self.assertEqual(properties, xpu.get_device_properties("xpu:0"))
        self.assertFalse(properties != xpu.get_device_properties())
        self.assertNotEqual(properties, "something else")
        self.assertGreater(properties.total_memory, 0)
        self.assertIn(properties.type, ("cpu", "gpu", "accelerator", "host"))
        self.assertIn(properties.name, repr(properties))
        with self.assertRaises(AttributeError):
            properties.name = "another"

    def test_uuid(self):
        uuid = xpu.get_device_properties(0).uuid
        self.assertEqual((len(uuid.bytes), len(str(uuid))), (16, 36))
        self.assertEqual(bytes(uuid.bytes).hex(), str(uuid).replace("-", ""))
        self.assertEqual({uuid}, {xpu.get_device_properties(0).uuid})

    def test_two_devices_differ(self):
        code = """
import xpu
one, other = xpu.get_device_properties(0), xpu.get_device_properties(1)
print(xpu.device_count(), one == other, one.uuid == other.uuid)
"""
        self.assert_prints(code, "2 False False", XPU_HOST_DEVICES=2)

    def test_what_names_a_device(self):
        name = xpu.get_device_name()
        for device in (0, None, "xpu", "xpu:0", types.SimpleNamespace(type="xpu", index=0), types.SimpleNamespace(type="xpu", index=None)):
            self.assertEqual(xpu.get_device_name(device), name, device)
        for device in ("cpu", "xpu:", "xpu:-1", "cuda:0", 1.0, True, types.SimpleNamespace(type="cpu", index=0)):
            with self.assertRaisesRegex(xpu.InvalidArgumentError, "Expected a xpu device, but got: ", msg=device):
                xpu.get_device_name(device)

    def test_an_index_out_of_range(self):
        count = xpu.device_count()
        with self.assertRaisesRegex(ValueError, rf"The device index is out of range. It must be in \[0, {count}\), but got {count}."):
            xpu.get_device_properties(count)

    def test_the_current_device_is_of_the_thread(self):
        code = """
import threading, xpu
xpu.set_device("xpu:1")
seen = []
thread = threading.Thread(target=lambda: seen.append(xpu.current_device()))
thread.start(); thread.join()
before = xpu.current_device()
xpu.set_device(-1)
print(before, seen, xpu.current_device(), xpu.current_stream().device_index, xpu.Buffer(8).device_index)
"""
        self.assert_prints(code, "1 [0] 1 1 1", XPU_HOST_DEVICES=2)

    def test_available_never_raises_and_counting_says_why(self):
        code = """
import xpu
try:
    xpu.device_count()
except xpu.InvalidArgumentError as error:
    print(xpu.is_available(), "nonsense" in str(error))
"""
        self.assert_prints(code, "False True", XPU_VISIBLE_DEVICES="nonsense")

    def test_memory(self):
        free, total = xpu.mem_get_info()
        self.assertTrue(0 < free <= total, (free, total))


class DoctorTest(PackageTest):
    def test_of_a_machine_that_is_well(self):
        found = xpu.doctor()
        self.assertTrue(found.is_well, found)
        self.assertEqual((found.version, found.library), (xpu.__version__, xpu.library_path()))
        self.assertEqual([device.index for device in found.devices], list(range(xpu.device_count())))
        self.assertEqual(found.devices[0].properties, xpu.get_device_properties(0))
        self.assertIn("not selected by XPU_DRIVER", {driver.reason for driver in found.drivers if not driver.is_selected})
        finished = support.run([sys.executable, "-m", "xpu", "doctor"])
        self.assertEqual((finished.code, finished.stdout), (0, f"{found}\n"), finished)
        self.assertIn(f"device 0   {xpu.get_device_name(0)}", finished.stdout)

    def test_of_one_with_a_hidden_device(self):
        finished = support.run([sys.executable, "-m", "xpu", "doctor"], XPU_HOST_DEVICES=2, XPU_VISIBLE_DEVICES=1)
        self.assertEqual(finished.code, 0, finished)
        rows = {line.split("  ")[0] for line in finished.stdout.splitlines()}
        self.assertTrue({"device 0", "hidden"} <= rows, finished)
        self.assertNotIn("device 1", rows)
        hidden = next(line for line in finished.stdout.splitlines() if line.startswith("hidden"))
        self.assertIn("XPU_VISIBLE_DEVICES", hidden)

    def test_of_one_that_is_not(self):
        for setting in ({"XPU_DRIVER": "nonsense"}, {"XPU_VISIBLE_DEVICES": "7"}):
            finished = support.run([sys.executable, "-m", "xpu", "doctor"], **setting)
            self.assertEqual((finished.code, finished.stderr), (1, ""), finished)
            (name, value) = next(iter(setting.items()))
            error = [line for line in finished.stdout.splitlines() if line.startswith("error")]
            self.assertEqual(len(error), 1, finished)
            self.assertIn(name, error[0])
            self.assertIn(value, error[0])


if __name__ == "__main__":
    support.main()

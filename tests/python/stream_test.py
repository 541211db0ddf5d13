"""Streams and buffers: effects, order, errors, and the GIL."""

import sys
import threading
import time

import support
import xpu
from support import PackageTest

SIZE = 1 << 16


def contents(buffer):
    held = bytearray(buffer.size_bytes)
    xpu.current_stream(buffer.device_index).copy(held, buffer)
    return bytes(held)


class BufferTest(PackageTest):
    def test_what_it_says_of_itself(self):
        for kind in ("device", "host", "shared"):
            try:
                buffer = xpu.Buffer(1000, kind)
            except xpu.UnsupportedError:
                continue
            self.assertEqual((buffer.size_bytes, buffer.kind, buffer.device_index), (1000, kind, 0))
            self.assertNotEqual(buffer.data_ptr, 0)

    def test_bad_arguments(self):
        with self.assertRaisesRegex(xpu.InvalidArgumentError, "0 bytes|size"):
            xpu.Buffer(0)
        with self.assertRaisesRegex(xpu.InvalidArgumentError, "There is no memory of the kind 'fast'; the kinds are device, host and shared."):
            xpu.Buffer(8, "fast")
        with self.assertRaises(xpu.InvalidArgumentError):
            xpu.Buffer(8, device=1000)
        with self.assertRaises(TypeError):
            xpu.Buffer(-1)

    def test_out_of_memory(self):
        kept = xpu.Buffer(SIZE)
        xpu.current_stream().fill(kept, 9)
        with self.assertRaisesRegex(MemoryError, "out of memory") as caught:
            xpu.Buffer(1 << 60)
        self.assertIsInstance(caught.exception, xpu.OutOfDeviceMemoryError)
        self.assertEqual(contents(kept), bytes([9]) * SIZE)


class StreamTest(PackageTest):
    def test_fill_and_copy(self):
        stream = xpu.Stream()
        one, other = xpu.Buffer(SIZE), xpu.Buffer(SIZE)
        stream.fill(one, 0xA5)
        stream.copy(other, one)
        stream.synchronize()
        self.assertTrue(stream.query())
        self.assertEqual(contents(other), b"\xa5" * SIZE)

    def test_patterns(self):
        stream, buffer = xpu.Stream(), xpu.Buffer(64)
        for pattern in (b"a", b"ab", b"abcd", b"abcdefgh", bytes(range(16)), bytearray(b"xy"), memoryview(b"zz")):
            stream.fill(buffer, pattern)
            stream.synchronize()
            self.assertEqual(contents(buffer), bytes(pattern) * (64 // len(pattern)))
        for pattern in (b"", b"abc", bytes(17), bytes(32), -1, 256, 1 << 80):
            with self.assertRaises(xpu.InvalidArgumentError, msg=pattern):
                stream.fill(buffer, pattern)
        for pattern in (1.5, "a", None):
            with self.assertRaises(TypeError, msg=pattern):
                stream.fill(buffer, pattern)

    def test_copies_from_and_to_python(self):
        stream, buffer = xpu.Stream(), xpu.Buffer(1000)
        source = bytes(index % 251 for index in range(1000))
        stream.copy(buffer, source)
        target = bytearray(1000)
        stream.copy(memoryview(target), buffer)
        self.assertEqual(bytes(target), source)

    def test_a_copy_between_sizes_and_into_what_is_fixed(self):
        stream, buffer = xpu.Stream(), xpu.Buffer(1000)
        with self.assertRaisesRegex(xpu.InvalidArgumentError, "The destination has 1000 bytes and the source 999; both must be of the same size."):
            stream.copy(buffer, bytes(999))
        with self.assertRaises((BufferError, TypeError)):
            stream.copy(bytes(1000), buffer)
        with self.assertRaises(TypeError):
            stream.copy(buffer, 1000)
        target = bytearray(999)
        with self.assertRaises(xpu.InvalidArgumentError):
            stream.copy(target, buffer)
        target.append(0)  # not held any more
        stream.copy(target, buffer)

    def test_streams_compare_as_what_they_name(self):
        default = xpu.default_stream()
        self.assertEqual(default, xpu.current_stream())
        self.assertEqual(len({default, xpu.default_stream("xpu:0"), xpu.current_stream(0)}), 1)
        another = xpu.Stream()
        self.assertNotEqual(another, default)
        self.assertNotEqual(another, "a stream")
        self.assertIn(f"stream_id={another.stream_id}", repr(another))

    def test_priorities_are_clamped(self):
        self.assertEqual([xpu.Stream(priority=priority).priority for priority in (-7, -1, 0, 1, 7)], [-1, -1, 0, 1, 1])

    def test_the_current_stream_is_of_the_thread(self):
        seen = []

        def change():
            xpu.Stream().make_current()
            seen.append(xpu.current_stream())

        thread = threading.Thread(target=change)
        thread.start()
        thread.join()
        self.assertNotEqual(seen, [xpu.current_stream()])
        self.assertEqual(xpu.current_stream(), xpu.default_stream())

    def test_a_stream_waits_for_another(self):
        first, second = xpu.Stream(), xpu.Stream()
        source, target = xpu.Buffer(1 << 22), xpu.Buffer(1 << 22)
        for value in range(1, 20):
            first.fill(source, value)
            second.wait_stream(first)
            second.copy(target, source)
            first.wait_stream(second)
        xpu.synchronize()
        self.assertEqual(set(contents(target)), {19})

    def test_a_buffer_serves_its_work_beyond_its_end(self):
        stream, target = xpu.Stream(), xpu.Buffer(1 << 22)
        for value in range(20):
            source = xpu.Buffer(1 << 22)
            stream.fill(source, value)
            stream.copy(target, source)
            del source
        stream.synchronize()
        self.assertEqual(set(contents(target)), {19})


class GilTest(PackageTest):
    """Another thread of Python goes on while this one waits. The interpreter is told never to switch by itself: only who lets the GIL go lets others run."""

    def setUp(self):
        super().setUp()
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        self.turns, self.ends = 0, False

        def count():
            while not self.ends:
                self.turns += 1
                time.sleep(0.0002)

        self.counter = threading.Thread(target=count)
        self.counter.start()
        self.addCleanup(self.end_counter)
        sys.setswitchinterval(1000)

    def end_counter(self):
        self.ends = True
        self.counter.join(30)

    def turns_during(self, call):
        before = self.turns
        call()
        return self.turns - before

    def test_that_the_measure_can_fail(self):
        self.assertLessEqual(self.turns_during(lambda: sum(range(3_000_000))), 1)

    def test_waiting_for_a_stream(self):
        stream, buffer = xpu.Stream(), xpu.Buffer(1 << 28)

        def work():
            for value in range(4):
                stream.fill(buffer, value)
            stream.synchronize()

        self.assertGreater(self.turns_during(work), 10)

    def test_copying_to_python(self):
        buffer, target = xpu.Buffer(1 << 28), bytearray(1 << 28)
        stream = xpu.current_stream()
        self.assertGreater(self.turns_during(lambda: stream.copy(target, buffer)), 5)


if __name__ == "__main__":
    support.main()

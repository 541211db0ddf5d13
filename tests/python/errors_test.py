"""What is raised, and as what it can be caught."""

import pickle
import unittest

import support
import xpu
from xpu import _core, _errors

ALSO = {
    xpu.InvalidArgumentError: ValueError,
    xpu.UnsupportedError: NotImplementedError,
    xpu.OutOfMemoryError: MemoryError,
    xpu.OutOfHostMemoryError: xpu.OutOfMemoryError,
    xpu.OutOfDeviceMemoryError: xpu.OutOfMemoryError,
    xpu.TimeoutError: TimeoutError,
}


class ErrorsTest(unittest.TestCase):
    def test_every_code_of_the_library_has_its_class(self):
        self.assertEqual(set(_core.error_codes), set(_errors._CLASSES))
        for code in _core.error_codes:
            error = _errors.make_error(code, "a sentence", -5)
            self.assertEqual((error.code, str(error), error.native_code), (code, "a sentence", -5))
            self.assertIsInstance(error, xpu.Error)
            self.assertIsInstance(error, RuntimeError)
            self.assertIs(getattr(xpu, type(error).__name__), type(error))

    def test_classes_are_also_those_of_python(self):
        for kind, also in ALSO.items():
            self.assertTrue(issubclass(kind, also), kind)
        self.assertFalse(issubclass(xpu.FailedPreconditionError, ValueError))

    def test_a_code_of_a_newer_library_is_an_error_still(self):
        self.assertIs(type(_errors.make_error("no_such_code", "a sentence", 0)), xpu.InternalError)

    def test_they_can_be_sent_to_another_process(self):
        for code in _core.error_codes:
            error = pickle.loads(pickle.dumps(_errors.make_error(code, "a sentence", 3)))
            self.assertEqual((type(error), str(error), error.native_code), (_errors._CLASSES[code], "a sentence", 3))

    def test_what_the_library_refuses_arrives(self):
        with self.assertRaises(xpu.InvalidArgumentError) as caught:
            xpu.get_device_name(1 << 20)
        self.assertEqual(caught.exception.code, "invalid_argument")
        with self.assertRaises(xpu.NotFoundError):
            xpu.profiler.open("/no/such/recording")


if __name__ == "__main__":
    support.main()

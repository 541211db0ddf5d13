#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "python/bindings.hpp"
#include "xpu/runtime/buffer.hpp"
#include "xpu/runtime/stream.hpp"

namespace xpu::python {
namespace {

[[noreturn]] void refuse(std::string sentence) { throw BadResult(Error{ErrorCode::invalid_argument, std::move(sentence)}); }

/// One side of a copy: a Buffer, or any object that gives out its bytes, which is held until this ends (with the GIL).
class Memory {
 public:
  enum class Access { read, write };
  Memory(const py::object& object, Access access) {
    if (py::isinstance<Buffer>(object)) {
      const auto& buffer = object.cast<const Buffer&>();
      data_ = buffer.data();
      size_bytes_ = buffer.size_bytes();
      return;
    }
    if (PyObject_GetBuffer(object.ptr(), &view_, access == Access::write ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0)
      throw py::error_already_set();
    is_held_ = true;
    data_ = view_.buf;
    size_bytes_ = static_cast<std::size_t>(view_.len);
  }
  ~Memory() {
    if (is_held_) PyBuffer_Release(&view_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  bool is_of_python() const noexcept { return is_held_; }

 private:
  Py_buffer view_{};
  bool is_held_ = false;
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// Waits where Python owns one side: nobody would keep its memory as it is until the copy has ended.
void copy(const Stream& stream, const py::object& destination, const py::object& source) {
  const Memory to(destination, Memory::Access::write), from(source, Memory::Access::read);
  if (to.size_bytes() != from.size_bytes())
    refuse("The destination has " + std::to_string(to.size_bytes()) + " bytes and the source " + std::to_string(from.size_bytes()) +
           "; both must be of the same size.");
  const bool waits = to.is_of_python() || from.is_of_python();
  const py::gil_scoped_release released;
  value(waits ? stream.copy_blocking(to.data(), from.data(), to.size_bytes()) : stream.copy(to.data(), from.data(), to.size_bytes()));
}

void fill(const Stream& stream, const Buffer& buffer, const py::object& pattern) {
  std::array<std::byte, 16> held{};
  std::size_t size_bytes = 1;
  if (py::isinstance<py::int_>(pattern)) {
    int overflow = 0;
    const long byte = PyLong_AsLongAndOverflow(pattern.ptr(), &overflow);
    if (overflow != 0 || byte < 0 || byte > 255)
      refuse("A number as a pattern is one byte, from 0 to 255, but got " + std::string(py::repr(pattern)) + ".");
    held[0] = static_cast<std::byte>(byte);
  } else {
    const Memory bytes(pattern, Memory::Access::read);
    size_bytes = bytes.size_bytes();
    if (size_bytes > held.size()) refuse("A pattern has 1, 2, 4, 8 or 16 bytes, but got " + std::to_string(size_bytes) + ".");
    std::memcpy(held.data(), bytes.data(), size_bytes);
  }
  const py::gil_scoped_release released;
  value(stream.fill_bytes(buffer.data(), std::span(held).first(size_bytes), buffer.size_bytes()));
}

MemoryKind kind_of(const std::string& name) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::host, MemoryKind::shared}) {
    if (name == hal::to_string(kind)) return kind;
  }
  refuse("There is no memory of the kind '" + name + "'; the kinds are device, host and shared.");
}

}  // namespace

void bind_streams(py::module_& module) {
  py::class_<Buffer>(module, "Buffer", "A block of memory of one device, for all of its streams, until the object's end.")
      .def(py::init([](std::size_t size_bytes, const std::string& kind, const py::object& device) {
             const MemoryKind wanted = kind_of(kind);
             const int index = device_index(device);
             const py::gil_scoped_release released;
             return value(Buffer::allocate(size_bytes, wanted, index));
           }),
           py::arg("size_bytes"), py::arg("kind") = "device", py::arg("device") = py::none())
      .def_property_readonly("size_bytes", &Buffer::size_bytes)
      .def_property_readonly("kind", [](const Buffer& buffer) { return hal::to_string(buffer.kind()); })
      .def_property_readonly("device_index", &Buffer::device)
      .def_property_readonly("data_ptr", [](const Buffer& buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data()); });

  py::class_<Stream>(module, "Stream", "An in-order queue of work for one device.")
      .def(py::init([](const py::object& device, int priority) {
             const int index = device_index(device);
             const py::gil_scoped_release released;
             return value(Stream::from_pool(priority, index));
           }),
           py::arg("device") = py::none(), py::arg("priority") = 0)
      .def_property_readonly("stream_id", &Stream::id)
      .def_property_readonly("device_index", &Stream::device)
      .def_property_readonly("priority", &Stream::priority)
      .def(
          "make_current", [](const Stream& stream) { value(stream.make_current()); }, WithoutGil())
      .def(
          "query", [](const Stream& stream) { return value(stream.query()); }, WithoutGil())
      .def(
          "synchronize", [](const Stream& stream) { value(stream.synchronize()); }, WithoutGil())
      .def(
          "wait_stream", [](const Stream& stream, const Stream& other) { value(stream.wait(other)); }, py::arg("stream"), WithoutGil())
      .def("copy", &copy, py::arg("destination"), py::arg("source"))
      .def("fill", &fill, py::arg("buffer"), py::arg("pattern"))
      .def("__hash__", [](const Stream& stream) { return py::hash(py::make_tuple(stream.device(), stream.id())); })
      .def(
          "__eq__", [](const Stream& one, const Stream& other) { return one == other; }, py::is_operator())
      .def("__repr__", [](const Stream& stream) {
        return "xpu.Stream(device=xpu:" + std::to_string(stream.device()) + " stream_id=" + std::to_string(stream.id()) + ")";
      });
  module.def("current_stream", [](int device) { return value(Stream::current(device)); }, py::arg("device"), WithoutGil());
  module.def("default_stream", [](int device) { return value(Stream::default_stream(device)); }, py::arg("device"), WithoutGil());
}

}  // namespace xpu::python

#include "python_module.hpp"

#include <torch/csrc/Event.h>

#include <ctime>
#include <tuple>

#include "alias.hpp"
#include "annotations.hpp"
#include "check.hpp"
#include "devices.hpp"
#include "generator.hpp"
#include "hooks.hpp"
#include "xpu/base/version.hpp"
#include "xpu/runtime/event.hpp"
#include "xpu/runtime/runtime.hpp"

// The functions that PyTorch's own torch.xpu calls by names of torch._C, for xpu_torch/_takeover.py to put there.
namespace xpu_torch {
namespace {

namespace py = pybind11;
using StreamTriple = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
using NoGil = py::call_guard<py::gil_scoped_release>;

StreamTriple triple_of(const xpu::Stream& stream) { return {stream.id(), stream.device(), static_cast<std::int64_t>(kDeviceType)}; }

// The stream of this id, and its device, become current.
void set_stream(std::int64_t stream_id, std::int64_t device_index, std::int64_t device_type) {
  const c10::Device device(static_cast<c10::DeviceType>(device_type), static_cast<c10::DeviceIndex>(device_index));
  check(to_xpu(c10::Stream(c10::Stream::UNSAFE, device, stream_id)).make_current());
}

// A device of the CPU has no cycles of its own: so many nanoseconds.
void sleep(std::int64_t nanoseconds) {
  check(current_stream().run({.name = "xpu_sleep", .short_and_independent = false, .geometry = nullptr}, [nanoseconds] {
    const timespec duration{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    nanosleep(&duration, nullptr);
  }));
}

// torch.Event's own method takes no event of a derived class.
double elapsed_time(const py::object& begin, const py::object& end) {
  TORCH_CHECK_TYPE(THPEvent_Check(begin.ptr()) && THPEvent_Check(end.ptr()), "expected a torch.Event, but got ",
                   std::string(py::str(py::type::of(THPEvent_Check(begin.ptr()) ? end : begin).attr("__name__"))));
  const c10::Event& first = reinterpret_cast<THPEvent*>(begin.ptr())->event;
  const c10::Event& last = reinterpret_cast<THPEvent*>(end.ptr())->event;
  TORCH_CHECK(first.device_type() == last.device_type(), "Event device type ", first.device_type(), " does not match other's device type ",
              last.device_type(), ".");
  TORCH_CHECK(first.was_marked_for_recording() && last.was_marked_for_recording(),
              "Both events must be recorded before calculating elapsed time.");
  TORCH_CHECK(first.query() && last.query(), "Both events must be completed before calculating elapsed time.");
  TORCH_CHECK(first.flag() == c10::EventFlag::BACKEND_DEFAULT && last.flag() == c10::EventFlag::BACKEND_DEFAULT,
              "Both events must be created with argument 'enable_timing=True'.");
  return check(static_cast<const xpu::Event*>(first.eventId())->elapsed_time(*static_cast<const xpu::Event*>(last.eventId())));
}

void bind_runtime(py::module_& module) {
  module.def("init", [] { check(xpu::initialize()); });
  module.def("is_in_bad_fork", &xpu::is_in_bad_fork);
  module.def("device_count", &device_count);
  module.def("get_device", [] {
    check(xpu::initialize());
    return xpu::Device::current();
  });
  module.def("set_device", [](int device) { check(xpu::Device::set_current(device)); });
  module.def("exchange_device", [](int device) { return check(xpu::Device::exchange_current(device)); });
  module.def("can_access_peer",
             [](int device, int peer) { return check(check(xpu::Device::get(device)).can_access_peer(check(xpu::Device::get(peer)))); });
  module.def("synchronize", &synchronize_device, NoGil());
  module.def("current_stream", [](int device) { return triple_of(current_stream(device)); });
  module.def("current_raw_stream", [](int device) { return address_of(current_stream(device).native_handle()); });
  module.def("set_stream", &set_stream, py::arg("stream_id"), py::arg("device_index"), py::arg("device_type"));
  module.def("stream_from_external", [](std::uintptr_t queue, int device) {
    return triple_of(check(xpu::Stream::from_external(reinterpret_cast<void*>(queue), device)));
  });
  module.def("stream_priority", [](std::int64_t id, int device) { return check(xpu::Stream::from_id(id, device)).priority(); });
  module.def("default_stream", [](int device) { return triple_of(check(xpu::Stream::default_stream(device))); });
  module.def("is_current_stream_capturing", [] { return current_stream().is_capturing(); });
  module.def("sleep", &sleep, NoGil());
  module.def("elapsed_time", &elapsed_time);
  module.def("default_generator", [](int device) { return default_generator(device); });
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.attr("device_type") = c10::DeviceTypeName(kDeviceType, /*lower_case=*/true);
  module.attr("libxpu_version") = xpu::version();
  module.def("hooks_are_ours", &hooks_are_ours);
  module.def("install_cpu_allocator", &install_cpu_allocator);
  module.def("publish_operators", &publish_operators);
  bind_runtime(module);
  bind_memory(module);
  bind_history(module);
  bind_pools(module);
}

}  // namespace xpu_torch

#include "drivers/sim/test_support/sim_fixture.hpp"

#include <array>
#include <cstring>
#include <span>

namespace xpu::drivers::sim {
namespace {

void store_value(const WorkItem& item, std::uint64_t* place, std::uint64_t value) { place[item.global_id(0)] = value; }

struct StoreArguments {
  std::uint64_t* place;
  std::uint64_t value;
};

}  // namespace

hal::Completion KeepingSink::of(std::uint64_t token) const {
  std::vector<hal::Completion> found;
  for (const hal::Completion& completion : completions()) {
    if (completion.token == token) found.push_back(completion);
  }
  EXPECT_EQ(found.size(), 1u) << "completions with the token " << token;
  return found.empty() ? hal::Completion() : found.front();
}

SimDeviceUnderTest::SimDeviceUnderTest(const Program& program)
    : driver(create_programmed_driver(program)), device(driver->open_device(0).value()) {
  const kernel_function::Described<&store_value> store("store", {}, "place", "value");
  const std::array functions = {store.descriptor};
  hal::ModuleSource source;
  source.format = hal::ModuleFormat::functions;
  source.name = "test";
  source.functions = functions;
  module = device->create_module(source).value();
}

std::unique_ptr<hal::Queue> SimDeviceUnderTest::queue() { return device->create_queue({.sink = &sink}).value(); }
std::unique_ptr<hal::Event> SimDeviceUnderTest::event() { return device->create_event({.timed = true}).value(); }

Result<> SimDeviceUnderTest::try_store(hal::Queue& queue, std::uint64_t* place, std::uint64_t value, std::uint64_t token) {
  const auto kernel = module->kernel("store").value();
  const StoreArguments arguments{place, value};
  const hal::Geometry geometry;
  return queue.launch({.kernel = kernel.get(), .geometry = &geometry, .arguments = std::as_bytes(std::span(&arguments, 1))},
                      {.token = token});
}

void SimDeviceUnderTest::store(hal::Queue& queue, std::uint64_t* place, std::uint64_t value, std::uint64_t token) {
  try_store(queue, place, value, token).value();
}

void SimDeviceUnderTest::record(hal::Queue& queue, hal::Event& event) { queue.record(event).value(); }

Program program_of(const char* text) { return parse_program(text, "program").value(); }

std::uint64_t ticks_between(hal::Event& begin, hal::Event& end) { return end.ticks().value() - begin.ticks().value(); }

hal::HostFunction counting_function(std::uint64_t& counter) {
  return {.call = [](void* user) -> Result<> {
            *static_cast<std::uint64_t*>(user) += 1;
            return {};
          },
          .drop = [](void* user) { *static_cast<std::uint64_t*>(user) += 100; },
          .user = &counter};
}

}  // namespace xpu::drivers::sim

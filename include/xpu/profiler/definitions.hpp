#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "xpu/base/clock.hpp"

/// What activities refer to: processes, threads, devices, queues, kernels, names. Each has an `index` counted from 0 over the whole
/// recording, so that a sink keeps what it derives from one in a plain vector. They never move and are never changed once an activity
/// pointed to them; new ones may appear at any time, also for ids that a record mentions and nothing describes.
namespace xpu::profiler {

/// A text that is written over and over, such as the name of an API function: one per text.
struct NameDefinition {
  std::uint32_t index = 0;
  std::string text;
};

struct ProcessDefinition {
  std::uint32_t index = 0;
  std::uint64_t pid = 0;
  std::uint64_t start_ns = 0;
  std::string name;
  std::optional<int> rank;
  bool closed = false;  ///< It detached in good order.
};

struct ThreadDefinition {
  std::uint32_t index = 0;
  const ProcessDefinition* process = nullptr;
  std::uint32_t os_thread = 0;
  std::string name;  ///< As the program named it, or empty.
};

/// A device, whichever and however many processes used it: the same name, driver, UUID and PCI address, and the same place among equals.
/// What the driver does not tell is empty.
struct DeviceDefinition {
  std::uint32_t index = 0;
  std::string name, driver;
  std::string vendor, driver_version;
  std::string uuid;         ///< "00112233-4455-6677-8899-aabbccddeeff".
  std::string pci_address;  ///< "0000:03:00.0".
  std::optional<std::uint64_t> total_memory_bytes, max_allocation_bytes, local_memory_bytes, max_work_group_size, compute_units,
      max_clock_mhz;
  const DeviceDefinition* parent = nullptr;  ///< The device of which this is a part.
};

/// The clock of a device as one process saw it.
struct ClockDefinition {
  std::uint32_t index = 0;
  const ProcessDefinition* process = nullptr;
  const DeviceDefinition* device = nullptr;
  ClockDomain domain = ClockDomain::unknown;
  std::uint32_t tick_numerator = 0, tick_denominator = 0;  ///< Nanoseconds per tick; 0 / 0 = unknown.
  std::uint64_t readings = 0;
  /// Half-width of the interval that surely holds the true start, over all timed commands; empty when none could be placed.
  std::optional<std::uint64_t> error_median_ns, error_max_ns;
};

struct QueueDefinition {
  std::uint32_t index = 0;
  std::uint32_t id = 0;  ///< In its process, from 1.
  const ProcessDefinition* process = nullptr;
  const DeviceDefinition* device = nullptr;
  const ClockDefinition* clock = nullptr;
  std::uint32_t context = 0;  ///< In its process, from 1; 0 = unknown.
  std::string name;           ///< As the program named it, or empty.
  bool out_of_order = false;
};

struct KernelDefinition {
  std::uint32_t index = 0;
  const ProcessDefinition* process = nullptr;
  std::string name, raw_name;  ///< For people (demangled), and as the driver knows it.
  std::uint32_t local_bytes = 0, private_bytes = 0;
  std::uint32_t sub_group = 0;  ///< 0 = unknown.
};

struct GeometryDefinition {
  std::uint32_t index = 0;
  std::uint32_t dimensions = 0;
  std::uint64_t offset[3] = {0, 0, 0};
  std::uint64_t global[3] = {1, 1, 1};
  std::uint64_t local[3] = {0, 0, 0};  ///< All 0: the driver's choice.
};

/// A range that a thread of the program said it was in (`xpu/annotate.h`). `Definitions` does not list them: there may be millions.
struct RangeDefinition {
  std::uint32_t index = 0;
  const ThreadDefinition* thread = nullptr;
  const NameDefinition* name = nullptr;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  ///< The latest there is where it was never closed.
  bool is_closed = false;
  const RangeDefinition* parent = nullptr;  ///< The one around it, or null.
};

/// All that is known so far. Thread-compatible.
struct Definitions {
  std::deque<NameDefinition> names;
  std::deque<ProcessDefinition> processes;
  std::deque<ThreadDefinition> threads;
  std::deque<DeviceDefinition> devices;
  std::deque<ClockDefinition> clocks;
  std::deque<QueueDefinition> queues;
  std::deque<KernelDefinition> kernels;
  std::deque<GeometryDefinition> geometries;
};

}  // namespace xpu::profiler

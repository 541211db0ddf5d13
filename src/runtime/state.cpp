#include "runtime/state.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "base/process.hpp"
#include "hal/registry.hpp"
#include "runtime/memory_snapshot.hpp"
#include "runtime/publishing.hpp"

namespace xpu::runtime {

constinit std::atomic<Phase> g_phase{Phase::cold};

namespace {

constinit base::Mutex g_start_mutex;
constinit std::atomic<Enumeration*> g_enumeration{nullptr};

// How long what runs at exit may go on. Static objects of the program that it uses may be destroyed next.
constexpr std::uint32_t kExitLimitMs = 1'000;

constexpr const char* kBadForkSentence =
    "Cannot re-initialize XPU in forked subprocess. To use XPU with multiprocessing, you must use the 'spawn' start method";

/// Environment variables of a process with raised privileges are not to be believed.
std::string setting(const char* variable) {
  const char* value = base::has_raised_privileges() ? nullptr : secure_getenv(variable);
  return value == nullptr ? std::string() : std::string(value);
}

struct Found {
  hal::Driver* driver;
  std::uint32_t ordinal;
  std::size_t report, device;  // indices in the RuntimeReport
};

/// Selects, asks and filters; the report gets whatever is found out on the way.
Result<> enumerate_into(Enumeration& result) {
  RuntimeReport& report = result.report;
  for (const hal::DriverEntry& entry : hal::built_in_drivers())
    report.drivers.push_back({entry.name, false, "not asked: XPU_DRIVER is wrong", {}});
  const std::string driver_names = setting("XPU_DRIVER");
  auto selected = hal::select_drivers(driver_names);
  if (!selected) return Error{selected.error().code, "XPU_DRIVER: " + selected.error().message};

  std::vector<Found> found;
  std::vector<DeviceProperties> properties;
  for (DriverReport& driver : report.drivers) driver.reason = "not selected by XPU_DRIVER";
  for (const hal::DriverEntry* entry : *selected) {
    const auto index = static_cast<std::size_t>(entry - hal::built_in_drivers().data());
    DriverReport& driver_report = report.drivers[index];
    driver_report.is_selected = true;
    driver_report.reason.clear();
    std::unique_ptr<hal::Driver> driver = entry->create();
    auto devices = driver->enumerate();
    if (!devices) {
      driver_report.reason = devices.error().message;
      continue;
    }
    if (devices->empty()) driver_report.reason = "it finds no device";
    for (std::uint32_t ordinal = 0; ordinal < devices->size(); ++ordinal) {
      found.push_back({driver.get(), ordinal, index, driver_report.devices.size()});
      properties.push_back((*devices)[ordinal]);
      driver_report.devices.push_back({-1, "hidden by XPU_VISIBLE_DEVICES", std::move((*devices)[ordinal])});
    }
    result.drivers.push_back(std::move(driver));
  }

  std::vector<std::uint32_t> visible;
  const char* filter = base::has_raised_privileges() ? nullptr : secure_getenv("XPU_VISIBLE_DEVICES");
  if (filter == nullptr) {
    for (std::uint32_t position = 0; position < found.size(); ++position) visible.push_back(position);
  } else {
    auto chosen = hal::select_devices(filter, properties);
    if (!chosen) return Error{chosen.error().code, "XPU_VISIBLE_DEVICES: " + chosen.error().message};
    visible = *std::move(chosen);
  }
  if (visible.size() > kMaxDevices) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("there are {} devices, at most {} can be used at once; choose with XPU_VISIBLE_DEVICES", visible.size(), kMaxDevices)};
  }
  for (const std::uint32_t position : visible) {
    auto* device = new DeviceState();
    device->index = static_cast<int>(result.devices.size());
    device->driver = found[position].driver;
    device->ordinal = found[position].ordinal;
    device->properties = properties[position];
    DeviceReport& device_report = report.drivers[found[position].report].devices[found[position].device];
    device_report.index = device->index;
    device_report.reason.clear();
    result.devices.push_back(device);
  }
  return {};
}

void say_why_there_is_none(Enumeration& result) {
  std::string why;
  for (const DriverReport& driver : result.report.drivers) {
    if (!driver.is_selected) continue;
    why += fmt::format("{}driver {}: {}", why.empty() ? "" : "; ", driver.name,
                       driver.reason.empty() ? "its devices are hidden by XPU_VISIBLE_DEVICES" : driver.reason);
  }
  result.error = {ErrorCode::not_found, "No XPU devices are available." + (why.empty() ? "" : " (" + why + ")")};
}

void before_fork() XPU_NO_THREAD_SAFETY_ANALYSIS { g_start_mutex.lock(); }
void after_fork_in_parent() XPU_NO_THREAD_SAFETY_ANALYSIS { g_start_mutex.unlock(); }
void after_fork_in_child() XPU_NO_THREAD_SAFETY_ANALYSIS {
  // The driver's threads are not here, and its locks may be held for ever.
  if (g_phase.load(std::memory_order_relaxed) != Phase::cold) {
    g_phase.store(Phase::bad_fork, std::memory_order_release);
    for (DeviceState* device : g_enumeration.load(std::memory_order_relaxed)->devices) device->memory.close(kBadForkSentence);
  }
  g_start_mutex.unlock();
}

const Enumeration& enumerate_locked() XPU_REQUIRES(g_start_mutex) {
  if (const Enumeration* known = g_enumeration.load(std::memory_order_acquire)) return *known;
  // From here on a child is told apart: before the first use of a device it is a process like any other.
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  auto* made = new Enumeration();
  if (Result<> done = enumerate_into(*made); !done) {
    made->error = std::move(done).error();
    made->report.error = made->error.message;
    made->devices.clear();
  } else if (made->devices.empty()) {
    say_why_there_is_none(*made);
  }
  g_enumeration.store(made, std::memory_order_release);
  return *made;
}

void leave() {
  Phase expected = Phase::initialized;
  if (!g_phase.compare_exchange_strong(expected, Phase::exiting)) return;
  const Enumeration& all = *g_enumeration.load(std::memory_order_acquire);
  for (const DeviceState* device : all.devices) device->memory.list_live_blocks(device->index);
  for (const auto& driver : all.drivers) driver->prepare_for_exit(kExitLimitMs);
  publish_end();
}

Error error_of(Phase phase) {
  if (phase == Phase::bad_fork) {
    return {ErrorCode::unavailable, kBadForkSentence};
  }
  return {ErrorCode::unavailable, "the process is exiting: no work is accepted any more"};
}

}  // namespace

void keep_for_ever(std::shared_ptr<const void> object) noexcept {
  // A list that is never walked: what is in it is found by whoever looks for leaks.
  struct Kept {
    std::shared_ptr<const void> object;
    Kept* next;
  };
  static constinit std::atomic<Kept*> all{nullptr};
  auto* kept = new (std::nothrow) Kept{std::move(object), all.load(std::memory_order_relaxed)};
  if (kept == nullptr) return;
  while (!all.compare_exchange_weak(kept->next, kept, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

const Enumeration& enumeration() {
  if (const Enumeration* known = g_enumeration.load(std::memory_order_acquire)) return *known;
  const base::MutexLock lock(g_start_mutex);
  return enumerate_locked();
}

Result<> ensure_initialized_slowly() {
  Phase phase = g_phase.load(std::memory_order_acquire);
  if (phase == Phase::cold) {
    const ApiNames names = register_publishing();
    // The lock is free: in a forked child the handler has let go of it.
    const base::MutexLock lock(g_start_mutex);
    phase = g_phase.load(std::memory_order_acquire);
    if (phase == Phase::cold) {
      const Enumeration& all = enumerate_locked();
      if (all.devices.empty()) return all.error;
      base::watch_process_exit();
      std::atexit(leave);
      set_api_names(names);
      register_memory_snapshots();
      g_phase.store(Phase::initialized, std::memory_order_release);
      return {};
    }
  }
  if (phase == Phase::initialized) return {};
  return error_of(phase);
}

Result<DeviceState*> find_device(int index) {
  const Enumeration& all = enumeration();
  if (all.devices.empty()) return all.error;
  if (index < 0 || static_cast<std::size_t>(index) >= all.devices.size()) {
    std::string message = fmt::format("The device index is out of range. It must be in [0, {}), but got {}.", all.devices.size(), index);
    if (const std::string filter = setting("XPU_VISIBLE_DEVICES"); !filter.empty()) {
      message += fmt::format(" (XPU_VISIBLE_DEVICES={} hides the others.)", filter);
    }
    return Error{ErrorCode::invalid_argument, std::move(message)};
  }
  return all.devices[static_cast<std::size_t>(index)];
}

Result<DeviceState*> find_device_or_current(int index) { return find_device(index < 0 ? current_device() : index); }

Result<hal::Device*> open(DeviceState& device) {
  if (hal::Device* opened = device.device.load(std::memory_order_acquire)) return opened;
  {
    const base::MutexLock lock(device.mutex);
    if (hal::Device* opened = device.device.load(std::memory_order_acquire)) return opened;
    XPU_TRY_ASSIGN(std::unique_ptr<hal::Device> opened, device.driver->open_device(device.ordinal));
    if (device.probe_id == 0) device.probe_id = probe::new_object_id(probe::ObjectKind::device);
    if (device.context_id == 0) device.context_id = probe::new_object_id(probe::ObjectKind::context);
    // Kept for ever, as everything that a stream or an event may point to.
    hal::Device* const kept = opened.release();
    device.device.store(kept, std::memory_order_release);
    // After it can be found: a subscriber that comes between the two hears of it twice, and never not at all.
    publish_device(device, *kept);
  }
  return device.device.load(std::memory_order_acquire);
}

Result<DeviceState*> use_device(int index) {
  XPU_TRY(ensure_initialized());
  XPU_TRY_ASSIGN(DeviceState * device, find_device_or_current(index));
  if (device->device.load(std::memory_order_acquire) == nullptr) XPU_TRY(open(*device));
  return device;
}

}  // namespace xpu::runtime

namespace xpu {

RuntimeReport describe_runtime() { return runtime::enumeration().report; }

Result<> initialize() { return runtime::ensure_initialized(); }

bool is_initialized() noexcept {
  const runtime::Phase phase = runtime::g_phase.load(std::memory_order_acquire);
  return phase == runtime::Phase::initialized || phase == runtime::Phase::exiting;
}

bool is_in_bad_fork() noexcept { return runtime::g_phase.load(std::memory_order_acquire) == runtime::Phase::bad_fork; }

bool is_available() noexcept {
  try {
    return !runtime::enumeration().devices.empty();
  } catch (...) {
    return false;
  }
}

}  // namespace xpu

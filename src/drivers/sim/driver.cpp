#include "drivers/sim/driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "base/process.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::drivers::sim {
namespace {

constexpr std::size_t kMaxProgramBytes = std::size_t{1} << 20;

struct ProgramOfProcess {
  base::Mutex mutex;
  std::optional<Program> program XPU_GUARDED_BY(mutex);
};
// Never destroyed: drivers may be created while static objects of the program are destroyed.
ProgramOfProcess& program_of_process() {
  static ProgramOfProcess& program = *new ProgramOfProcess;
  return program;
}

Result<Program> read_program(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxProgramBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return Error{ErrorCode::not_found, "XPU_SIM_PROGRAM=" + std::string(path) + " cannot be read, it must be the path of a program of sim"};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxProgramBytes) {
    return Error{ErrorCode::invalid_argument, "XPU_SIM_PROGRAM=" + std::string(path) + " is larger than 1 MiB, which no program of sim is"};
  }
  return parse_program(text, path);
}

Result<Program> program_for_new_driver() {
  {
    ProgramOfProcess& of_process = program_of_process();
    const base::MutexLock lock(of_process.mutex);
    if (of_process.program) return *of_process.program;
  }
  const char* path = base::has_raised_privileges() ? nullptr : std::getenv("XPU_SIM_PROGRAM");
  return path == nullptr ? Program() : read_program(path);
}

Result<Program> checked(Program program) {
  XPU_TRY(check_program(program));
  return program;
}

Result<const SimDevice*> sim_device(const hal::Device& device) {
  const auto* found = dynamic_cast<const SimDevice*>(&device);
  if (found == nullptr) return Error{ErrorCode::invalid_argument, "'" + device.properties().name + "' is no device of sim"};
  return found;
}

}  // namespace

SimDriver::SimDriver(Result<Program> program) : program_(std::move(program)), timeline_(std::make_shared<Timeline>()) {
  if (program_) rules_ = std::make_shared<Rules>(*program_);
}

Result<std::vector<DeviceProperties>> SimDriver::enumerate() {
  if (!program_) return program_.error();
  std::vector<DeviceProperties> devices;
  for (std::uint32_t ordinal = 0; ordinal < program_->device_count; ++ordinal) devices.push_back(properties_of(*program_, ordinal));
  return devices;
}

Result<std::unique_ptr<hal::Device>> SimDriver::open_device(std::uint32_t ordinal) {
  if (!program_) return program_.error();
  std::uint64_t origin_ns = 0;
  {
    const base::MutexLock lock(mutex_);
    if (!origin_ns_) origin_ns_ = program_->origin_ns.value_or(now_ns());
    origin_ns = *origin_ns_;
  }
  const Clock& clock = program_->clocks[std::min<std::size_t>(ordinal, program_->clocks.size() - 1)];
  auto state = std::make_shared<DeviceState>(ordinal, properties_of(*program_, ordinal), clock, rules_);
  return std::unique_ptr<hal::Device>(std::make_unique<SimDevice>(timeline_, std::move(state), origin_ns));
}

std::unique_ptr<hal::Driver> create_driver() { return std::make_unique<SimDriver>(program_for_new_driver()); }

std::unique_ptr<hal::Driver> create_programmed_driver(const Program& program) { return std::make_unique<SimDriver>(checked(program)); }

void set_program(const std::optional<Program>& program) {
  ProgramOfProcess& of_process = program_of_process();
  const base::MutexLock lock(of_process.mutex);
  of_process.program = program;
}

Result<Time> virtual_time(const hal::Device& device) {
  XPU_TRY_ASSIGN(const SimDevice* const found, sim_device(device));
  return found->timeline().now();
}

Result<> advance_time(hal::Device& device, Time time) {
  XPU_TRY_ASSIGN(const SimDevice* const found, sim_device(device));
  return found->timeline().advance(time);
}

Result<std::uint64_t> steps(const hal::Device& device) {
  XPU_TRY_ASSIGN(const SimDevice* const found, sim_device(device));
  return found->timeline().steps();
}

}  // namespace xpu::drivers::sim

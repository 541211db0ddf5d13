#include "drivers/sim/operation.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/probe.hpp"
#include "hal/work_groups.hpp"

namespace xpu::drivers::sim {
namespace {

static_assert(std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(OperationKind::host_function), decltype(Operation::work)>,
                             hal::HostFunction>,
              "Operation::kind takes the position in the variant for the kind");

constexpr std::size_t kLocalMemoryAlignment = 64;

struct AlignedDelete {
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t{kLocalMemoryAlignment}); }
};

/// Where the launch leaves the choice: the groups that come out are up to four times as large as wanted.
std::uint64_t wanted_groups(const hal::Geometry& geometry, const DeviceProperties& properties) {
  return geometry.global[0] * geometry.global[1] * geometry.global[2] / (properties.max_work_group_size / 4) + 1;
}

Result<> run(const KernelCall& call, const DeviceState& device) {
  const hal::KernelInfo& info = call.kernel->info();
  const std::size_t local_bytes = std::size_t{info.facts.local_memory_bytes} + call.local_memory_bytes;
  const std::unique_ptr<std::byte, AlignedDelete> local_memory(
      static_cast<std::byte*>(::operator new(std::max<std::size_t>(local_bytes, 1), std::align_val_t{kLocalMemoryAlignment})));
  const hal::WorkGroups groups(call.geometry, info.facts, wanted_groups(call.geometry, device.properties));
  groups.run(call.kernel->function(), call.arguments.data(), 0, groups.count(), local_memory.get(), local_bytes);
  return {};
}

Result<> run(const CopyCall& call, const DeviceState&) {
  std::memcpy(call.destination, call.source, call.bytes);
  return {};
}

Result<> run(const FillCall& call, const DeviceState&) {
  // What is there already is repeated as a whole, so that a large block takes few copies.
  auto* bytes = static_cast<std::byte*>(call.destination);
  std::memcpy(bytes, call.pattern.data(), std::min(call.pattern_bytes, call.bytes));
  for (std::size_t done = call.pattern_bytes; done < call.bytes; done *= 2)
    std::memcpy(bytes + done, bytes, std::min(done, call.bytes - done));
  return {};
}

Result<> run(const hal::HostFunction& function, const DeviceState&) { return function.call(function.user); }

}  // namespace

hal::Completion Operation::completion(hal::CompletionStatus status) const {
  if (status == hal::CompletionStatus::ok && plan.has(FaultKind::record_untimed)) return {token, hal::CompletionStatus::untimed, {}};
  hal::Ticks ticks{device->clock.ticks(queued), device->clock.ticks(submit), device->clock.ticks(start), device->clock.ticks(end)};
  if (plan.has(FaultKind::record_negative)) {
    if (ticks.start == ticks.end) ++ticks.end;
    std::swap(ticks.start, ticks.end);
  }
  return {token, status, ticks};
}

Result<> execute(const Operation& operation) {
  const probe::ScopeSuspended suspended;
  return std::visit([&](const auto& call) { return run(call, *operation.device); }, operation.work);
}

void drop(const Operation& operation) {
  const auto* function = std::get_if<hal::HostFunction>(&operation.work);
  if (function == nullptr || function->drop == nullptr) return;
  const probe::ScopeSuspended suspended;
  function->drop(function->user);
}

void deliver(const Operation& operation, const hal::Completion& completion) {
  if (!operation.is_timed() || operation.plan.has(FaultKind::record_lost)) return;
  operation.sink->complete(completion);
  if (operation.plan.has(FaultKind::record_duplicate)) operation.sink->complete(completion);
}

}  // namespace xpu::drivers::sim

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "xpu/drivers/sim.hpp"

/// What the reader and the writer of programs share.
namespace xpu::drivers::sim {

/// A unit of a text such as "1.5ms": its name and how many base units it is.
struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
inline constexpr std::array<Unit, 5> kTimeUnits = {
    {{"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}}};

inline constexpr std::array kOperationKinds = {OperationKind::kernel, OperationKind::copy, OperationKind::fill,
                                               OperationKind::host_function, OperationKind::event};
inline constexpr std::array kFaultKinds = {FaultKind::record_lost,     FaultKind::record_late,    FaultKind::record_duplicate,
                                           FaultKind::record_negative, FaultKind::record_untimed, FaultKind::operation_fails,
                                           FaultKind::device_lost,     FaultKind::out_of_memory,  FaultKind::queue_refused};

/// The parts of `check_program`, each of which is one line of text.
Result<> check_device_count(std::uint64_t count);
Result<> check_memory_bytes(std::uint64_t bytes);
Result<> check_clock(const Clock& clock);
Result<> check_timing(const TimingRule& rule);
Result<> check_fault(const FaultRule& rule);

}  // namespace xpu::drivers::sim

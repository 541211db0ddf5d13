#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "xpu/drivers/sim.hpp"

namespace xpu::drivers::sim {

/// '*' stands for any text, '?' for any character.
bool matches_pattern(std::string_view pattern, std::string_view text) noexcept;

/// What the program says of one operation.
struct Plan {
  Time submit{0}, launch{0}, duration{0};
  std::uint32_t faults = 0;  ///< Bits `1 << FaultKind`.

  bool has(FaultKind fault) const noexcept { return (faults >> static_cast<unsigned>(fault) & 1) != 0; }
};

/// The rules of one driver's program, with the counts of its faults. Thread-safe.
class Rules {
 public:
  explicit Rules(const Program& program);

  /// Counts the operation. `name`: of a kernel, otherwise empty.
  Plan plan(OperationKind operation, std::string_view name, std::uint64_t bytes) XPU_EXCLUDES(mutex_);
  /// Of faults that are not of operations. Counts the attempt.
  bool strikes(FaultKind fault) XPU_EXCLUDES(mutex_);
  Time event_time() const noexcept { return event_time_; }

 private:
  struct CountedFault {
    FaultRule rule;
    std::uint64_t count = 0;
    bool strikes() noexcept;
  };

  const std::vector<TimingRule> timings_;
  Time event_time_{0};
  base::Mutex mutex_;
  std::vector<CountedFault> faults_ XPU_GUARDED_BY(mutex_);
};

}  // namespace xpu::drivers::sim

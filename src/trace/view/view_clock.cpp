#include "trace/view/view_clock.hpp"

#include <algorithm>
#include <iterator>

#include "base/probe.hpp"
#include "xpu/base/clock.hpp"

namespace xpu::trace::view {
namespace {

// At one reading a round, several minutes; of older times the oldest kept reading is taken.
constexpr std::size_t kMaxReadings = 8'192;
constexpr int kTries = 50;

/// Calls `visit` with every time of a view, and returns its flags, or null.
template <typename View, typename Visitor>
std::uint32_t* visit_device_times(View& view, Visitor&& visit) {
  for (std::uint64_t* time : {&view.append_ns, &view.submit_ns, &view.start_ns, &view.end_ns, &view.details.call_enter_ns}) visit(*time);
  return &view.details.flags;
}
template <typename View, typename Visitor>
std::uint32_t* visit_host_times(View& view, Visitor&& visit) {
  visit(view.start_ns);
  visit(view.end_ns);
  return &view.flags;
}

template <typename Visitor>
std::uint32_t* visit_times(std::span<std::byte> bytes, Visitor&& visit) {
  auto* header = reinterpret_cast<ViewHeader*>(bytes.data());
  switch (header->kind) {
    case ViewKind::kernel: return visit_device_times(*reinterpret_cast<KernelView*>(header), visit);
    case ViewKind::memory_copy: return visit_device_times(*reinterpret_cast<CopyView*>(header), visit);
    case ViewKind::peer_copy: return visit_device_times(*reinterpret_cast<PeerCopyView*>(header), visit);
    case ViewKind::memory_fill: return visit_device_times(*reinterpret_cast<FillView*>(header), visit);
    case ViewKind::driver_api:
    case ViewKind::runtime_api: return visit_host_times(*reinterpret_cast<ApiView*>(header), visit);
    case ViewKind::overhead: return visit_host_times(*reinterpret_cast<OverheadView*>(header), visit);
    case ViewKind::synchronization: return visit_host_times(*reinterpret_cast<SynchronizationView*>(header), visit);
    case ViewKind::communication: {
      auto& view = *reinterpret_cast<CommunicationView*>(header);
      visit(view.start_ns);
      visit(view.end_ns);
      return nullptr;  // it has no flags
    }
    default: return nullptr;
  }
}

}  // namespace

ResultCode ViewClock::read() {
  Reading best{};
  std::uint64_t narrowest = UINT64_MAX, last = readings_.empty() ? 0 : readings_.back().view_ns;
  for (int tries = 0; tries < kTries; ++tries) {
    const std::uint64_t before = now_ns(probe::clock_domain());
    const std::uint64_t view_ns = now_();
    const std::uint64_t after = now_ns(probe::clock_domain());
    if (view_ns == 0 || view_ns < last) return ResultCode::bad_timestamp;
    last = view_ns;
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + (after - before) / 2, view_ns};
  }
  if (readings_.size() == kMaxReadings) readings_.pop_front();
  readings_.push_back(best);
  return ResultCode::success;
}

std::uint64_t ViewClock::to_view_time(std::uint64_t host_ns) const noexcept {
  if (host_ns == 0) return 0;
  const auto later = std::upper_bound(readings_.begin(), readings_.end(), host_ns,
                                      [](std::uint64_t time, const Reading& reading) { return time < reading.host_ns; });
  if (later == readings_.begin()) {
    const std::uint64_t before = later->host_ns - host_ns;
    return later->view_ns > before ? later->view_ns - before : 1;
  }
  const Reading& from = *std::prev(later);
  const std::uint64_t beyond = host_ns - from.host_ns;
  if (later == readings_.end()) return from.view_ns + beyond;
  const double share = static_cast<double>(beyond) / static_cast<double>(later->host_ns - from.host_ns);
  const auto covered = static_cast<double>(later->view_ns - from.view_ns);
  return from.view_ns + static_cast<std::uint64_t>(share * covered);
}

void convert_times(std::span<std::byte> view, const ViewClock& clock) noexcept {
  std::uint32_t* flags = visit_times(view, [&](std::uint64_t& time) { time = clock.to_view_time(time); });
  if (flags != nullptr) *flags |= kViewUserClock;
}

std::uint64_t begin_of(std::span<const std::byte> view) noexcept {
  const auto* header = reinterpret_cast<const ViewHeader*>(view.data());
  switch (header->kind) {
    case ViewKind::kernel: return reinterpret_cast<const KernelView*>(header)->details.call_enter_ns;
    case ViewKind::memory_copy: return reinterpret_cast<const CopyView*>(header)->details.call_enter_ns;
    case ViewKind::peer_copy: return reinterpret_cast<const PeerCopyView*>(header)->details.call_enter_ns;
    case ViewKind::memory_fill: return reinterpret_cast<const FillView*>(header)->details.call_enter_ns;
    case ViewKind::driver_api:
    case ViewKind::runtime_api: return reinterpret_cast<const ApiView*>(header)->start_ns;
    case ViewKind::overhead: return reinterpret_cast<const OverheadView*>(header)->start_ns;
    case ViewKind::synchronization: return reinterpret_cast<const SynchronizationView*>(header)->start_ns;
    case ViewKind::communication: return reinterpret_cast<const CommunicationView*>(header)->start_ns;
    default: return 0;
  }
}

}  // namespace xpu::trace::view

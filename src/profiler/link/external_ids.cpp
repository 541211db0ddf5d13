#include "profiler/link/external_ids.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace xpu::profiler {

void ExternalIds::add(std::size_t process, const trace::ExternalCorrelationRecord& record) {
  if (process >= processes_.size()) return;
  Writer& writer = processes_[process][trace::operation_writer(record.operation)];
  writer.counters.push_back(trace::operation_counter(record.operation));
  writer.ids.push_back({record.external_id, record.family});
  ++size_;
}

void ExternalIds::sort() {
  for (auto& writers : processes_) writers.for_each([](std::uint64_t, Writer& writer) { sort(writer); });
}

void ExternalIds::sort(Writer& writer) {
  // A thread counts up, so only buffers that came in another order are anything to sort.
  if (std::is_sorted(writer.counters.begin(), writer.counters.end())) return;
  std::vector<std::size_t> order(writer.counters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return writer.counters[a] < writer.counters[b]; });
  Writer sorted;
  sorted.counters.reserve(order.size());
  sorted.ids.reserve(order.size());
  for (const std::size_t index : order) {
    sorted.counters.push_back(writer.counters[index]);
    sorted.ids.push_back(writer.ids[index]);
  }
  writer = std::move(sorted);
}

std::span<const ExternalId> ExternalIds::find(std::size_t process, std::uint64_t operation) const noexcept {
  if (process >= processes_.size()) return {};
  const Writer* writer = processes_[process].find(trace::operation_writer(operation));
  if (writer == nullptr || writer->counters.empty()) return {};
  const auto [first, last] = std::equal_range(writer->counters.begin(), writer->counters.end(), trace::operation_counter(operation));
  return {writer->ids.data() + (first - writer->counters.begin()), static_cast<std::size_t>(last - first)};
}

}  // namespace xpu::profiler

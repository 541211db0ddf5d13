#include "profiler/session/session_stream.hpp"

#include <algorithm>

namespace xpu::profiler {
namespace {

std::uint64_t bytes_of(const std::vector<ActivityBuffer>& buffers) {
  std::uint64_t bytes = 0;
  for (const ActivityBuffer& buffer : buffers) bytes += buffer.records().size();
  return bytes;
}

}  // namespace

Result<> SessionStream::advance(Sink& sink) {
  if (state_ != State::goes_on) return Error{ErrorCode::failed_precondition, "the session was handed over to its end"};
  api_.flush();
  const std::vector<ActivityBuffer> settled = api_.take_fetched();
  // Threads write on while the first are fetched, one after the other. What was written before any of these is among them or here.
  api_.fetch();
  const std::vector<ActivityBuffer> young = api_.take_fetched();
  const ActivityBuffer texts = api_.texts();
  count(settled, young);
  return linker_.advance({texts, settled, young}, sink);
}

Result<LinkSummary> SessionStream::finish(Sink& sink) {
  if (state_ != State::goes_on)
    return Error{ErrorCode::failed_precondition, "the session was handed over to its end, which it can be once"};
  state_ = State::has_books;
  const std::vector<ActivityBuffer> settled = api_.take_fetched();
  const ActivityBuffer texts = api_.texts();
  count(settled, {});
  return linker_.finish({texts, settled, {}}, sink);
}

Result<trace::Conservation> SessionStream::take_books() {
  if (state_ != State::has_books)
    return Error{ErrorCode::failed_precondition, "the books of a session are closed when it was handed over to its end, and once"};
  state_ = State::ended;
  return linker_.close_books();
}

void SessionStream::count(const std::vector<ActivityBuffer>& settled, const std::vector<ActivityBuffer>& young) {
  const std::uint64_t bytes = bytes_of(settled) + bytes_of(young);
  ++counts_.rounds;
  counts_.fetched_bytes += bytes;
  counts_.largest_round_bytes = std::max(counts_.largest_round_bytes, bytes);
}

StreamCounts SessionStream::counts() const noexcept {
  StreamCounts counts = counts_;
  const StreamLinker::Carried carried = linker_.carried();
  counts.carried_operations = carried.operations;
  counts.carried_bytes = carried.bytes;
  counts.open_ranges = carried.open_ranges;
  return counts;
}

}  // namespace xpu::profiler

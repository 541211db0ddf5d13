#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "xpu/base/clock.hpp"
#include "xpu/base/export.hpp"
#include "xpu/trace/view/records.hpp"
#include "xpu/trace/view/selection.hpp"

namespace xpu::trace::view {

/// Where the texts behind ids come from.
enum class TextSource : std::uint8_t {
  process,  ///< This process's own, which are never freed: for its own records.
  records,  ///< String records, kept by the builder: for records of a file or of another process.
};

struct ViewBuilderOptions {
  Selection selection;
  std::size_t max_open_operations = 1'000'000;  ///< At least 1. About 250 bytes each.
  TextSource texts = TextSource::records;
  ClockDomain host_clock = ClockDomain::monotonic;  ///< Of the records' host times.
  std::uint32_t first_correlation = 1;
  /// Gives correlation ids instead of the builder's own counter, once for each operation; 0 = a call that belongs to none. Several
  /// builders, or whoever told of an operation before its records came, thereby agree. Empty: the counter.
  std::function<std::uint32_t(std::uint64_t operation)> correlation_for = {};
};

/// What became of the records. Each number only grows.
struct ViewStatistics {
  std::uint64_t views[kViewKinds] = {};       ///< Handed over, by kind.
  std::uint64_t linked = 0;                   ///< Operations of which both halves came.
  std::uint64_t unlinked = 0;                 ///< Views without a completion: pushed out, lost, or never finished.
  std::uint64_t orphans = 0;                  ///< Completions without a submission: of what, nobody knows, so there is no view.
  std::uint64_t evicted = 0;                  ///< Operations pushed out of the full table.
  std::uint64_t lost = 0;                     ///< Operations that loss records count.
  std::uint64_t duplicates = 0;               ///< Halves that came again.
  std::uint64_t late = 0;                     ///< Halves of an operation that had been written without them.
  std::uint64_t undescribed = 0;              ///< Device views with kViewUndescribed.
  std::uint64_t untimed = 0, unplaced = 0;    ///< Device views without times, by reason.
  std::uint64_t unattached_external_ids = 0;  ///< Of no operation, of one that was over, or of one that never came.
  std::uint64_t correlation_wraps = 0;        ///< Times that the 32-bit counter began anew.
  std::uint64_t damaged_bytes = 0;            ///< Passed over because they were no records.
};

/// Makes view records from the wire records of one process. Halves are joined by the operation's id, never by order: spans of several
/// threads may come in any order, and a completion long after or before its submission. One owner at a time.
///
/// `add` collects; `deliver` hands over what is complete, calls first, in the order in which they came. A view is complete when everything
/// that it names is known; `Completeness::as_known` does not wait for that. `add` itself delivers only when a table is full.
///
/// A correlation id is given to an operation or call when its first view is handed over, kept until its completion has been, and joins all
/// views of one call. External ids stand immediately before the first view of their operation, which is the call's where calls are
/// selected. Times are of the records' host clock.
class XPU_EXPORT ViewBuilder {
 public:
  /// Gets one record at a time, which it copies: `record` is valid during the call only (the texts that it points to stay). `writer` is the
  /// wire id of the thread that made the call, 0 = unknown: views of one thread belong into one buffer. Must not use the builder.
  using Sink = std::function<void(std::uint32_t writer, std::span<const std::byte> record)>;

  enum class Completeness : std::uint8_t {
    described,  ///< Leaves for later what names, clocks and geometries are missing for: their records may be under way in another span.
    as_known,   ///< Everything whose completion came. What is missing is flagged, and unknown times are 0.
  };

  ViewBuilder(ViewBuilderOptions options, Sink sink);
  ~ViewBuilder();
  ViewBuilder(ViewBuilder&&) noexcept;
  ViewBuilder& operator=(ViewBuilder&&) noexcept;

  /// Whole wire records one after the other, 8-byte aligned. The rest of the span from the first one that cannot be is passed over and
  /// counted.
  void add(std::span<const std::byte> records);
  void deliver(Completeness completeness = Completeness::described);
  /// Delivers everything, also operations without a completion (kViewUnlinked). Afterwards nothing is open.
  void finish();

  /// From the next delivery on, for what began at `from_ns` or later; 0: for everything, and what is no longer selected and was not handed
  /// over is dropped.
  void select(const Selection& selection, std::uint64_t from_ns = 0);

  const ViewStatistics& statistics() const noexcept;
  /// All that were not handed over, and of them those that were submitted and have not ended.
  std::size_t open_operations() const noexcept;
  std::size_t unfinished_operations() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu::trace::view

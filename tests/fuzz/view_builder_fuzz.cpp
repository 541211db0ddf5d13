#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/fuzz/expect.hpp"
#include "xpu/trace/view/next_record.hpp"
#include "xpu/trace/view/view_builder.hpp"

/// Input: wire records of any bytes; the first 8 bytes say how they come.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xpu::trace::view;
  std::uint8_t head[8] = {};
  if (size < sizeof head) return 0;
  std::memcpy(head, data, sizeof head);
  data += sizeof head;
  size -= sizeof head;

  ViewBuilderOptions options;
  options.max_open_operations = head[0] % 16u + 1;
  options.first_correlation = UINT32_MAX - head[1];
  for (std::uint32_t kind = 0; kind < kViewKinds; ++kind) {
    if ((head[2 + kind / 8] >> kind % 8 & 1) == 0) static_cast<void>(options.selection.enable(static_cast<ViewKind>(kind)));
  }
  const Selection selection = options.selection;
  std::uint64_t written = 0;
  ViewBuilder builder(options, [&](std::uint32_t, std::span<const std::byte> record) {
    ++written;
    const ViewHeader* found = nullptr;
    XPU_FUZZ_EXPECT(next_record(record.data(), record.size(), &found) == ResultCode::success);
    XPU_FUZZ_EXPECT(view_bytes(found->kind) == record.size());
    XPU_FUZZ_EXPECT(selection.is_enabled(found->kind));
    if (found->kind != ViewKind::kernel) return;
    const auto& kernel = *reinterpret_cast<const KernelView*>(record.data());
    XPU_FUZZ_EXPECT(kernel.name != nullptr && kernel.correlation != 0);
    // What is known is in order; a start is known where any time is.
    XPU_FUZZ_EXPECT(kernel.start_ns != 0 || (kernel.append_ns | kernel.submit_ns | kernel.end_ns) == 0);
    XPU_FUZZ_EXPECT(kernel.start_ns <= kernel.end_ns && kernel.submit_ns <= kernel.start_ns && kernel.append_ns <= kernel.start_ns);
    XPU_FUZZ_EXPECT(kernel.submit_ns == 0 || kernel.append_ns <= kernel.submit_ns);
  });
  // In two spans, cut where the head says; the second begins anew when the first was damaged.
  std::vector<std::uint64_t> words((size + 7) / 8);
  if (size != 0) std::memcpy(words.data(), data, size);
  const auto all = std::as_bytes(std::span(words));
  const std::size_t cut = all.size() * head[5] / 256 / 8 * 8;
  builder.add(all.first(cut));
  builder.deliver();
  builder.add(all.subspan(cut));
  XPU_FUZZ_EXPECT(builder.open_operations() <= options.max_open_operations);
  builder.deliver();
  builder.finish();
  XPU_FUZZ_EXPECT(builder.open_operations() == 0);
  std::uint64_t counted = 0;
  for (const std::uint64_t views : builder.statistics().views) counted += views;
  XPU_FUZZ_EXPECT(counted == written);
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/fuzz/expect.hpp"
#include "xpu/trace/view/next_record.hpp"

/// Input: a buffer that is said to hold view records.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xpu::trace::view;
  // A copy of exactly this size, so that a sanitizer sees what is read behind it.
  const std::vector<std::uint8_t> buffer(data, data + size);
  const ViewHeader* record = nullptr;
  const std::uint8_t* next = buffer.data();
  std::uint64_t sum = 0;
  ResultCode code = ResultCode::success;
  while ((code = next_record(buffer.data(), buffer.size(), &record)) == ResultCode::success) {
    // Each record begins where the one before it ends, and all of it can be read.
    const auto* begin = reinterpret_cast<const std::uint8_t*>(record);
    XPU_FUZZ_EXPECT(begin == next);
    ViewKind kind{};
    std::memcpy(&kind, begin, sizeof kind);
    const std::size_t bytes = view_bytes(kind);
    XPU_FUZZ_EXPECT(bytes >= sizeof(ViewHeader) && bytes <= kLargestViewBytes);
    next = begin + bytes;
    XPU_FUZZ_EXPECT(next <= buffer.data() + buffer.size());
    for (const std::uint8_t* byte = begin; byte != next; ++byte) sum += *byte;
  }
  XPU_FUZZ_EXPECT(code == ResultCode::end_of_buffer || code == ResultCode::bad_argument);
  XPU_FUZZ_EXPECT((code == ResultCode::end_of_buffer) == (next == buffer.data() + buffer.size()));
  // Asking again changes nothing.
  const ViewHeader* again = record;
  XPU_FUZZ_EXPECT(next_record(buffer.data(), buffer.size(), &again) == code && again == record);
  XPU_FUZZ_EXPECT(next_record(buffer.data(), buffer.size(), nullptr) == ResultCode::bad_argument);
  XPU_FUZZ_EXPECT(size != 0 || record == nullptr);

  // From any place of the buffer, also one where no record begins.
  for (std::size_t place = 0; place < size && place < 64; ++place) {
    const auto* from = reinterpret_cast<const ViewHeader*>(buffer.data() + place);
    if (next_record(buffer.data(), buffer.size(), &from) != ResultCode::success) continue;
    XPU_FUZZ_EXPECT(reinterpret_cast<const std::uint8_t*>(from) < buffer.data() + buffer.size());
  }
  return sum == UINT64_MAX ? 1 : 0;
}

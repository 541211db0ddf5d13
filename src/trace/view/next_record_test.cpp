#include "xpu/trace/view/next_record.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace xpu::trace::view {
namespace {

template <typename View>
void append_view(std::vector<std::byte>& buffer, ViewKind kind) {
  View view{};
  view.header.kind = kind;
  const auto* bytes = reinterpret_cast<const std::byte*>(&view);
  buffer.insert(buffer.end(), bytes, bytes + sizeof view);
}

std::vector<std::byte> two_records() {
  std::vector<std::byte> buffer;
  append_view<KernelView>(buffer, ViewKind::kernel);
  append_view<ApiView>(buffer, ViewKind::driver_api);
  return buffer;
}

TEST(NextRecordTest, WalksRecordsOfEveryKind) {
  std::vector<std::byte> buffer;
  append_view<KernelView>(buffer, ViewKind::kernel);
  append_view<ApiView>(buffer, ViewKind::driver_api);
  append_view<OverheadView>(buffer, ViewKind::overhead);
  append_view<ApiView>(buffer, ViewKind::runtime_api);
  append_view<ExternalCorrelationView>(buffer, ViewKind::external_correlation);
  append_view<CopyView>(buffer, ViewKind::memory_copy);
  append_view<FillView>(buffer, ViewKind::memory_fill);
  append_view<PeerCopyView>(buffer, ViewKind::peer_copy);
  append_view<SynchronizationView>(buffer, ViewKind::synchronization);
  append_view<CommunicationView>(buffer, ViewKind::communication);
  const ViewHeader* record = nullptr;
  std::vector<std::uint32_t> kinds;
  while (next_record(buffer.data(), buffer.size(), &record) == ResultCode::success) {
    kinds.push_back(static_cast<std::uint32_t>(record->kind));
    EXPECT_LE(view_bytes(record->kind), kLargestViewBytes);
  }
  EXPECT_EQ(kinds, (std::vector<std::uint32_t>{1, 3, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(NextRecordTest, RefusesNoPlaceForTheAnswer) {
  const std::vector<std::byte> buffer = two_records();
  EXPECT_EQ(next_record(buffer.data(), buffer.size(), nullptr), ResultCode::bad_argument);
  EXPECT_EQ(next_record(nullptr, 0, nullptr), ResultCode::bad_argument);
}

TEST(NextRecordTest, FindsTheEndOfNoBuffer) {
  const std::vector<std::byte> buffer = two_records();
  const ViewHeader* record = nullptr;
  EXPECT_EQ(next_record(nullptr, buffer.size(), &record), ResultCode::end_of_buffer);
  EXPECT_EQ(next_record(buffer.data(), 0, &record), ResultCode::end_of_buffer);
  EXPECT_EQ(record, nullptr);
}

TEST(NextRecordTest, BeginsWithTheFirstRecordAndStaysAtTheLast) {
  const std::vector<std::byte> buffer = two_records();
  const ViewHeader* record = nullptr;
  ASSERT_EQ(next_record(buffer.data(), buffer.size(), &record), ResultCode::success);
  EXPECT_EQ(static_cast<const void*>(record), buffer.data());
  ASSERT_EQ(next_record(buffer.data(), buffer.size(), &record), ResultCode::success);
  const ViewHeader* const last = record;
  EXPECT_EQ(static_cast<const void*>(last), buffer.data() + sizeof(KernelView));
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(next_record(buffer.data(), buffer.size(), &record), ResultCode::end_of_buffer);
    EXPECT_EQ(record, last);
  }
}

TEST(NextRecordTest, RefusesKindsThatHaveNoRecords) {
  for (const std::uint32_t kind : {0u, 2u, 4u, 13u, 0x7fffffffu, UINT32_MAX}) {
    std::vector<std::byte> buffer = two_records();
    std::memcpy(buffer.data(), &kind, sizeof kind);
    const ViewHeader* record = nullptr;
    EXPECT_EQ(next_record(buffer.data(), buffer.size(), &record), ResultCode::bad_argument);
    EXPECT_EQ(record, nullptr);

    buffer = two_records();
    std::memcpy(buffer.data() + sizeof(KernelView), &kind, sizeof kind);
    ASSERT_EQ(next_record(buffer.data(), buffer.size(), &record), ResultCode::success);
    const ViewHeader* const first = record;
    EXPECT_EQ(next_record(buffer.data(), buffer.size(), &record), ResultCode::bad_argument);
    EXPECT_EQ(record, first);
  }
}

TEST(NextRecordTest, ReturnsOnlyWhatIsInsideTheBuffer) {
  const std::vector<std::byte> buffer = two_records();
  for (const std::size_t missing : {std::size_t{1}, sizeof(ApiView) - 5, sizeof(ApiView) - 1}) {
    const std::size_t bytes = buffer.size() - missing;
    const ViewHeader* record = nullptr;
    ASSERT_EQ(next_record(buffer.data(), bytes, &record), ResultCode::success);
    const ViewHeader* const first = record;
    EXPECT_EQ(next_record(buffer.data(), bytes, &record), ResultCode::bad_argument);
    EXPECT_EQ(record, first);
  }
  const ViewHeader* record = nullptr;
  EXPECT_EQ(next_record(buffer.data(), 3, &record), ResultCode::bad_argument);
}

TEST(NextRecordTest, RefusesToStepFromSomewhereElse) {
  const std::vector<std::byte> buffer = two_records();
  const std::vector<std::byte> other = two_records();
  const auto* elsewhere = reinterpret_cast<const ViewHeader*>(other.data());
  EXPECT_EQ(next_record(buffer.data(), buffer.size(), &elsewhere), ResultCode::bad_argument);
  const auto* behind = reinterpret_cast<const ViewHeader*>(buffer.data() + buffer.size());
  EXPECT_EQ(next_record(buffer.data(), buffer.size(), &behind), ResultCode::bad_argument);
}

}  // namespace
}  // namespace xpu::trace::view

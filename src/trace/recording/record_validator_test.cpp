#include "trace/recording/record_validator.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "xpu/trace/records.hpp"

namespace xpu::trace {
namespace {

std::vector<std::byte> record(std::uint16_t kind, std::uint16_t size, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  const RecordHeader header{kind, size, 0};
  std::memcpy(result.data(), &header, std::min(bytes, sizeof(header)));
  return result;
}
std::vector<std::byte> whole(RecordKind kind, std::size_t size) {
  return record(static_cast<std::uint16_t>(kind), static_cast<std::uint16_t>(size), size);
}
void append(std::vector<std::byte>& bytes, const std::vector<std::byte>& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }
void set_u32(std::vector<std::byte>& bytes, std::size_t offset, std::uint32_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

TEST(RecordValidatorTest, TakesWholeRecordsOneAfterTheOther) {
  std::vector<std::byte> bytes = whole(RecordKind::operation_submitted, sizeof(OperationSubmittedRecord));
  append(bytes, whole(RecordKind::loss, sizeof(LossRecord)));
  append(bytes, whole(RecordKind::session, sizeof(SessionRecord)));
  const ValidPrefix prefix = valid_prefix(bytes);
  EXPECT_EQ(prefix.bytes, bytes.size());
  EXPECT_EQ(prefix.records, 3u);
}

TEST(RecordValidatorTest, TakesNothingFromNothing) {
  EXPECT_EQ(valid_prefix({}).bytes, 0u);
  EXPECT_EQ(valid_prefix(std::vector<std::byte>(7)).bytes, 0u);
}

TEST(RecordValidatorTest, StepsOverKindsThatItDoesNotKnow) {
  std::vector<std::byte> bytes = record(12'345, 24, 24);
  append(bytes, record(63, 8, 8));
  append(bytes, whole(RecordKind::thread, sizeof(ThreadRecord)));
  EXPECT_EQ(valid_prefix(bytes).records, 3u);
}

TEST(RecordValidatorTest, TakesRecordsThatALaterVersionMadeLonger) {
  EXPECT_EQ(valid_prefix(whole(RecordKind::thread, sizeof(ThreadRecord) + 16)).records, 1u);
}

TEST(RecordValidatorTest, StopsAtSizesThatCannotBe) {
  const std::vector<std::byte> good = whole(RecordKind::thread, sizeof(ThreadRecord));
  const std::vector<std::byte> bad[] = {
      record(3, 0, 24),   // would never end
      record(3, 4, 24),   // shorter than a header
      record(3, 28, 32),  // no multiple of 8
      record(3, 16, 24),  // shorter than its kind
      record(3, 32, 24),  // beyond the end
      record(3, 0xfff8, 24),
  };
  for (const std::vector<std::byte>& tail : bad) {
    std::vector<std::byte> bytes = good;
    append(bytes, tail);
    EXPECT_EQ(valid_prefix(bytes).bytes, good.size());
    EXPECT_EQ(valid_prefix(bytes).records, 1u);
  }
}

TEST(RecordValidatorTest, StopsAtTextsAndListsThatReachBeyondTheirRecord) {
  std::vector<std::byte> text = whole(RecordKind::string, sizeof(StringRecord) + 8);
  set_u32(text, offsetof(StringRecord, bytes), 8);
  EXPECT_EQ(valid_prefix(text).records, 1u);
  set_u32(text, offsetof(StringRecord, bytes), 9);
  EXPECT_EQ(valid_prefix(text).records, 0u);

  std::vector<std::byte> name = whole(RecordKind::process, sizeof(ProcessRecord));
  EXPECT_EQ(valid_prefix(name).records, 1u);
  set_u32(name, offsetof(ProcessRecord, name_bytes), 1);
  EXPECT_EQ(valid_prefix(name).records, 0u);

  std::vector<std::byte> devices = whole(RecordKind::context, sizeof(ContextRecord) + 8);
  set_u32(devices, offsetof(ContextRecord, device_count), 2);
  EXPECT_EQ(valid_prefix(devices).records, 1u);
  set_u32(devices, offsetof(ContextRecord, device_count), 3);
  EXPECT_EQ(valid_prefix(devices).records, 0u);
  set_u32(devices, offsetof(ContextRecord, device_count), 0x4000'0001);  // 4 x it is 4 in 32 bits
  EXPECT_EQ(valid_prefix(devices).records, 0u);
}

TEST(RecordValidatorTest, KnowsTheLeastSizeOfEveryKind) {
  EXPECT_EQ(minimum_record_bytes(static_cast<std::uint16_t>(RecordKind::operation_completed)), sizeof(OperationCompletedRecord));
  EXPECT_EQ(minimum_record_bytes(static_cast<std::uint16_t>(RecordKind::rectangle)), sizeof(RectangleRecord));
  EXPECT_EQ(minimum_record_bytes(0), sizeof(RecordHeader));
  EXPECT_EQ(minimum_record_bytes(0xffff), sizeof(RecordHeader));
}

}  // namespace
}  // namespace xpu::trace

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fuzz/expect.hpp"
#include "tests/fuzz/pieces.hpp"
#include "trace/recording/segment_reader.hpp"

/// Input: pieces of a segment file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xpu;
  const int fd = ::memfd_create("segment", MFD_CLOEXEC);
  XPU_FUZZ_EXPECT(fd >= 0);
  fuzz::write_pieces(fd, fuzz::bytes_of(data, size));
  const auto reader = trace::SegmentReader::open(fd);
  if (!reader) return 0;
  XPU_FUZZ_EXPECT(reader->chunk_count() <= fuzz::kMaxFileBytes / trace::kChunkBytes + 1);
  std::vector<std::byte> records;
  for (std::uint32_t index = 0; index < reader->chunk_count(); ++index) {
    const trace::SegmentChunk chunk = reader->chunk(index);
    const auto reading = reader->read(index, chunk, records);
    XPU_FUZZ_EXPECT(reading != trace::SegmentReader::Reading::moved);
    fuzz::expect_whole_records(records);
    XPU_FUZZ_EXPECT(records.size() <= trace::kChunkBytes);
  }
  return 0;
}

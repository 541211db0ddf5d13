#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/fuzz/expect.hpp"
#include "tests/fuzz/repair.hpp"
#include "trace/recording/compact_file.hpp"
#include "trace/recording/manifest.hpp"

namespace {

void read_all(std::vector<std::byte> bytes) {
  using namespace xpu::trace;
  const std::size_t size = bytes.size();
  const auto file = CompactFile::from_bytes(std::move(bytes));
  if (!file) return;
  XPU_FUZZ_EXPECT(file->file_bytes() == size);
  if (!file->manifest().empty()) (void)manifest_from_json(file->manifest());
  BlockDecoder decoder;
  std::vector<std::byte> records;
  for (const CompactSection& section : file->sections()) {
    XPU_FUZZ_EXPECT(section.process < file->processes().size());
    if (!file->read(section, decoder, records)) continue;
    XPU_FUZZ_EXPECT(records.size() == section.facts.raw_bytes);
    std::size_t bytes_of_records = 0, count = 0;
    for_each_record(records, [&](const RecordHeader& header) {
      XPU_FUZZ_EXPECT(header.kind == section.facts.kind);
      XPU_FUZZ_EXPECT(header.size % 8 == 0);
      bytes_of_records += header.size;
      ++count;
    });
    XPU_FUZZ_EXPECT(bytes_of_records == records.size() && count == section.facts.records);
  }
}

}  // namespace

/// Input: a compacted file, read as it is and with right checksums.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = xpu::fuzz::bytes_of(data, size);
  read_all({input.begin(), input.end()});
  std::vector<std::byte> repaired(input.begin(), input.end());
  xpu::fuzz::ChecksumRepair(repaired).run();
  read_all(std::move(repaired));
  return 0;
}

// Hands files to a fuzz target once each, without a fuzzer: so that its corpus is a test in every build, also where libFuzzer is not.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

bool replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open()) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

/// Arguments: folders of inputs; one that does not exist is passed over, but there must be some input in all of them together.
int main(int argument_count, char** arguments) {
  std::size_t count = 0;
  bool all_read = true;
  for (int index = 1; index < argument_count; ++index) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[index], error)) {
      if (!entry.is_regular_file()) continue;
      all_read = replay(entry.path()) && all_read;
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return all_read && count > 0 ? 0 : 1;
}

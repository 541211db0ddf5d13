// Hands files to a fuzz target, each once as it is and a few times changed at random (always the same way), without a fuzzer: so that its
// corpus is a test in every build, also where libFuzzer is not.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int kChangedCopies = 24;

void run(const std::vector<std::uint8_t>& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

void change(std::vector<std::uint8_t>& bytes, std::mt19937& random) {
  for (unsigned changes = 1 + random() % 4; changes != 0 && !bytes.empty(); --changes) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 8) {
      case 0: bytes.resize(at); break;
      case 1:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2: bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 3: bytes[at] = 0xff; break;
      case 4: bytes[at] = 0; break;
      default: bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1u << random() % 8); break;
    }
  }
}

bool replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open()) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  run(bytes);
  std::mt19937 random(static_cast<std::uint32_t>(bytes.size()));
  for (int copy = 0; copy < kChangedCopies; ++copy) {
    std::vector<std::uint8_t> changed = bytes;
    change(changed, random);
    run(changed);
  }
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

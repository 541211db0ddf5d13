// xpu_test_counts FILE...: prints each file of counts as one line of JSON.

#include <cstdio>
#include <memory>

#include "counting_layer/counts_file.hpp"

int main(int argc, char** argv) {
  using xpu::counting_layer::CountsFile;
  int result = 0;
  for (int i = 1; i < argc; ++i) {
    const auto counts = std::make_unique<CountsFile>();
    std::FILE* file = std::fopen(argv[i], "rbe");
    const bool complete = file != nullptr && std::fread(static_cast<void*>(counts.get()), sizeof(CountsFile), 1, file) == 1;
    if (file != nullptr) std::fclose(file);
    if (!complete || counts->magic != CountsFile::kMagic) {
      std::fprintf(stderr, "xpu_test_counts: %s is not a file of counts\n", argv[i]);
      result = 1;
      continue;
    }
    std::fputs(xpu::counting_layer::to_json(*counts).c_str(), stdout);
  }
  return result;
}

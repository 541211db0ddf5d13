// xpu_test_transparency [AREA...]
// Prints, area by area (queues, objects, events, errors, null_handles, references; all by default), what a program can see and a tracer
// might change. The output with a tracer must be the output without.

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "programs/transparency/transparency.hpp"

int main(int argc, char** argv) {
  using namespace xpu::opencl_programs;
  const std::vector<std::string_view> wanted(argv + 1, argv + argc);
  const struct {
    std::string_view name;
    void (*print)(const Setup&);
  } areas[] = {{"queues", transparency::print_queues},
               {"objects", transparency::print_objects},
               {"events", transparency::print_events},
               {"errors", transparency::print_errors},
               {"null_handles", transparency::print_null_handles},
               {"references", transparency::print_references}};
  const Setup setup;
  for (const auto& area : areas) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), area.name) == wanted.end()) continue;
    std::printf("== %.*s\n", static_cast<int>(area.name.size()), area.name.data());
    area.print(setup);
  }
  return 0;
}

#include "drivers/host/processor.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

#include "drivers/host/execution.hpp"
#include "xpu/base/version.hpp"

namespace xpu::drivers::host {
namespace {

// Of the driver's own choice: nothing of the machine limits them.
constexpr std::uint64_t kLocalMemoryBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kMostParameterBytes = 4096;
constexpr std::uint32_t kAllocationAlignment = 64;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::uint32_t whole_number(std::string_view text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string read_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t positive(long value) { return value > 0 ? static_cast<std::uint64_t>(value) : 0; }

/// FNV-1a over the parts, each with its length, from two starting points.
class UuidHash {
 public:
  void add(std::string_view part) {
    add_byte(static_cast<std::uint8_t>(part.size()));
    for (const char character : part) add_byte(static_cast<std::uint8_t>(character));
  }
  void add(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) add_byte(static_cast<std::uint8_t>(number >> shift));
  }
  Uuid uuid() const {
    Uuid result;
    for (std::size_t index = 0; index < 16; ++index) result.bytes[index] = static_cast<std::uint8_t>(halves_[index / 8] >> (index % 8 * 8));
    result.bytes[6] = static_cast<std::uint8_t>((result.bytes[6] & 0x0f) | 0x80);  // version 8: of our own making
    result.bytes[8] = static_cast<std::uint8_t>((result.bytes[8] & 0x3f) | 0x80);
    return result;
  }

 private:
  void add_byte(std::uint8_t byte) {
    for (std::uint64_t& half : halves_) half = (half ^ byte) * 0x100000001b3u;
  }
  std::uint64_t halves_[2] = {0xcbf29ce484222325u, 0x9ae16a3b2f90404fu};
};

}  // namespace

bool ProcessorFacts::has_flag(std::string_view flag) const { return std::find(flags.begin(), flags.end(), flag) != flags.end(); }

ProcessorFacts parse_processor_facts(std::string_view text) {
  ProcessorFacts facts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trimmed(line).empty()) {
      if (!facts.flags.empty()) break;  // the next processor's entry
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "vendor_id" || key == "CPU implementer") {
      facts.vendor_id = value;
    } else if (key == "model name") {
      facts.model_name = value;
    } else if (key == "cpu family") {
      facts.family = whole_number(value);
    } else if (key == "model") {
      facts.model = whole_number(value);
    } else if (key == "stepping") {
      facts.stepping = whole_number(value);
    } else if (key == "cpu MHz") {
      facts.clock_mhz = whole_number(value);
    } else if (key == "flags" || key == "Features") {
      for (std::string_view rest = value; !rest.empty();) {
        const std::size_t space = std::min(rest.find(' '), rest.size());
        facts.flags.emplace_back(rest.substr(0, space));
        rest = trimmed(rest.substr(space));
      }
    }
  }
  return facts;
}

const ProcessorFacts& processor_facts() {
  static const ProcessorFacts* const facts = [] {
    auto* read = new ProcessorFacts(parse_processor_facts(read_file("/proc/cpuinfo")));
    // The highest one does not change from moment to moment as the present one does.
    const std::uint32_t highest_khz = whole_number(read_file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"));
    if (highest_khz != 0) read->clock_mhz = highest_khz / 1000;
    return read;
  }();
  return *facts;
}

DeviceProperties device_properties(const ProcessorFacts& facts, std::string_view machine_id, const Options& options,
                                   std::uint32_t ordinal) {
  DeviceProperties properties;
  properties.name = facts.model_name.empty() ? "CPU" : facts.model_name;
  properties.platform_name = "libxpu host";
  properties.vendor = facts.vendor_id;
  properties.driver_version = version();
  properties.type = DeviceType::cpu;
  properties.device_id = facts.family << 16 | facts.model << 8 | facts.stepping;

  UuidHash hash;
  hash.add(trimmed(machine_id));
  hash.add(facts.vendor_id);
  for (const std::uint32_t number : {facts.family, facts.model, facts.stepping, ordinal}) hash.add(number);
  properties.uuid = hash.uuid();

  constexpr std::uint64_t most_items = std::uint64_t{1} << kMostGroupItemsShift;
  properties.max_compute_units = options.processors;
  properties.max_work_group_size = most_items;
  properties.max_work_item_sizes = {most_items, most_items, most_items};
  properties.max_group_count.fill(std::numeric_limits<std::uint32_t>::max());
  properties.max_work_item_dimensions = 3;
  properties.max_num_sub_groups = static_cast<std::uint32_t>(most_items);
  properties.sub_group_sizes = {1};
  properties.max_clock_frequency_mhz = facts.clock_mhz;
  properties.address_bits = 8 * sizeof(void*);
  properties.max_parameter_bytes = kMostParameterBytes;

  properties.total_memory_bytes = options.memory_bytes;
  properties.max_allocation_bytes = options.memory_bytes;
  properties.local_memory_bytes = kLocalMemoryBytes;
  properties.last_level_cache_bytes = std::max(positive(sysconf(_SC_LEVEL2_CACHE_SIZE)), positive(sysconf(_SC_LEVEL3_CACHE_SIZE)));
  properties.cache_line_bytes = static_cast<std::uint32_t>(positive(sysconf(_SC_LEVEL1_DCACHE_LINESIZE)));
  properties.memory_alignment_bytes = kAllocationAlignment;

  properties.has_fp16 = facts.has_flag("avx512_fp16") || facts.has_flag("fphp");
  properties.has_fp64 = true;
  properties.has_atomic64 = true;
  properties.has_bfloat16_conversions = facts.has_flag("avx512_bf16") || facts.has_flag("avx_ne_convert") || facts.has_flag("bf16");
  properties.has_subgroup_matrix_multiply_accumulate = false;
  properties.timer_resolution_ns = 1;
  const std::uint32_t vector_bytes = facts.has_flag("avx512f") ? 64 : facts.has_flag("avx") ? 32 : 16;
  properties.native_vector_widths = {vector_bytes,
                                     vector_bytes / 2,
                                     vector_bytes / 4,
                                     vector_bytes / 8,
                                     vector_bytes / 4,
                                     vector_bytes / 8,
                                     properties.has_fp16 ? vector_bytes / 2 : 0};
  properties.preferred_vector_widths = properties.native_vector_widths;
  return properties;
}

DeviceProperties device_properties(const Options& options, std::uint32_t ordinal) {
  return device_properties(processor_facts(), read_file("/etc/machine-id"), options, ordinal);
}

}  // namespace xpu::drivers::host

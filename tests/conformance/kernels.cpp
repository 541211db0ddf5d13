#include "tests/conformance/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/probe.hpp"
#include "xpu/hal/kernel_function.hpp"

namespace xpu::conformance {

std::atomic<std::uint32_t> g_calls_without_arguments{0};

namespace {

std::uint64_t place_in_launch(const WorkItem& item) {
  const WorkGroup& group = item.group;
  return ((item.global[2] - group.offset[2]) * group.global[1] + item.global[1] - group.offset[1]) * group.global[0] + item.global[0] -
         group.offset[0];
}

// Each item raises its own counter, so no two items touch the same one.
void conformance_count_items(const WorkItem& item, std::uint32_t* counters) { ++counters[place_in_launch(item)]; }
XPU_KERNEL(conformance_count_items, "counters");

void conformance_store_place(const WorkItem& item, ItemPlace* places) {
  ItemPlace& place = places[place_in_launch(item)];
  for (int dimension = 0; dimension < 3; ++dimension) {
    place.global[dimension] = item.global_id(dimension);
    place.local[dimension] = item.local_id(dimension);
    place.group[dimension] = item.group_id(dimension);
  }
}
XPU_KERNEL(conformance_store_place, "places");

void conformance_describe_group(const WorkGroup& group, GroupFacts* all) {
  GroupFacts& facts = all[(group.id[2] * group.count[1] + group.id[1]) * group.count[0] + group.id[0]];
  for (int dimension = 0; dimension < 3; ++dimension) {
    facts.id[dimension] = group.id[dimension];
    facts.count[dimension] = group.count[dimension];
    facts.local[dimension] = group.local[dimension];
    facts.global[dimension] = group.global[dimension];
    facts.offset[dimension] = group.offset[dimension];
    facts.first[dimension] = group.first(dimension);
    facts.items[dimension] = group.items(dimension);
  }
  facts.local_memory_address = reinterpret_cast<std::uintptr_t>(group.local_memory);
  facts.local_memory_bytes = group.local_memory_bytes;
}
XPU_KERNEL(conformance_describe_group, "all");

// The result depends on the order of two launches.
void conformance_multiply_add(const WorkItem&, std::uint64_t* value, std::uint64_t factor, std::uint64_t addend) {
  *value = *value * factor + addend;
}
XPU_KERNEL(conformance_multiply_add, "value", "factor", "addend");

void conformance_short_multiply_add(const WorkItem&, std::uint64_t* value, std::uint64_t factor, std::uint64_t addend) {
  *value = *value * factor + addend;
}
XPU_KERNEL_WITH(conformance_short_multiply_add, (xpu::KernelFacts{.short_and_independent = true}), "value", "factor", "addend");

void conformance_set(const WorkItem& item, std::uint32_t* values, std::uint32_t value) { values[item.global_id(0)] = value; }
XPU_KERNEL(conformance_set, "values", "value");

void conformance_copy_words(const WorkItem& item, const std::uint64_t* source, std::uint64_t* destination) {
  destination[item.global_id(0)] = source[item.global_id(0)];
}
XPU_KERNEL(conformance_copy_words, "source", "destination");

void conformance_add_all(const WorkItem& item, std::uint64_t* sum) {
  std::atomic_ref(*sum).fetch_add(item.global_id(0), std::memory_order_relaxed);
}
XPU_KERNEL(conformance_add_all);

void conformance_without_arguments(const WorkGroup&) { ++g_calls_without_arguments; }
XPU_KERNEL(conformance_without_arguments);

void conformance_store_every_type(const WorkItem&, EveryType* result, bool boolean, std::int8_t i8, std::uint8_t u8, std::int16_t i16,
                                  std::uint16_t u16, std::int32_t i32, std::uint32_t u32, std::int64_t i64, std::uint64_t u64, float f32,
                                  double f64, const float* pointer, ThreeBytes structure) {
  *result = {boolean, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, reinterpret_cast<std::uintptr_t>(pointer), structure};
}
XPU_KERNEL(conformance_store_every_type, "result", "boolean", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "pointer",
           "structure");

// Bytes before each structure, so that each is moved to its alignment.
void conformance_store_structures(const WorkItem&, std::uint8_t before_twelve, TwelveBytes twelve, std::uint8_t before_sixty_four,
                                  SixtyFourBytes sixty_four, std::uint8_t before_many, ManyBytes many, double* sums) {
  sums[0] = before_twelve + before_sixty_four + before_many;
  sums[1] = static_cast<double>(twelve.x + twelve.y + twelve.z);
  sums[2] = sums[3] = 0;
  for (const double value : sixty_four.values) sums[2] += value;
  for (const std::uint8_t value : many.bytes) sums[3] += value;
}
XPU_KERNEL(conformance_store_structures);

// One group at a time owns the local memory: what it wrote must still be there when all of its items have written.
void conformance_use_local_memory(const WorkGroup& group, std::uint64_t* sums) {
  auto* const values = reinterpret_cast<std::uint64_t*>(group.local_memory);
  const std::uint64_t count = group.local_memory_bytes / sizeof(std::uint64_t);
  for (std::uint64_t index = 0; index < count; ++index) values[index] = group.id[0];
  std::uint64_t sum = 0;
  for (std::uint64_t index = 0; index < count; ++index) sum += values[index];
  sums[group.id[0]] = sum;
}
XPU_KERNEL(conformance_use_local_memory, "sums");

void conformance_own_local_memory(const WorkGroup& group, std::uint64_t* bytes) { *bytes = group.local_memory_bytes; }
XPU_KERNEL_WITH(conformance_own_local_memory, (xpu::KernelFacts{.local_memory_bytes = 256}), "bytes");

void conformance_required_local(const WorkGroup& group, std::uint64_t* local) {
  std::copy(std::begin(group.local), std::end(group.local), local);
}
XPU_KERNEL_WITH(conformance_required_local, (xpu::KernelFacts{.required_local = {4, 2, 1}}), "local");

// Two of these on two queues come to an end only if they run at the same time.
void conformance_meet(const WorkItem&, std::uint32_t* mine, std::uint32_t* other) {
  std::atomic_ref(*mine).store(1, std::memory_order_release);
  while (std::atomic_ref(*other).load(std::memory_order_acquire) == 0) {
  }
}
XPU_KERNEL(conformance_meet, "mine", "other");

void conformance_store_scope(const WorkItem&, std::uint32_t* is_inside) { *is_inside = probe::inside_scope() ? 1 : 0; }
XPU_KERNEL(conformance_store_scope, "is_inside");

}  // namespace
}  // namespace xpu::conformance

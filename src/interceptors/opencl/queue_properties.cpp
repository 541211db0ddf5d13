#include "interceptors/opencl/queue_properties.hpp"

#include <algorithm>

namespace xpu::interceptors::opencl {

QueueProperties edit_queue_properties(const cl_queue_properties* list) noexcept {
  QueueProperties result;
  std::size_t pairs = 0;
  std::size_t properties_at = QueueProperties::kMaxEntries;  // where the value of CL_QUEUE_PROPERTIES stands; the maximum: nowhere
  for (; list != nullptr && list[2 * pairs] != 0; ++pairs) {
    if (2 * (pairs + 1) + 1 > QueueProperties::kMaxEntries) return result;
    if (list[2 * pairs] == CL_QUEUE_PROPERTIES) properties_at = 2 * pairs + 1;
  }

  const std::size_t entries = 2 * pairs;
  if (list != nullptr) {
    std::copy_n(list, entries + 1, result.program_list);
    result.program_entries = entries + 1;
  }
  std::copy_n(result.program_list, entries, result.edited_list);
  if (properties_at < entries) {
    result.program_properties = list[properties_at];
    result.edited_list[properties_at] |= CL_QUEUE_PROFILING_ENABLE;
    result.edited_list[entries] = 0;
  } else {
    result.edited_list[entries] = CL_QUEUE_PROPERTIES;
    result.edited_list[entries + 1] = CL_QUEUE_PROFILING_ENABLE;
    result.edited_list[entries + 2] = 0;
  }
  result.is_edited = (result.program_properties & (CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE)) == 0;
  return result;
}

}  // namespace xpu::interceptors::opencl

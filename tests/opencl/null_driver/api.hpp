#pragma once

#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "null_driver/objects.hpp"

namespace xpu::null_driver {

/// The driver's entry points under the names and with the exact types of the dispatch table: a missing one does not link.
struct Api {
#define XPU_CL_ENTRY(name) static std::remove_pointer_t<decltype(cl_icd_dispatch::name)> name;
#include "core_entries.inc"
#define XPU_CL_ENTRY(name) static std::remove_pointer_t<decltype(cl_icd_dispatch::name)> name;
#include "null_driver/extension_entries.inc"
};

/// What every object of this driver points to: the entry points above, or the same behind counters (call_counts.hpp).
extern const cl_icd_dispatch* const dispatch_table;

/// Answers an information query the way all of them are answered: size first, then the value if there is room for it.
inline cl_int answer_bytes(const void* data, std::size_t bytes, std::size_t room, void* value, std::size_t* size_ret) noexcept {
  if (size_ret != nullptr) *size_ret = bytes;
  if (value == nullptr) return CL_SUCCESS;
  if (room < bytes) return CL_INVALID_VALUE;
  if (bytes != 0) std::memcpy(value, data, bytes);
  return CL_SUCCESS;
}

/// The type is named by the caller, so that each answer has the size that the specification gives it.
template <class T>
cl_int answer(std::type_identity_t<T> data, std::size_t room, void* value, std::size_t* size_ret) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  return answer_bytes(&data, sizeof(T), room, value, size_ret);
}

/// `text` with its terminator; it must be terminated.
inline cl_int answer_text(std::string_view text, std::size_t room, void* value, std::size_t* size_ret) noexcept {
  return answer_bytes(text.data(), text.size() + 1, room, value, size_ret);
}

template <class T>
cl_int answer_list(const std::vector<T>& list, std::size_t room, void* value, std::size_t* size_ret) noexcept {
  return answer_bytes(list.data(), list.size() * sizeof(T), room, value, size_ret);
}

/// Fails a creating call.
inline std::nullptr_t refuse(cl_int* error, cl_int code) noexcept {
  if (error != nullptr) *error = code;
  return nullptr;
}
template <class T>
T* created(cl_int* error, T* object) noexcept {
  if (error != nullptr) *error = CL_SUCCESS;
  return object;
}

/// A property list as the program gave it, terminator included; empty for a null list.
template <class T>
std::vector<T> copy_properties(const T* list) {
  if (list == nullptr) return {};
  const T* end = list;
  while (*end != 0) end += 2;
  return std::vector<T>(list, end + 1);
}

}  // namespace xpu::null_driver

#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "null_driver/opencl_headers.hpp"
#include "programs/support.hpp"

/// One valid call for every core entry point.
namespace xpu::opencl_programs::entries {

/// An entry's answer when the device does not offer what it needs; errors are negative.
constexpr cl_int kUnsupported = 1;

/// Objects that calls need, each made when first asked for, so that a call for one entry point makes few others.
class Fixture {
 public:
  Fixture() = default;
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture();

  cl_platform_id platform();
  cl_device_id device();
  cl_context context();
  cl_command_queue queue();
  cl_program program();
  cl_kernel kernel();     // tiny, with its arguments
  cl_mem buffer();        // 4096 bytes
  cl_mem other_buffer();  // 4096 bytes
  cl_mem image();         // 16 x 16 of one byte per channel
  cl_sampler sampler();
  cl_event event();  // of a marker; the caller does not own it
  void* svm();       // 4096 bytes, or null

  bool has_images();
  bool has_svm();
  bool has_native_kernels();
  bool has_intermediate_language();
  bool has_timer();
  /// PoCL: its table has null pointers, or functions that end the process, for a few calls that nobody makes.
  bool driver_dies_of_rare_calls();

  /// Counts a submission that came back with `code`, and hands the code on.
  cl_int submitted(cl_int code) noexcept {
    if (code == CL_SUCCESS) ++submissions_;
    return code;
  }
  unsigned submissions() const noexcept { return submissions_; }

 private:
  std::size_t device_text_bytes(cl_device_info query);

  cl_platform_id platform_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  cl_kernel kernel_ = nullptr;
  cl_mem buffer_ = nullptr;
  cl_mem other_buffer_ = nullptr;
  cl_mem image_ = nullptr;
  cl_sampler sampler_ = nullptr;
  cl_event event_ = nullptr;
  void* svm_ = nullptr;
  unsigned submissions_ = 0;
};

struct EntryCall {
  std::string_view name;
  cl_int (*call)(Fixture& fixture);
};

std::span<const EntryCall> object_calls();
std::span<const EntryCall> query_calls();
std::span<const EntryCall> submit_calls();

/// The call for an entry point, or null.
const EntryCall* find_call(std::string_view name);

/// The names of the core entry points in the order of the dispatch table.
struct EntryName {
  std::string_view name;
  bool submits;
};
std::span<const EntryName> entry_names();

}  // namespace xpu::opencl_programs::entries

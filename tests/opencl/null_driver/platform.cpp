#include <algorithm>

#include "null_driver/api.hpp"
#include "null_driver/platforms.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::answer_bytes;
using xpu::null_driver::answer_text;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::settings;

_cl_platform_id::_cl_platform_id(std::uint32_t index_of_platform) : Object(xpu::null_driver::Kind::platform), index(index_of_platform) {
  name = settings.platform_name;
  if (index != 0) name += " " + std::to_string(index + 1);
  for (std::uint32_t i = 0; i < settings.device_count; ++i) {
    auto* device = new _cl_device_id;
    device->platform = this;
    device->index = i;
    devices.push_back(device);
  }
}

namespace xpu::null_driver {

const std::vector<cl_platform_id>& platforms() {
  static const std::vector<cl_platform_id>& all = *[] {
    auto* list = new std::vector<cl_platform_id>;
    for (std::uint32_t i = 0; i < settings.platform_count; ++i) list->push_back(new _cl_platform_id(i));
    return list;
  }();
  return all;
}

cl_int icd_platform_ids(cl_uint entries, cl_platform_id* list, cl_uint* count) {
  if ((entries == 0) != (list == nullptr) || (list == nullptr && count == nullptr)) return CL_INVALID_VALUE;
  const auto& all = platforms();
  if (list != nullptr) std::copy_n(all.begin(), std::min<std::size_t>(entries, all.size()), list);
  if (count != nullptr) *count = static_cast<cl_uint>(all.size());
  return CL_SUCCESS;
}

}  // namespace xpu::null_driver

cl_int Api::clGetPlatformIDs(cl_uint entries, cl_platform_id* list, cl_uint* count) {
  return xpu::null_driver::icd_platform_ids(entries, list, count);
}

cl_int Api::clGetPlatformInfo(cl_platform_id platform, cl_platform_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(platform)) return CL_INVALID_PLATFORM;
  switch (query) {
    case CL_PLATFORM_PROFILE: return answer_text("FULL_PROFILE", room, value, size_ret);
    case CL_PLATFORM_VERSION: return answer_text("OpenCL 3.0 xpu-null", room, value, size_ret);
    case CL_PLATFORM_NAME: return answer_text(platform->name, room, value, size_ret);
    case CL_PLATFORM_VENDOR: return answer_text("libxpu tests", room, value, size_ret);
    case CL_PLATFORM_EXTENSIONS: return answer_text("cl_khr_icd", room, value, size_ret);
    case CL_PLATFORM_ICD_SUFFIX_KHR: return answer_text("XPU", room, value, size_ret);
    case CL_PLATFORM_HOST_TIMER_RESOLUTION: return answer<cl_ulong>(settings.faults.no_timer ? 0 : 1, room, value, size_ret);
    case CL_PLATFORM_NUMERIC_VERSION: return answer<cl_version>(CL_MAKE_VERSION(3, 0, 0), room, value, size_ret);
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION: {
      const cl_name_version icd{CL_MAKE_VERSION(1, 0, 0), "cl_khr_icd"};
      return answer<cl_name_version>(icd, room, value, size_ret);
    }
    default: return CL_INVALID_VALUE;
  }
}

cl_int Api::clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint entries, cl_device_id* list, cl_uint* count) {
  if (!is_valid(platform)) return CL_INVALID_PLATFORM;
  constexpr cl_device_type kKnown =
      CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;
  if (type == 0 || (type != CL_DEVICE_TYPE_ALL && (type & ~kKnown) != 0)) return CL_INVALID_DEVICE_TYPE;
  if ((entries == 0) != (list == nullptr) || (list == nullptr && count == nullptr)) return CL_INVALID_VALUE;
  const bool only_default = (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)) == CL_DEVICE_TYPE_DEFAULT;
  const bool any = (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)) != 0;
  if (!any) {
    if (count != nullptr) *count = 0;
    return CL_DEVICE_NOT_FOUND;
  }
  const std::size_t found = only_default ? 1 : platform->devices.size();
  if (list != nullptr) std::copy_n(platform->devices.begin(), std::min<std::size_t>(entries, found), list);
  if (count != nullptr) *count = static_cast<cl_uint>(found);
  return CL_SUCCESS;
}

cl_int Api::clUnloadPlatformCompiler(cl_platform_id platform) { return is_valid(platform) ? CL_SUCCESS : CL_INVALID_PLATFORM; }

cl_int Api::clUnloadCompiler() { return CL_SUCCESS; }

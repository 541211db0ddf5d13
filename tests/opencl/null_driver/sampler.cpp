#include "null_driver/api.hpp"

using xpu::null_driver::answer;
using xpu::null_driver::Api;
using xpu::null_driver::is_valid;
using xpu::null_driver::refuse;

namespace xpu::null_driver {
namespace {

cl_sampler create_sampler(cl_context context, cl_bool normalized, cl_addressing_mode addressing, cl_filter_mode filter, cl_int* error) {
  if (!is_valid(context)) return refuse(error, CL_INVALID_CONTEXT);
  if (addressing < CL_ADDRESS_NONE || addressing > CL_ADDRESS_MIRRORED_REPEAT) return refuse(error, CL_INVALID_VALUE);
  if (filter != CL_FILTER_NEAREST && filter != CL_FILTER_LINEAR) return refuse(error, CL_INVALID_VALUE);
  auto* sampler = new _cl_sampler;
  sampler->context = keep(context);
  sampler->normalized = normalized;
  sampler->addressing = addressing;
  sampler->filter = filter;
  return created(error, sampler);
}

}  // namespace

void destroy(cl_sampler sampler) {
  let_go(sampler->context);
  delete sampler;
}

}  // namespace xpu::null_driver

cl_sampler Api::clCreateSampler(cl_context context, cl_bool normalized, cl_addressing_mode addressing, cl_filter_mode filter,
                                cl_int* error) {
  return xpu::null_driver::create_sampler(context, normalized, addressing, filter, error);
}

cl_sampler Api::clCreateSamplerWithProperties(cl_context context, const cl_sampler_properties* properties, cl_int* error) {
  cl_bool normalized = CL_TRUE;
  cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
  cl_filter_mode filter = CL_FILTER_NEAREST;
  for (const auto* next = properties; next != nullptr && next[0] != 0; next += 2) {
    switch (next[0]) {
      case CL_SAMPLER_NORMALIZED_COORDS: normalized = static_cast<cl_bool>(next[1]); break;
      case CL_SAMPLER_ADDRESSING_MODE: addressing = static_cast<cl_addressing_mode>(next[1]); break;
      case CL_SAMPLER_FILTER_MODE: filter = static_cast<cl_filter_mode>(next[1]); break;
      default: return refuse(error, CL_INVALID_VALUE);
    }
  }
  cl_sampler sampler = xpu::null_driver::create_sampler(context, normalized, addressing, filter, error);
  if (sampler != nullptr) sampler->properties = xpu::null_driver::copy_properties(properties);
  return sampler;
}

cl_int Api::clRetainSampler(cl_sampler sampler) {
  if (!is_valid(sampler)) return CL_INVALID_SAMPLER;
  xpu::null_driver::retain(sampler);
  return CL_SUCCESS;
}

cl_int Api::clReleaseSampler(cl_sampler sampler) {
  if (!is_valid(sampler)) return CL_INVALID_SAMPLER;
  xpu::null_driver::release(sampler);
  return CL_SUCCESS;
}

cl_int Api::clGetSamplerInfo(cl_sampler sampler, cl_sampler_info query, std::size_t room, void* value, std::size_t* size_ret) {
  if (!is_valid(sampler)) return CL_INVALID_SAMPLER;
  switch (query) {
    case CL_SAMPLER_REFERENCE_COUNT: return answer<cl_uint>(sampler->reference_count(), room, value, size_ret);
    case CL_SAMPLER_CONTEXT: return answer<cl_context>(sampler->context, room, value, size_ret);
    case CL_SAMPLER_NORMALIZED_COORDS: return answer<cl_bool>(sampler->normalized, room, value, size_ret);
    case CL_SAMPLER_ADDRESSING_MODE: return answer<cl_addressing_mode>(sampler->addressing, room, value, size_ret);
    case CL_SAMPLER_FILTER_MODE: return answer<cl_filter_mode>(sampler->filter, room, value, size_ret);
    case CL_SAMPLER_PROPERTIES: return xpu::null_driver::answer_list(sampler->properties, room, value, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

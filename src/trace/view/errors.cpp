#include "xpu/trace/view/errors.hpp"

#include <fmt/format.h>

namespace xpu::trace::view {
namespace {

struct Meaning {
  ResultCode code;
  ErrorCode error;
  const char* sentence;  // behind what was called
};

/// The one place where the two sets of codes meet. The numbers of metrics, scopes and sampling are there for whoever maps them, and are
/// not answered yet.
constexpr Meaning kMeanings[] = {
    {ResultCode::not_implemented, ErrorCode::unsupported, "is not implemented"},
    {ResultCode::bad_argument, ErrorCode::invalid_argument, "has an argument that is not allowed"},
    {ResultCode::no_callbacks_set, ErrorCode::failed_precondition, "needs callbacks for buffers, which must be set first"},
    {ResultCode::external_id_queue_empty, ErrorCode::failed_precondition, "found no external id that was pushed on this thread"},
    {ResultCode::bad_timestamp, ErrorCode::invalid_argument, "got a clock that stands at 0 or goes back"},
    {ResultCode::bad_api_id, ErrorCode::not_found, "names a function that has no such id"},
    {ResultCode::no_gpu_views_enabled, ErrorCode::failed_precondition, "needs a view of device work to be enabled first"},
    {ResultCode::driver, ErrorCode::internal, "failed in the driver"},
    {ResultCode::tracing_not_initialized, ErrorCode::unavailable, "found that this process cannot be traced"},
    {ResultCode::local_profiling_not_supported, ErrorCode::unsupported, "asks for local profiling, which the driver does not have"},
    {ResultCode::metrics_collection_not_enabled, ErrorCode::failed_precondition, "needs a collection of metrics to be under way"},
    {ResultCode::metrics_collection_not_disabled, ErrorCode::failed_precondition, "needs the collection of metrics to be ended first"},
    {ResultCode::metrics_collection_not_paused, ErrorCode::failed_precondition, "needs the collection of metrics to be paused"},
    {ResultCode::metrics_collection_already_paused, ErrorCode::failed_precondition, "found the collection of metrics paused already"},
    {ResultCode::metrics_collection_already_enabled, ErrorCode::failed_precondition, "found a collection of metrics under way already"},
    {ResultCode::metrics_bad_collection_configuration, ErrorCode::invalid_argument, "got a configuration of metrics that is not allowed"},
    {ResultCode::metrics_no_data_collected, ErrorCode::not_found, "found no metrics"},
    {ResultCode::scope_metric_not_found, ErrorCode::not_found, "names a metric that the device does not have"},
    {ResultCode::scope_not_a_single_group, ErrorCode::invalid_argument,
     "names metrics of several groups, which cannot be collected together"},
    {ResultCode::scope_out_of_memory, ErrorCode::out_of_host_memory, "found no memory for metrics"},
    {ResultCode::scope_collection_buffer_too_small, ErrorCode::invalid_argument, "got a buffer of metrics that is too small"},
    {ResultCode::scope_insufficient_buffer, ErrorCode::invalid_argument, "got a buffer that the values do not fit into"},
    {ResultCode::scope_invalid_collection_buffer, ErrorCode::invalid_argument, "got something that is no buffer of metrics"},
    {ResultCode::scope_partial_buffer, ErrorCode::unavailable, "got a buffer that is only partly filled"},
    {ResultCode::scope_buffer_not_finalized, ErrorCode::unavailable, "got a buffer that is still being filled"},
    {ResultCode::scope_device_type_not_uniform, ErrorCode::invalid_argument, "names devices of several types"},
    {ResultCode::internal, ErrorCode::internal, "failed"},
    {ResultCode::sampling_already_enabled, ErrorCode::failed_precondition, "found sampling enabled already"},
    {ResultCode::sampling_not_configured, ErrorCode::failed_precondition, "needs sampling to be configured first"},
    {ResultCode::sampling_already_configured, ErrorCode::failed_precondition, "found sampling configured already"},
    {ResultCode::sampling_already_started, ErrorCode::failed_precondition, "found sampling started already"},
    {ResultCode::sampling_not_started, ErrorCode::failed_precondition, "needs sampling to be started first"},
    {ResultCode::sampling_already_stopped, ErrorCode::failed_precondition, "found sampling stopped already"},
    {ResultCode::sampling_not_stopped, ErrorCode::failed_precondition, "needs sampling to be stopped first"},
    {ResultCode::sampling_unsupported, ErrorCode::unsupported, "asks for sampling, which the device does not have"},
};

}  // namespace

Error to_error(ResultCode code, std::string_view what) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code != code) continue;
    return Error{meaning.error, fmt::format("{} {} ({})", what, meaning.sentence, to_string(code)), static_cast<std::int64_t>(code)};
  }
  return Error{ErrorCode::internal, fmt::format("{} answered {}, which is no error", what, to_string(code)),
               static_cast<std::int64_t>(code)};
}

ResultCode to_result_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return ResultCode::bad_argument;
    case ErrorCode::unsupported: return ResultCode::not_implemented;
    case ErrorCode::failed_precondition:
    case ErrorCode::unavailable: return ResultCode::tracing_not_initialized;
    case ErrorCode::device_lost: return ResultCode::driver;
    case ErrorCode::not_found:
    case ErrorCode::out_of_host_memory:
    case ErrorCode::out_of_device_memory:
    case ErrorCode::timeout:
    case ErrorCode::internal: break;
  }
  return ResultCode::internal;
}

}  // namespace xpu::trace::view

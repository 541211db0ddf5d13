#pragma once

#include <tuple>
#include <type_traits>

#include "interceptors/opencl/command.hpp"
#include "interceptors/opencl/layer_state.hpp"
#include "interceptors/opencl/wrappers.hpp"

namespace xpu::interceptors::opencl {

/// A wrapper for any entry that is a plain call: publishes its entry, its return and its code. The code is what it returns, or what it
/// writes to a trailing `cl_int* errcode_ret`, which it always gets a place for.
template <auto member, Entry entry, typename Function = std::remove_reference_t<decltype(cl_icd_dispatch{}.*member)>>
struct GenericCall;

template <auto member, Entry entry, typename Result, typename... Arguments>
struct GenericCall<member, entry, Result(CL_API_CALL*)(Arguments...)> {
  static Result CL_API_CALL function(Arguments... arguments) {
    Call call(entry);
    if constexpr (std::is_void_v<Result>) {
      (target().*member)(arguments...);
      call.finish(CL_SUCCESS);
    } else if constexpr (std::is_same_v<Result, cl_int>) {
      return call.finish((target().*member)(arguments...));
    } else if constexpr (has_error_argument()) {
      cl_int error = CL_SUCCESS;
      std::tuple<Arguments...> all(arguments...);
      cl_int*& place = std::get<sizeof...(Arguments) - 1>(all);
      cl_int* const program_place = place;
      place = &error;
      const Result result = std::apply(target().*member, all);
      if (program_place != nullptr) *program_place = error;
      return call.finish(result, error);
    } else {
      return call.finish((target().*member)(arguments...), CL_SUCCESS);
    }
  }

 private:
  static constexpr bool has_error_argument() {
    if constexpr (sizeof...(Arguments) == 0) {
      return false;
    } else {
      return std::is_same_v<std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>, cl_int*>;
    }
  }
};

}  // namespace xpu::interceptors::opencl

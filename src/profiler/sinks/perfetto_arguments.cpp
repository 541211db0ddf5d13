#include "profiler/sinks/perfetto_arguments.hpp"

#include <string>
#include <type_traits>
#include <variant>

#include "profiler/sinks/perfetto_fields.hpp"
#include "profiler/sinks/perfetto_rows.hpp"

namespace xpu::profiler {
namespace {

namespace annotation_fields = perfetto::annotation;

template <typename Value>
void write_argument_value(ProtoWriter& out, const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    out.number(annotation_fields::kBool, value ? 1 : 0);
  } else if constexpr (std::is_same_v<Value, double>) {
    out.real(annotation_fields::kDouble, value);
  } else if constexpr (std::is_integral_v<Value>) {
    out.number(std::is_signed_v<Value> ? annotation_fields::kSigned : annotation_fields::kUnsigned, value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    out.text(annotation_fields::kString, valid_utf8(value));
  } else {
    for (const auto& item : value) out.message(annotation_fields::kList, [&] { write_argument_value(out, item); });
  }
}

}  // namespace

void write_argument(ProtoWriter& out, const CpuArgument& argument) {
  out.message(perfetto::track_event::kAnnotation, [&] {
    out.text(annotation_fields::kName, valid_utf8(argument.key));
    std::visit([&](const auto& value) { write_argument_value(out, value); }, argument.value);
  });
}

}  // namespace xpu::profiler

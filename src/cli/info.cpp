#include "cli/info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/text.hpp"
#include "xpu/base/version.hpp"
#include "xpu/hal/module.hpp"

namespace xpu::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLabelColumns = 11;

/// Null for what a driver does not tell.
Json known(std::uint64_t number) { return number == 0 ? Json(nullptr) : Json(number); }
Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json pci_json(const PciAddress& pci) {
  if (pci == PciAddress{}) return nullptr;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.device, pci.function);
}

Json widths_json(const std::array<std::uint32_t, 7>& widths) {
  constexpr std::array kTypes{"char", "short", "int", "long", "float", "double", "half"};
  Json json = Json::object();
  for (std::size_t i = 0; i < widths.size(); ++i) json[kTypes[i]] = widths[i];
  return json;
}

Json properties_json(const DeviceProperties& properties) {
  return {
      {"name", properties.name},
      {"platform_name", known(properties.platform_name)},
      {"vendor", known(properties.vendor)},
      {"driver_version", known(properties.driver_version)},
      {"version", known(properties.version)},
      {"type", to_string(properties.type)},
      {"uuid", to_string(properties.uuid)},
      {"pci", pci_json(properties.pci)},
      {"device_id", known(properties.device_id)},
      {"architecture", known(properties.architecture)},
      {"max_compute_units", known(properties.max_compute_units)},
      {"gpu_eu_count", known(properties.gpu_eu_count)},
      {"gpu_eu_count_per_subslice", known(properties.gpu_eu_count_per_subslice)},
      {"gpu_eu_simd_width", known(properties.gpu_eu_simd_width)},
      {"gpu_hw_threads_per_eu", known(properties.gpu_hw_threads_per_eu)},
      {"gpu_subslice_count", known(properties.gpu_subslice_count)},
      {"max_work_group_size", known(properties.max_work_group_size)},
      {"max_work_item_sizes", properties.max_work_item_sizes},
      {"max_group_count", properties.max_group_count},
      {"max_work_item_dimensions", known(properties.max_work_item_dimensions)},
      {"max_num_sub_groups", known(properties.max_num_sub_groups)},
      {"sub_group_sizes", properties.sub_group_sizes},
      {"max_clock_frequency_mhz", known(properties.max_clock_frequency_mhz)},
      {"memory_clock_rate_mhz", known(properties.memory_clock_rate_mhz)},
      {"memory_bus_width_bits", known(properties.memory_bus_width_bits)},
      {"address_bits", known(properties.address_bits)},
      {"max_parameter_bytes", known(properties.max_parameter_bytes)},
      {"total_memory_bytes", known(properties.total_memory_bytes)},
      {"max_allocation_bytes", known(properties.max_allocation_bytes)},
      {"local_memory_bytes", known(properties.local_memory_bytes)},
      {"last_level_cache_bytes", known(properties.last_level_cache_bytes)},
      {"cache_line_bytes", known(properties.cache_line_bytes)},
      {"memory_alignment_bytes", known(properties.memory_alignment_bytes)},
      {"has_fp16", properties.has_fp16},
      {"has_fp64", properties.has_fp64},
      {"has_atomic64", properties.has_atomic64},
      {"has_bfloat16_conversions", properties.has_bfloat16_conversions},
      {"has_subgroup_matrix_multiply_accumulate", properties.has_subgroup_matrix_multiply_accumulate},
      {"has_subgroup_matrix_multiply_accumulate_tensor_float32", properties.has_subgroup_matrix_multiply_accumulate_tensor_float32},
      {"has_subgroup_2d_block_io", properties.has_subgroup_2d_block_io},
      {"is_integrated_gpu", properties.is_integrated_gpu},
      {"max_sub_devices", known(properties.max_sub_devices)},
      {"timer_resolution_ns", known(properties.timer_resolution_ns)},
      {"native_vector_widths", widths_json(properties.native_vector_widths)},
      {"preferred_vector_widths", widths_json(properties.preferred_vector_widths)},
  };
}

Json capabilities_json(const hal::Capabilities& capabilities) {
  Json formats = Json::array();
  for (std::uint32_t rest = capabilities.module_formats; rest != 0; rest &= rest - 1) {
    formats.push_back(to_string(static_cast<hal::ModuleFormat>(std::countr_zero(rest))));
  }
  return {
      {"module_formats", std::move(formats)},
      {"priority_levels", capabilities.priority_levels},
      {"virtual_memory", capabilities.virtual_memory},
      {"host_memory_access", capabilities.host_memory_access},
      {"timed_events", capabilities.timed_events},
      {"timed_operations", capabilities.timed_operations},
      {"blocking_events", capabilities.blocking_events},
      {"native_queues", capabilities.native_queues},
      {"concurrent_operations", capabilities.concurrent_operations},
  };
}

Json memory_json(const MemoryInfo& memory) {
  return {{"free_bytes", memory.free_bytes}, {"total_bytes", memory.total_bytes}, {"is_measured", memory.is_measured}};
}

Json clock_json(const hal::ClockInfo& clock) {
  return {
      {"tick_ns", {{"numerator", clock.tick_numerator}, {"denominator", clock.tick_denominator}}},
      {"valid_bits", clock.valid_bits},
      {"host_domain", to_string(clock.host_domain)},
      {"same_as", clock.same_as == ClockDomain::unknown ? Json(nullptr) : Json(to_string(clock.same_as))},
  };
}

Json device_json(const Inventory& inventory, const DriverReport& driver, const DeviceReport& device) {
  Json json = {
      {"index", device.index < 0 ? Json(nullptr) : Json(device.index)},
      {"driver", driver.name},
      {"reason", known(device.reason)},
      {"properties", properties_json(device.properties)},
      {"error", nullptr},
      {"memory", nullptr},
      {"clock", nullptr},
      {"capabilities", nullptr},
  };
  const auto opened = inventory.opened.find(device.index);
  if (opened == inventory.opened.end()) return json;
  if (!opened->second.error.empty()) {
    json["error"] = opened->second.error;
    return json;
  }
  if (opened->second.memory) json["memory"] = memory_json(*opened->second.memory);
  json["clock"] = clock_json(opened->second.clock);
  json["capabilities"] = capabilities_json(opened->second.capabilities);
  return json;
}

/// Calls `visit(driver, device)` for the device of this index, or for all when it is negative: visible ones in their order, then hidden
/// ones.
template <typename Visit>
void for_each_device(const RuntimeReport& report, int index, Visit&& visit) {
  std::vector<std::pair<const DriverReport*, const DeviceReport*>> devices;
  for (const DriverReport& driver : report.drivers) {
    for (const DeviceReport& device : driver.devices) {
      if (index < 0 || device.index == index) devices.emplace_back(&driver, &device);
    }
  }
  // -1, of the hidden ones, is the largest number without a sign.
  std::stable_sort(devices.begin(), devices.end(), [](const auto& one, const auto& other) {
    return static_cast<unsigned>(one.second->index) < static_cast<unsigned>(other.second->index);
  });
  for (const auto& [driver, device] : devices) visit(*driver, *device);
}

/// Columns on a terminal: one per code point.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

/// At most `columns` of it, at least one.
std::string shortened(std::string text, std::size_t columns) {
  if (columns_of(text) <= columns) return text;
  while (!text.empty() && columns_of(text) > columns - 1) {
    while ((text.back() & 0xc0) == 0x80) text.pop_back();
    text.pop_back();
  }
  return text + "…";
}

std::string label_of(const DeviceReport& device) { return device.index < 0 ? "hidden" : fmt::format("device {}", device.index); }

/// A line of a list: a label, then parts, the same of each line below one another.
struct Line {
  std::string label;
  std::vector<std::string> parts;
};

void append_lines(std::string& text, const std::vector<Line>& lines, std::size_t columns) {
  std::vector<std::size_t> widths;
  for (const Line& line : lines) {
    widths.resize(std::max(widths.size(), line.parts.size()));
    for (std::size_t i = 0; i < line.parts.size(); ++i) widths[i] = std::max(widths[i], columns_of(line.parts[i]));
  }
  std::size_t whole_line = kLabelColumns;
  for (const std::size_t width : widths) whole_line += width + 2;
  const bool fits = columns == 0 || whole_line - 2 <= columns;

  for (const Line& line : lines) {
    std::string row = fmt::format("{:<{}}", line.label, kLabelColumns);
    std::size_t used = kLabelColumns;
    for (std::size_t i = 0; i < line.parts.size(); ++i) {
      const std::string part = fits ? line.parts[i] : shortened(line.parts[i], std::max(columns, kLabelColumns + 20) - kLabelColumns);
      const std::size_t width = columns_of(part);
      const bool is_first = i == 0;
      if (!fits && !is_first && used + 2 + width > columns) {
        text += row + '\n';
        row.assign(kLabelColumns, ' ');
        used = kLabelColumns;
      } else if (!is_first) {
        row += "  ";
        used += 2;
      }
      row += part;
      used += width;
      if (fits && i + 1 < line.parts.size()) row.append(widths[i] - width, ' ');
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
}

void append_drivers(std::string& text, const RuntimeReport& report, std::size_t columns) {
  std::vector<Line> lines;
  for (const DriverReport& driver : report.drivers) {
    std::string state = driver.reason.empty() ? counted(driver.devices.size(), "device") : printable(driver.reason);
    lines.push_back({"driver", {driver.name, std::move(state)}});
  }
  append_lines(text, lines, columns);
}

/// A value of the document on one line: "yes", "64", "4.0 KiB (4,096)", "1048576, 1, 1", "int 8, float 8".
std::string value_text(const std::string& key, const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_number()) {
    const auto number = value.get<std::uint64_t>();
    if (key == "device_id" || key == "architecture") return fmt::format("{:#x}", number);
    if (!key.ends_with("_bytes") || number < 1024) return fmt::format("{}", number);
    return fmt::format("{} ({})", bytes_text(number), with_thousands(number));
  }
  std::string text;
  for (const auto& [name, part] : value.items()) {
    text += (text.empty() ? "" : ", ") + (value.is_object() ? name + ' ' : "") + value_text("", part);
  }
  return text.empty() ? "none" : text;
}

/// Under each other, what is not known left out.
void append_values(std::string& text, const Json& values) {
  std::size_t widest = 0;
  for (const auto& [key, value] : values.items()) widest = std::max(widest, value.is_null() ? 0 : key.size());
  for (const auto& [key, value] : values.items()) {
    if (!value.is_null()) text += fmt::format("    {:<{}}  {}\n", key, widest, value_text(key, value));
  }
}

void append_properties(std::string& text, const Inventory& inventory, const DriverReport& driver, const DeviceReport& device) {
  const Json json = device_json(inventory, driver, device);
  text += fmt::format("{:<{}}{}\n", label_of(device), kLabelColumns, printable(device.properties.name));
  text += fmt::format("  driver    {}\n", driver.name);
  for (const char* key : {"reason", "error"}) {
    if (!json[key].is_null()) text += fmt::format("  {:<8}  {}\n", key, value_text(key, json[key]));
  }
  for (const char* group : {"properties", "memory", "clock", "capabilities"}) {
    if (json[group].is_null()) continue;
    text += fmt::format("  {}\n", group);
    append_values(text, json[group]);
  }
}

std::size_t column_count(int columns) { return columns > 0 ? static_cast<std::size_t>(columns) : 0; }

OpenedDevice open_device(int index) {
  OpenedDevice opened;
  const auto fail = [&](const Error& error) {
    opened.error = error.message;
    return opened;
  };
  const auto device = Device::get(index);
  if (!device) return fail(device.error());
  const auto native = device->native();
  if (!native) return fail(native.error());
  opened.capabilities = (*native)->capabilities();
  opened.clock = (*native)->clock();
  if (const auto memory = device->memory_info()) {
    opened.memory = *memory;
  } else if (memory.error().code != ErrorCode::unsupported) {
    return fail(memory.error());
  }
  return opened;
}

int fail(const Error& error) {
  say("{}", error.message);
  return error.code == ErrorCode::invalid_argument ? kUsage : kFailed;
}

}  // namespace

std::string info_text(const Inventory& inventory, int columns) {
  std::string text;
  append_drivers(text, inventory.report, column_count(columns));
  std::vector<Line> lines;
  for_each_device(inventory.report, -1, [&](const DriverReport& driver, const DeviceReport& device) {
    const DeviceProperties& properties = device.properties;
    Line line{label_of(device),
              {printable(properties.name), driver.name, to_string(properties.type), counted(properties.max_compute_units, "compute unit"),
               bytes_text(properties.total_memory_bytes), to_string(properties.uuid)}};
    if (!device.reason.empty()) line.parts.push_back(printable(device.reason));
    lines.push_back(std::move(line));
  });
  append_lines(text, lines, column_count(columns));
  return text;
}

std::string properties_text(const Inventory& inventory, int columns, int device) {
  std::string text;
  if (device < 0) append_drivers(text, inventory.report, column_count(columns));
  for_each_device(inventory.report, device, [&](const DriverReport& driver, const DeviceReport& found) {
    if (!text.empty()) text += '\n';
    append_properties(text, inventory, driver, found);
  });
  return text;
}

std::string info_json(const Inventory& inventory, int device) {
  const RuntimeReport& report = inventory.report;
  Json drivers = Json::array();
  for (const DriverReport& driver : report.drivers)
    drivers.push_back({{"name", driver.name}, {"is_selected", driver.is_selected}, {"reason", known(driver.reason)}});
  Json devices = Json::array();
  for_each_device(report, device,
                  [&](const DriverReport& driver, const DeviceReport& found) { devices.push_back(device_json(inventory, driver, found)); });
  const Json document = {{"schema", "xpu.info/1"},
                         {"version", version()},
                         {"error", known(report.error)},
                         {"drivers", std::move(drivers)},
                         {"devices", std::move(devices)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int info(const InfoRequest& request) {
  Inventory inventory{describe_runtime(), {}};
  const RuntimeReport& report = inventory.report;
  int exit_code = kOk;
  if (!report.error.empty()) {
    say("{}", report.error);
    exit_code = kFailed;
  } else if (request.device) {
    if (const auto device = Device::get(*request.device); !device) return fail(device.error());
  }
  const int only = request.device.value_or(-1);
  if (request.open_devices) {
    for_each_device(report, only, [&](const DriverReport&, const DeviceReport& device) {
      if (device.index < 0) return;
      OpenedDevice opened = open_device(device.index);
      if (!opened.error.empty()) {
        say("device {} cannot be opened: {}", device.index, opened.error);
        exit_code = kFailed;
      }
      inventory.opened.emplace(device.index, std::move(opened));
    });
  }

  std::string text;
  if (request.format == Format::json) {
    text = info_json(inventory, only);
  } else if (request.device || request.open_devices) {
    text = properties_text(inventory, terminal_columns(), only);
  } else {
    text = info_text(inventory, terminal_columns());
  }
  const auto printed = print(text);
  return printed ? exit_code : fail(printed.error());
}

}  // namespace xpu::cli

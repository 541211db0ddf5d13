#include "hal/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace xpu::hal {
namespace {

constexpr std::string_view kDefaultDrivers = "host";
// In front of the first dash of a UUID. A number that long is no ordinal.
constexpr std::size_t kFirstUuidDigits = 8;

std::string_view without_spaces(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> entries;
  if (without_spaces(list).empty()) return entries;
  while (true) {
    const std::size_t comma = list.find(',');
    entries.push_back(without_spaces(list.substr(0, comma)));
    if (comma == std::string_view::npos) return entries;
    list.remove_prefix(comma + 1);
  }
}

Error invalid(std::string message) { return Error{ErrorCode::invalid_argument, std::move(message)}; }

std::string driver_names() {
  std::string names;
  for (const DriverEntry& entry : built_in_drivers()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names.empty() ? "none" : names;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// In small letters; empty when it cannot be a part of a UUID.
std::string uuid_part(std::string_view text) {
  std::string part;
  for (const char c : text) {
    const char small = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!is_digit(small) && !(small >= 'a' && small <= 'f') && small != '-') return {};
    part += small;
  }
  return part;
}

/// With and without its dashes.
bool uuid_begins_with(const Uuid& uuid, std::string_view part) {
  std::string text = to_string(uuid);
  if (text.starts_with(part)) return true;
  std::erase(text, '-');
  return text.starts_with(part);
}

std::string allowed_devices(std::size_t count) {
  if (count == 0) return "there is no device";
  return fmt::format("an entry is an ordinal in [0, {}) or the first digits of a UUID", count);
}

Result<std::uint32_t> device_of_ordinal(std::string_view entry, std::size_t count) {
  std::uint32_t ordinal = 0;
  const auto [end, code] = std::from_chars(entry.data(), entry.data() + entry.size(), ordinal);
  if (code != std::errc() || end != entry.data() + entry.size() || ordinal >= count) {
    return invalid(fmt::format("device {} is out of range: {}", entry, allowed_devices(count)));
  }
  return ordinal;
}

Result<std::uint32_t> device_of_uuid(std::string_view entry, const std::vector<DeviceProperties>& devices) {
  const std::string part = uuid_part(entry);
  if (part.empty()) {
    return invalid(fmt::format("'{}' is no device: {}", entry, allowed_devices(devices.size())));
  }
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    if (uuid_begins_with(devices[i].uuid, part)) found.push_back(i);
  }
  if (found.empty()) {
    return invalid(fmt::format("no device has the UUID '{}': {}", entry, allowed_devices(devices.size())));
  }
  if (found.size() > 1) {
    return invalid(fmt::format("the UUIDs of devices {} begin with '{}': write more of its digits", fmt::join(found, " and "), entry));
  }
  return found.front();
}

}  // namespace

Result<std::vector<const DriverEntry*>> select_drivers(std::string_view list) {
  const std::vector<std::string_view> entries = entries_of(list.empty() || without_spaces(list).empty() ? kDefaultDrivers : list);
  std::vector<const DriverEntry*> selected;
  for (const std::string_view name : entries) {
    if (name.empty()) {
      return invalid(fmt::format("there is an empty entry in '{}': it is a comma list of {}", list, driver_names()));
    }
    const std::span<const DriverEntry> drivers = built_in_drivers();
    const auto found = std::find_if(drivers.begin(), drivers.end(), [&](const DriverEntry& entry) { return entry.name == name; });
    if (found == drivers.end()) {
      return invalid(fmt::format("'{}' is no driver of this library: there are {}", name, driver_names()));
    }
    if (std::find(selected.begin(), selected.end(), &*found) != selected.end()) {
      return invalid(fmt::format("'{}' comes twice in '{}': each driver may come once", name, list));
    }
    selected.push_back(&*found);
  }
  return selected;
}

Result<std::vector<std::uint32_t>> select_devices(std::string_view list, const std::vector<DeviceProperties>& devices) {
  std::vector<std::uint32_t> selected;
  for (const std::string_view entry : entries_of(list)) {
    if (entry.empty()) {
      return invalid(fmt::format("there is an empty entry in '{}': {}", list, allowed_devices(devices.size())));
    }
    const bool is_ordinal = entry.size() < kFirstUuidDigits && std::all_of(entry.begin(), entry.end(), is_digit);
    XPU_TRY_ASSIGN(const std::uint32_t device, is_ordinal ? device_of_ordinal(entry, devices.size()) : device_of_uuid(entry, devices));
    if (std::find(selected.begin(), selected.end(), device) != selected.end()) {
      return invalid(fmt::format("device {} comes twice, the second time as '{}' in '{}': each may come once", device, entry, list));
    }
    selected.push_back(device);
  }
  return selected;
}

}  // namespace xpu::hal

#include "profiler/sinks/output_registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "xpu/base/text.hpp"

namespace xpu::profiler {
namespace {

constexpr std::string_view kSeparator = "://";
constexpr std::string_view kFileScheme = "file";

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_scheme(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

/// What stands before "://", unless that is part of a name further down a path.
std::string_view before_separator(std::string_view path) {
  const std::size_t end = path.find(kSeparator);
  return end == std::string_view::npos || end == 0 ? std::string_view() : path.substr(0, path.find('/') < end ? 0 : end);
}

class OutputRegistry {
 public:
  /// Lives for ever: a profiler may write its last trace while the process ends.
  static OutputRegistry& instance() {
    static auto& registry = *new OutputRegistry;
    return registry;
  }

  /// True when there was one already.
  bool put(const std::string& scheme, OutputFactory factory) {
    auto shared = std::make_shared<const OutputFactory>(std::move(factory));  // dropped behind the lock: it may be a user's last reference
    const base::MutexLock lock(mutex_);
    shared.swap(factories_[scheme]);
    return shared != nullptr;
  }
  bool remove(const std::string& scheme) {
    std::shared_ptr<const OutputFactory> dropped;
    const base::MutexLock lock(mutex_);
    const auto found = factories_.find(scheme);
    if (found == factories_.end()) return false;
    dropped = std::move(found->second);
    factories_.erase(found);
    return true;
  }
  std::shared_ptr<const OutputFactory> find(const std::string& scheme) {
    const base::MutexLock lock(mutex_);
    const auto found = factories_.find(scheme);
    return found == factories_.end() ? nullptr : found->second;
  }
  Error unknown(std::string_view scheme) {
    std::string known(kFileScheme);
    {
      const base::MutexLock lock(mutex_);
      for (const auto& [name, factory] : factories_) known += ", " + name;
    }
    return {ErrorCode::invalid_argument, fmt::format("nobody takes traces for '{}://'; there are {}", printable(scheme), known)};
  }

 private:
  base::Mutex mutex_;
  std::map<std::string, std::shared_ptr<const OutputFactory>> factories_ XPU_GUARDED_BY(mutex_);
};

}  // namespace

Result<> register_output(std::string_view scheme, OutputFactory factory) {
  if (!is_scheme(scheme)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' is no scheme; allowed is a letter, then letters, digits, '+', '-' and '.'", printable(scheme))};
  }
  const std::string name = in_small_letters(scheme);
  if (name == kFileScheme) return Error{ErrorCode::invalid_argument, "'file' is the plain file; register another scheme"};
  if (!factory) return Error{ErrorCode::invalid_argument, fmt::format("the factory for '{}' is empty", name)};
  if (OutputRegistry::instance().put(name, std::move(factory))) {
    XPU_LOG_WARN("profiler", "traces for {}:// go somewhere else from now on: it was registered again", name);
  }
  return {};
}

bool unregister_output(std::string_view scheme) { return OutputRegistry::instance().remove(in_small_letters(scheme)); }

std::string output_scheme(std::string_view path) {
  std::string scheme = in_small_letters(before_separator(path));
  if (scheme == kFileScheme) scheme.clear();
  return scheme;
}

std::string_view without_file_scheme(std::string_view path) {
  const std::string_view scheme = before_separator(path);
  return in_small_letters(scheme) == kFileScheme ? path.substr(scheme.size() + kSeparator.size()) : path;
}

Result<> check_output(std::string_view path) {
  const std::string scheme = output_scheme(path);
  if (scheme.empty() || OutputRegistry::instance().find(scheme) != nullptr) return {};
  return OutputRegistry::instance().unknown(scheme);
}

Result<std::unique_ptr<Sink>> make_output(const ExportOptions& options) {
  const std::string scheme = output_scheme(options.path);
  const std::shared_ptr<const OutputFactory> factory = OutputRegistry::instance().find(scheme);
  if (factory == nullptr) return OutputRegistry::instance().unknown(scheme);
  XPU_TRY_ASSIGN(std::unique_ptr<Sink> sink, (*factory)(options));
  if (sink == nullptr) return Error{ErrorCode::internal, fmt::format("the factory for {}:// made nothing", printable(scheme))};
  return sink;
}

}  // namespace xpu::profiler

#pragma once

#include <regex.h>

#include <memory>
#include <string>

#include "xpu/base/result.hpp"

namespace xpu::profiler {

/// A POSIX extended expression, compiled. std::regex throws and is slow.
class Expression {
 public:
  /// Error invalid_argument: what is wrong with it.
  static Result<std::unique_ptr<Expression>> compile(const std::string& text);
  ~Expression();
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  bool found_in(const std::string& text) const { return ::regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0; }

 private:
  Expression() = default;
  regex_t compiled_{};
  bool ready_ = false;
};

}  // namespace xpu::profiler

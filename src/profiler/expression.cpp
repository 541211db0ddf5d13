#include "profiler/expression.hpp"

namespace xpu::profiler {

Result<std::unique_ptr<Expression>> Expression::compile(const std::string& text) {
  std::unique_ptr<Expression> expression(new Expression);
  const int status = ::regcomp(&expression->compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (status == 0) {
    expression->ready_ = true;
    return expression;
  }
  char reason[128] = "";
  ::regerror(status, &expression->compiled_, reason, sizeof reason);
  return Error{ErrorCode::invalid_argument, "'" + text + "' is not a regular expression: " + reason};
}

Expression::~Expression() {
  if (ready_) ::regfree(&compiled_);
}

}  // namespace xpu::profiler

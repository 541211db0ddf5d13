#pragma once

#include <string>

namespace xpu::cli {

/// While it lives, a signal that ends this process (Ctrl-C, a hang-up, a time-out) first removes one file. At most one at a time.
class InterruptCleanup {
 public:
  explicit InterruptCleanup(std::string path);
  ~InterruptCleanup();
  InterruptCleanup(const InterruptCleanup&) = delete;
  InterruptCleanup& operator=(const InterruptCleanup&) = delete;

 private:
  std::string path_;
};

}  // namespace xpu::cli

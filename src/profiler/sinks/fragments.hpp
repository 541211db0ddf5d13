#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace xpu::profiler {

/// One text per definition, made when it is first needed.
class Fragments {
 public:
  template <typename Make>
  const std::string& get(std::size_t index, Make&& make) {
    if (index >= texts_.size()) texts_.resize(index + 1);
    if (!texts_[index]) texts_[index] = make();
    return *texts_[index];
  }

 private:
  std::vector<std::optional<std::string>> texts_;
};

}  // namespace xpu::profiler

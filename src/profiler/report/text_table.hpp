#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace xpu::profiler {

struct TextStyle {
  std::size_t width = 100;  ///< Columns of the terminal.
  bool wide = false;        ///< `width` does not bind: nothing is shortened or left out.
  bool color = false;

  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
  std::string alarming(std::string_view text) const;
};

/// A table whose first column is a name, to the left and shortened in the middle when space is short, and whose other columns are figures,
/// to the right. A table that is too wide even with short names leaves out its least important columns.
class TextTable {
 public:
  explicit TextTable(std::string heading) { columns_.push_back({std::move(heading), 0}); }

  /// The column with the largest `dispensable` goes first; 0 never goes.
  void add_column(std::string heading, int dispensable = 0) { columns_.push_back({std::move(heading), dispensable}); }
  /// As many cells as there are columns.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string render(const TextStyle& style) const;

 private:
  struct Column {
    std::string heading;
    int dispensable;
  };
  std::size_t natural_width(std::size_t column) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace xpu::profiler

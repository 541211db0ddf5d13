#include "profiler/report/text_table.hpp"

#include <algorithm>
#include <numeric>

#include "profiler/report/text_format.hpp"

namespace xpu::profiler {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kShortestName = 24;

std::string styled(std::string_view code, std::string_view text, bool color) {
  if (!color) return std::string(text);
  return "\x1b[" + std::string(code) + 'm' + std::string(text) + "\x1b[0m";
}

std::string spaces(std::size_t wanted, std::size_t taken) { return std::string(wanted > taken ? wanted - taken : 0, ' '); }

}  // namespace

std::string TextStyle::bold(std::string_view text) const { return styled("1", text, color); }
std::string TextStyle::dim(std::string_view text) const { return styled("2", text, color); }
std::string TextStyle::alarming(std::string_view text) const { return styled("1;31", text, color); }

std::size_t TextTable::natural_width(std::size_t column) const {
  std::size_t width = display_width(columns_[column].heading);
  for (const std::vector<std::string>& row : rows_) width = std::max(width, display_width(row[column]));
  return width;
}

std::string TextTable::render(const TextStyle& style) const {
  std::vector<std::size_t> widths(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) widths[i] = natural_width(i);
  std::vector<std::size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});

  if (!style.wide) {
    const auto figures = [&] {
      std::size_t sum = 0;
      for (const std::size_t i : shown) sum += i == 0 ? 0 : widths[i] + kGap;
      return sum;
    };
    const std::size_t shortest = std::min(widths[0], kShortestName);
    while (figures() + shortest > style.width) {
      const auto least = std::max_element(shown.begin(), shown.end(),
                                          [&](std::size_t a, std::size_t b) { return columns_[a].dispensable < columns_[b].dispensable; });
      if (columns_[*least].dispensable == 0) break;
      shown.erase(least);
    }
    const std::size_t taken = figures();
    widths[0] = std::min(widths[0], std::max(shortest, style.width > taken ? style.width - taken : 0));
  }

  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (const std::size_t i : shown) {
      const std::string cell = i == 0 ? shorten(cell_of(i), widths[0]) : cell_of(i);
      const std::string padding = spaces(widths[i], display_width(cell));
      if (i == 0) {
        text.append(cell).append(padding);
      } else {
        text.append(kGap, ' ').append(padding).append(cell);
      }
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string text = style.bold(line([&](std::size_t i) -> const std::string& { return columns_[i].heading; })) + '\n';
  for (const std::vector<std::string>& row : rows_) text += line([&](std::size_t i) -> const std::string& { return row[i]; }) + '\n';
  return text;
}

}  // namespace xpu::profiler

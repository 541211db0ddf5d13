// Writes the inputs from which the targets of trace/view start: buffers of views for one, wire records for the other. Each gets both.
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/support/view_script.hpp"

namespace {

using namespace xpu::trace;
using namespace xpu::trace::view;
using namespace xpu::trace::view::test_support;

std::string g_folder;

void write_wire(const char* name, const WireScript& script, std::initializer_list<int> head) {
  std::vector<std::byte> bytes(8);
  std::size_t index = 0;
  for (const int value : head) bytes[index++] = static_cast<std::byte>(value);
  bytes.insert(bytes.end(), script.bytes().begin(), script.bytes().end());
  xpu::test_support::write_bytes(g_folder + "/wire_" + name, bytes);
}

WireScript example() {
  WireScript script = described();
  for (std::uint32_t command = 0; command <= 16; ++command) {
    const std::uint64_t operation = make_operation(kWriter + command % 2, command + 1);
    auto detail = copy_detail(operation, static_cast<std::uint8_t>(command % 6), static_cast<std::uint8_t>(5 - command % 6));
    detail.direction = command == 6 ? 5 : 0;
    detail.peer_device = kPeer;
    detail.pattern_bytes = command == 7 ? 16 : 4;
    detail.pattern = kPattern;
    if (command % 4 == 0) script.add(external(operation, ExternalKind::custom_1, command));
    script.add(submitted(operation, command)).add(detail).add(completed(operation, 10'000 + 3'000 * command));
  }
  auto call = make_record<ApiCallRecord>();
  call.enter_ns = kHostAtTick0;
  call.exit_ns = kHostAtTick0 + 10;
  call.api = kFinishApi;
  call.thread = kWriter;
  script.add(call);
  for (std::uint32_t type = 1; type <= 5; ++type) {
    auto wait = make_record<SynchronizationRecord>();
    wait.enter_ns = kHostAtTick0;
    wait.exit_ns = kHostAtTick0 + 1'000'000;
    wait.type = type;
    wait.api = kCopyApi;
    wait.thread = kWriter;
    wait.queue = kQueue;
    wait.context = kContext;
    script.add(wait);
  }
  auto overhead = make_record<OverheadRecord>();
  overhead.end_ns = 30;
  overhead.count = 64;
  overhead.thread = kWriter;
  script.add(overhead);
  auto loss = make_record<LossRecord>(kFlagCompletionLost);
  loss.first_operation = loss.last_operation = make_operation(kWriter, 999);
  loss.count = 1;
  script.add(submitted(loss.first_operation, 1)).add(loss);
  auto end = make_record<ObjectEndRecord>();
  for (std::uint32_t kind = 1; kind <= 5; ++kind) {
    end.kind = kind;
    end.id = kKernel;
    script.add(end);
  }
  return script;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fprintf(stderr, "usage: make_view_corpus FOLDER\n");
    return 2;
  }
  g_folder = arguments[1];
  std::filesystem::create_directories(g_folder);
  const WireScript script = example();
  write_wire("everything", script, {15, 0, 0, 0, 0, 255});
  write_wire("small_table", script, {1, 0, 0, 0, 0, 128});
  write_wire("wrap", script, {15, 2, 0, 0, 0, 64});
  write_wire("kernels_only", script, {7, 0, 0xfd, 0xff, 0, 200});
  WireScript undescribed;
  undescribed.add(submitted(make_operation(kWriter, 1), 1)).add(completed(make_operation(kWriter, 1)));
  undescribed.add(submitted(make_operation(kWriter, 2), 7)).add(completed(make_operation(kWriter, 3)));
  write_wire("undescribed", undescribed, {15, 0, 0, 0, 0, 100});

  std::vector<std::byte> views;
  ViewBuilder builder({.selection = everything()},
                      [&](std::uint32_t, std::span<const std::byte> record) { views.insert(views.end(), record.begin(), record.end()); });
  builder.add(script.bytes());
  builder.finish();
  xpu::test_support::write_bytes(g_folder + "/views", views);
  xpu::test_support::write_bytes(g_folder + "/views_cut", std::span(views).first(views.size() - 9));
  xpu::test_support::write_bytes(g_folder + "/views_empty", {});
  return 0;
}

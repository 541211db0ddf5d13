#include <string>

#include "profiler/sinks/json_writer.hpp"
#include "xpu/profiler/report.hpp"

namespace xpu::profiler {
namespace {

/// Calls `write_item(item)` between the brackets of an array of objects.
template <typename Items, typename WriteItem>
void array(JsonWriter& out, std::string_view name, const Items& items, WriteItem&& write_item) {
  out.key(name);
  out.begin_array();
  for (const auto& item : items) {
    out.raw("\n");
    out.begin_object();
    write_item(item);
    out.end_object();
  }
  out.end_array();
}

void write_triple(JsonWriter& out, std::string_view name, const std::uint64_t (&values)[3]) {
  out.key(name);
  out.begin_array();
  for (const std::uint64_t value : values) out.value(value);
  out.end_array();
}

void write_program(JsonWriter& out, const Report::Program& program) {
  out.key("program");
  out.begin_object();
  out.member("path", program.path);
  out.key("argv");
  out.begin_array();
  for (const std::string& argument : program.argv) out.value(argument);
  out.end_array();
  out.member("exit_code", program.exit_code);
  out.member("signal", program.signal);
  out.member("wall_ns", program.wall_ns);
  out.member("finished", program.finished);
  if (program.damage.empty()) {
    out.key("damage");
    out.null();
  } else {
    out.member("damage", program.damage);
  }
  out.end_object();
}

void write_kernel(JsonWriter& out, const Report::Kernel& kernel) {
  out.member("name", kernel.name);
  out.member("raw_name", kernel.raw_name);
  out.member("device", kernel.device);
  if (kernel.process) out.member("process", kernel.process);
  if (kernel.queue) out.member("queue", kernel.queue);
  if (kernel.thread) out.member("thread", kernel.thread);
  out.member("calls", kernel.calls);
  out.member("failed", kernel.failed);
  out.member("total_ns", kernel.total_ns);
  out.member("avg_ns", kernel.avg_ns);
  out.member("min_ns", kernel.min_ns);
  out.member("median_ns", kernel.median_ns);
  out.member("p99_ns", kernel.p99_ns);
  out.member("max_ns", kernel.max_ns);
  out.member("share", kernel.share);
  out.key("launch_delay_ns");
  if (kernel.launch_delay_ns) {
    out.begin_object();
    out.member("median", kernel.launch_delay_ns->median);
    out.member("p99", kernel.launch_delay_ns->p99);
    out.end_object();
  } else {
    out.null();
  }
  array(out, "geometries", kernel.geometries, [&](const Report::Geometry& geometry) {
    out.member("dimensions", geometry.dimensions);
    write_triple(out, "offset", geometry.offset);
    write_triple(out, "global", geometry.global);
    if ((geometry.local[0] | geometry.local[1] | geometry.local[2]) == 0) {
      out.key("local");
      out.null();
    } else {
      write_triple(out, "local", geometry.local);
    }
    out.member("calls", geometry.calls);
  });
}

void write_transfer(JsonWriter& out, const Report::Transfer& transfer) {
  out.member("route", transfer.route);
  out.member("calls", transfer.calls);
  out.member("failed", transfer.failed);
  out.member("bytes", transfer.bytes);
  out.member("total_ns", transfer.total_ns);
  out.member("bytes_per_s", transfer.bytes_per_s);
}

void write_call(JsonWriter& out, const Report::Call& call) {
  out.member("name", call.name);
  out.member("process", call.pid);
  out.member("thread", call.thread);
  out.member("start_ns", call.start_ns);
  out.member("duration_ns", call.duration_ns);
  out.member("result", call.result);
  out.member("calls", call.calls);
}

void write_conservation(JsonWriter& out, const Report::Conservation& conservation) {
  out.key("conservation");
  out.begin_object();
  out.member("submitted", conservation.submitted);
  out.member("recorded", conservation.recorded);
  out.member("lost", conservation.lost);
  out.member("pending", conservation.pending);
  out.member("filtered", conservation.filtered);
  out.member("left_out", conservation.left_out);
  out.member("untimed", conservation.untimed);
  out.member("failed", conservation.failed);
  out.member("refused", conservation.refused);
  out.member("unexplained", conservation.unexplained);
  out.member("other_records_lost", conservation.other_records_lost);
  out.member("cpu_traces_discarded", conservation.cpu_traces_discarded);
  out.member("cpu_operations_discarded", conservation.cpu_operations_discarded);
  out.member("dangling_flow_ends", conservation.dangling_flow_ends);
  array(out, "queues", conservation.queues, [&](const Report::Books& books) {
    out.member("process", books.pid);
    out.member("queue", books.queue);
    out.member("submitted", books.submitted);
    out.member("recorded", books.recorded);
    out.member("lost", books.lost);
    out.member("pending", books.pending);
    out.member("untimed", books.untimed);
    out.member("failed", books.failed);
    out.member("unexplained", books.unexplained);
  });
  array(out, "pending_commands", conservation.pending_commands, [&](const Report::Pending& pending) {
    out.member("name", pending.name);
    out.member("process", pending.pid);
    out.member("queue", pending.queue);
    out.member("enter_ns", pending.enter_ns);
  });
  out.end_object();
}

void write_errors(JsonWriter& out, const Report& report) {
  out.key("errors");
  out.begin_object();
  out.member("unused_external_ids", report.errors.unused_external_ids);
  out.member("out_of_range", report.errors.out_of_range);
  out.member("before_call", report.errors.before_call);
  out.member("unnamed_calls", report.errors.unnamed_calls);
  out.member("unexpected_records", report.errors.unexpected_records);
  out.member("dropped_for_room", report.errors.dropped_for_room);
  out.member("duplicates", report.duplicates);
  out.member("orphans", report.orphans);
  out.end_object();
}

}  // namespace

std::string report_json(const Report& report) {
  std::string text;
  {
    JsonWriter out([&](std::string_view piece) { text += piece; });
    out.begin_object();
    out.member("schema", "xpu.report/1");
    out.raw("\n");
    write_program(out, report.program);
    array(out, "processes", report.processes, [&](const Report::Process& process) {
      out.member("pid", process.pid);
      out.member("name", process.name);
      out.member("rank", process.rank);
      out.member("command", process.command);
      out.member("closed", process.closed);
    });
    array(out, "devices", report.devices, [&](const Report::Device& device) {
      out.member("id", device.id);
      out.member("name", device.name);
      out.member("driver", device.driver);
      out.member("busy_ns", device.busy_ns);
      out.member("idle_ns", device.idle_ns);
      out.member("span_ns", device.span_ns);
      out.member("commands", device.commands);
    });
    array(out, "kernels", report.kernels, [&](const Report::Kernel& kernel) { write_kernel(out, kernel); });
    array(out, "copies", report.copies, [&](const Report::Transfer& transfer) { write_transfer(out, transfer); });
    array(out, "fills", report.fills, [&](const Report::Transfer& transfer) { write_transfer(out, transfer); });
    array(out, "api", report.api, [&](const Report::Api& api) {
      out.member("name", api.name);
      out.member("calls", api.calls);
      out.member("failed", api.failed);
      out.member("total_ns", api.total_ns);
      out.member("max_ns", api.max_ns);
      out.member("waits", api.waits);
    });
    array(out, "slowest_calls", report.slowest_calls, [&](const Report::Call& call) { write_call(out, call); });
    array(out, "failed_calls", report.failed_calls, [&](const Report::Call& call) { write_call(out, call); });
    array(out, "ranges", report.ranges, [&](const Report::Range& range) {
      out.member("name", range.name);
      out.member("calls", range.calls);
      out.member("host_ns", range.host_ns);
      out.member("host_self_ns", range.host_self_ns);
      out.member("commands", range.commands);
      out.member("device_ns", range.device_ns);
      out.member("device_self_ns", range.device_self_ns);
    });
    array(out, "memory", report.memory, [&](const Report::Memory& memory) {
      out.member("process", memory.pid);
      out.member("context", memory.context);
      out.member("peak_bytes", memory.peak_bytes);
      out.member("alive_bytes", memory.alive_bytes);
      out.member("allocations", memory.allocations);
      out.member("releases", memory.releases);
      out.member("peak_ns", memory.peak_ns);
      array(out, "owners", memory.owners, [&](const Report::MemoryOwner& owner) {
        out.member("name", owner.name);
        out.member("bytes", owner.bytes);
        out.member("blocks", owner.blocks);
      });
      out.member("timeline_start_ns", memory.timeline_start_ns);
      out.member("timeline_step_ns", memory.timeline_step_ns);
      out.key("timeline_bytes");
      out.begin_array();
      for (const std::uint64_t bytes : memory.timeline_bytes) out.value(bytes);
      out.end_array();
    });
    out.raw("\n");
    write_conservation(out, report.conservation);
    write_errors(out, report);
    array(out, "losses", report.losses, [&](const Report::Loss& loss) {
      out.member("cause", loss.cause);
      out.member("process", loss.pid);
      out.member("queue", loss.queue);
      out.member("count", loss.count);
    });
    array(out, "clocks", report.clocks, [&](const Report::Clock& clock) {
      out.member("device", clock.device);
      out.member("process", clock.pid);
      out.member("domain", to_string(clock.domain));
      out.member("tick_ns", clock.tick_ns);
      out.key("error_ns");
      if (clock.error_max_ns) {
        out.begin_object();
        out.member("median", clock.error_median_ns);
        out.member("max", clock.error_max_ns);
        out.end_object();
      } else {
        out.null();
      }
      out.member("readings", clock.readings);
    });
    out.key("participant_errors");
    out.begin_array();
    for (const std::string& error : report.participant_errors) out.value(error);
    out.end_array();
    out.key("overhead");
    out.begin_object();
    out.member("program_ns", report.overhead.program_ns);
    out.member("recorder_ns", report.overhead.recorder_ns);
    out.end_object();
    out.end_object();
    out.raw("\n");
  }
  return text;
}

}  // namespace xpu::profiler

#include "profiler/sinks/perfetto_rows.hpp"

#include <algorithm>
#include <array>
#include <variant>

#include "profiler/sinks/argument_text.hpp"
#include "profiler/sinks/names.hpp"
#include "profiler/time_difference.hpp"
#include "xpu/base/text.hpp"

namespace xpu::profiler {
namespace {

using std::to_string;
namespace fields = perfetto;

// In the order of the enumerations.
constexpr std::array<std::string_view, 36> kArgumentNames = {
    "correlation",
    "result",
    "end",
    "waits for",
    "queue",
    "events",
    "stands for calls",
    "bytes",
    "memory bandwidth (GB/s)",
    "global",
    "offset",
    "queued before ns",
    "submitted before ns",
    "clock error ns",
    "moved ns",
    "state",
    "status",
    "shared memory",
    "private memory",
    "sub-group size",
    "lost",
    "pending",
    "without times",
    "without place in time",
    "completions without call",
    "External id",
    "finished",
    "commands",
    "CPU traces out of time",
    "CPU operations discarded",
    "dangling flow ends",
    "communicator",
    "bytes sent",
    "bytes received",
    "graph id",
    "graph node id",
};
static_assert(id_of(ArgumentName::graph_node_id) == kArgumentNames.size());
constexpr std::array<std::string_view, 10> kCategories = {"xpu_runtime",     "xpu_sync",       "overhead", "user_annotation",
                                                          "xpu_lost",        "xpu_recording",  "cpu_op",   "cpu_instant_event",
                                                          "python_function", "collective_comm"};
static_assert(id_of(Category::collective_comm) == kCategories.size());

// Times count from a second before the origin: unsigned and short, also for a command that the mapping of its clock put before it.
constexpr std::int64_t kLead = 1'000'000'000;

template <typename Value>
Value& at(std::vector<Value>& values, std::size_t index) {
  if (index >= values.size()) values.resize(index + 1);
  return values[index];
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

/// Before the epoch: in the recording's own clock.
ProtoWriter::Message PerfettoRows::begin_early_packet(std::int64_t ns) {
  return out_.begin(fields::kPacket, fields::packet::kSequenceId, kSequence, fields::packet::kSequenceFlags,
                    fields::packet::kNeedsIncrementalState, fields::packet::kTimestamp, std::max<std::int64_t>(ns, 0),
                    fields::packet::kTimestampClockId, fields::clock_snapshot::kMonotonic);
}

/// Versions before 55 count a field that they do not know as an error of the trace; so the trace describes it.
void PerfettoRows::describe_gpu_correlation() {
  namespace descriptor = fields::extension_descriptor;
  const auto field = [&](std::uint32_t in, std::string_view name, std::uint32_t number, std::uint32_t label, std::uint32_t type,
                         std::string_view extendee, std::string_view type_name) {
    out_.message(in, [&] {
      out_.text(descriptor::kName, name);
      out_.number(descriptor::kFieldNumber, number);
      out_.number(descriptor::kFieldLabel, label);
      out_.number(descriptor::kFieldType, type);
      if (!extendee.empty()) out_.text(descriptor::kFieldExtendee, extendee);
      if (!type_name.empty()) out_.text(descriptor::kFieldTypeName, type_name);
    });
  };
  const auto write_file = [&] {
    out_.text(descriptor::kName, "protos/perfetto/trace/gpu/gpu_track_event.proto");
    out_.text(descriptor::kFilePackage, "perfetto.protos");
    out_.message(descriptor::kFileMessage, [&] {
      out_.text(descriptor::kName, "GpuCorrelation");
      field(descriptor::kMessageField, "render_stage_submission_event_ids", fields::track_event::kSubmittedEventId, descriptor::kRepeated,
            descriptor::kUint64, "", "");
    });
    out_.message(descriptor::kFileMessage, [&] {
      out_.text(descriptor::kName, "GpuTrackEvent");
      field(descriptor::kMessageExtension, "gpu_correlation", fields::track_event::kGpuCorrelation, descriptor::kOptional,
            descriptor::kMessage, ".perfetto.protos.TrackEvent", ".perfetto.protos.GpuCorrelation");
    });
  };
  packet([&] {
    out_.message(fields::packet::kExtensionDescriptor,
                 [&] { out_.message(descriptor::kSet, [&] { out_.message(descriptor::kFile, write_file); }); });
  });
}

void PerfettoRows::begin(const SessionInfo& info) {
  definitions_ = info.definitions;
  epoch_ns_ = difference_ns(info.origin_ns, kLead);
  const trace::Manifest& manifest = *info.manifest;
  out_.message(fields::kPacket, [&] {
    out_.number(fields::packet::kSequenceId, kSequence);
    out_.number(fields::packet::kSequenceFlags, fields::packet::kIncrementalStateCleared);
    out_.message(fields::packet::kDefaults,
                 [&] { out_.number(fields::packet::kTimestampClockId, fields::clock_snapshot::kFirstOfSequence); });
    out_.message(fields::packet::kClockSnapshot, [&] {
      const auto clock = [&](std::uint32_t id, std::int64_t ns) {
        out_.message(fields::clock_snapshot::kClock, [&] {
          out_.number(fields::clock_snapshot::kClockId, id);
          out_.number(fields::clock_snapshot::kTimestamp, ns);
        });
      };
      clock(fields::clock_snapshot::kFirstOfSequence, kLead);
      clock(fields::clock_snapshot::kMonotonic, info.origin_ns);
      if (manifest.start_realtime_ns != 0) {
        clock(fields::clock_snapshot::kRealtime,
              end_ns(difference_ns(info.origin_ns, static_cast<std::int64_t>(manifest.start_monotonic_ns)), manifest.start_realtime_ns));
      }
      out_.number(fields::clock_snapshot::kPrimaryTraceClock, fields::clock_snapshot::kMonotonic);
    });
  });
  packet([&] {
    out_.message(fields::packet::kInternedData, [&] {
      const auto write = [&](std::uint32_t field, std::uint32_t id, std::string_view text) {
        out_.message(field, [&] {
          out_.number(fields::interned::kId, id);
          out_.text(fields::interned::kText, text);
        });
      };
      for (std::uint32_t i = 0; i < kCategories.size(); ++i) write(fields::interned::kCategory, i + 1, kCategories[i]);
      for (std::uint32_t i = 0; i < kArgumentNames.size(); ++i) {
        write(fields::interned::kAnnotationName, i + 1, kArgumentNames[i]);
        write(fields::interned::kComputeArgumentName, i + 1, kArgumentNames[i]);
      }
    });
  });
  describe_gpu_correlation();
  if (!definitions_->devices.empty()) describe_devices();
}

void PerfettoRows::describe_devices() {
  described_devices_ = definitions_->devices.size();
  packet([&] {
    out_.message(fields::packet::kGpuInfo, [&] {
      for (const DeviceDefinition& device : definitions_->devices) {
        out_.message(fields::gpu_info::kGpu, [&] {
          out_.text(fields::gpu_info::kName, valid_utf8(device.name));
          out_.message(fields::gpu_info::kExtra, [&] {
            out_.text(fields::gpu_info::kExtraKey, "driver");
            out_.text(fields::gpu_info::kExtraValue, valid_utf8(device.driver));
          });
        });
      }
    });
  });
}

template <typename WriteFields>
void PerfettoRows::interned(std::uint32_t field, std::uint64_t id, std::string_view text, WriteFields&& more) {
  packet([&] {
    out_.message(fields::packet::kInternedData, [&] {
      out_.message(field, [&] {
        out_.number(fields::interned::kId, id);
        out_.text(fields::interned::kText, valid_utf8(text));
        more();
      });
    });
  });
}

void PerfettoRows::interned(std::uint32_t field, std::uint64_t id, std::string_view text) {
  interned(field, id, text, [] {});
}

template <typename WriteFields>
std::uint64_t PerfettoRows::new_track(std::uint64_t parent, std::string_view name, WriteFields&& more) {
  const std::uint64_t uuid = ++tracks_;
  packet([&] {
    out_.message(fields::packet::kTrackDescriptor, [&] {
      out_.number(fields::track_descriptor::kUuid, uuid);
      if (parent != 0) out_.number(fields::track_descriptor::kParentUuid, parent);
      if (!name.empty()) out_.text(fields::track_descriptor::kName, valid_utf8(name));
      more();
    });
  });
  return uuid;
}

std::uint64_t PerfettoRows::new_track(std::uint64_t parent, std::string_view name) {
  return new_track(parent, name, [] {});
}

std::uint64_t PerfettoRows::track(const ProcessDefinition& process) {
  std::uint64_t& known = at(process_tracks_, process.index);
  if (known == 0) {
    known = new_track(0, "", [&] {
      out_.message(fields::track_descriptor::kProcess, [&] {
        out_.number(fields::track_descriptor::kProcessPid, process.pid);
        out_.text(fields::track_descriptor::kProcessName, valid_utf8(row_name(process)));
        if (process.rank) out_.text(fields::track_descriptor::kProcessLabel, "rank " + to_string(*process.rank));
      });
    });
  }
  return known;
}

std::uint64_t PerfettoRows::new_track_of(const ThreadDefinition& thread) {
  const std::uint64_t parent = track(*thread.process);
  return at(thread_tracks_, thread.index) = new_track(parent, "", [&] {
           const std::uint64_t tid = thread.os_thread != 0 ? thread.os_thread : kFirstMadeUpId + thread.index;
           out_.message(fields::track_descriptor::kThread, [&] {
             out_.number(fields::track_descriptor::kThreadPid, thread.process->pid);
             out_.number(fields::track_descriptor::kThreadTid, tid);
             out_.text(fields::track_descriptor::kThreadName, valid_utf8(row_name(thread, tid)));
           });
         });
}

std::uint64_t PerfettoRows::overhead_track(const ThreadDefinition& thread) {
  std::uint64_t& known = at(overhead_tracks_, thread.index);
  if (known == 0) {
    if (overhead_root_ == 0) overhead_root_ = new_track(0, "overhead of recording");
    known = new_track(overhead_root_, "thread " + to_string(thread.os_thread));
  }
  return known;
}

std::uint64_t PerfettoRows::loss_track(const ProcessDefinition& process) {
  std::uint64_t& known = at(loss_tracks_, process.index);
  if (known == 0) {
    const std::uint64_t parent = track(process);
    known = new_track(parent, "lost records");
  }
  return known;
}

std::uint64_t PerfettoRows::recording_track() {
  if (recording_track_ == 0) recording_track_ = new_track(0, "recording");
  return recording_track_;
}

std::uint64_t PerfettoRows::memory_counter(const ProcessDefinition& process, std::uint32_t context) {
  std::uint64_t& known = memory_counters_[{process.index, context}];
  if (known == 0) {
    const std::uint64_t parent = track(process);
    known = new_track(parent, memory_name(context), [&] {
      out_.message(fields::track_descriptor::kCounter,
                   [&] { out_.number(fields::track_descriptor::kCounterUnit, fields::track_descriptor::kBytes); });
    });
  }
  return known;
}

std::uint64_t PerfettoRows::counter(const ProcessDefinition& process, const NameDefinition& name) {
  std::uint64_t& known = counters_[{process.index, name.index}];
  if (known == 0) {
    const std::uint64_t parent = track(process);
    known = new_track(parent, name.text, [&] { out_.message(fields::track_descriptor::kCounter, [] {}); });
  }
  return known;
}

std::uint64_t PerfettoRows::new_event_name(const NameDefinition& name) {
  const std::uint64_t id = std::uint64_t{name.index} + 1;
  interned(fields::interned::kEventName, id, name.text);
  return at(event_names_, name.index) = id;
}

std::uint64_t PerfettoRows::string_value(std::string_view text) {
  const auto found = string_values_.find(text);
  if (found != string_values_.end()) return found->second;
  const std::uint64_t id = string_values_.size() + 1;
  string_values_.emplace(text, id);
  interned(fields::interned::kStringValue, id, text);
  return id;
}

std::uint64_t PerfettoRows::new_context_of(const QueueDefinition& queue) {
  const ProcessDefinition& process = *queue.process;
  const auto [entry, fresh] = contexts_.try_emplace({process.index, queue.context}, contexts_.size() + 1);
  if (fresh) {
    track(process);  // otherwise a process that only runs commands would have no name
    packet([&] {
      out_.message(fields::packet::kInternedData, [&] {
        out_.message(fields::interned::kGraphicsContext, [&] {
          out_.number(fields::interned::kId, entry->second);
          out_.number(fields::graphics_context::kPid, process.pid);
        });
      });
    });
  }
  return at(queue_contexts_, queue.index) = entry->second;
}

std::uint64_t PerfettoRows::new_specification(std::string_view name, std::string_view description, std::uint32_t category) {
  const std::uint64_t id = ++specifications_;
  interned(fields::interned::kGpuSpecification, id, name, [&] {
    out_.text(fields::gpu_specification::kDescription, valid_utf8(description));
    out_.number(fields::gpu_specification::kCategory, category);
  });
  return id;
}

std::uint64_t PerfettoRows::new_hardware_queue(const QueueDefinition& queue, std::uint32_t lane) {
  if (queue.device->index >= described_devices_) describe_devices();
  return at(at(hardware_queues_, queue.index), lane) = new_specification(row_name(queue, lane, definitions_->processes.size() > 1),
                                                                         row_name(*queue.device), fields::gpu_specification::kOther);
}

std::uint64_t PerfettoRows::annotation_queue(const QueueDefinition& queue, std::uint32_t lane) {
  std::uint64_t& id = annotation_queues_[{queue.index, lane}];
  if (id == 0) {
    id = new_specification(annotation_row_name(queue, lane, definitions_->processes.size() > 1), row_name(*queue.device),
                           fields::gpu_specification::kOther);
  }
  return id;
}

std::uint64_t PerfettoRows::annotation_stage(std::string_view name) {
  const auto found = annotation_stages_.find(name);
  if (found != annotation_stages_.end()) return found->second;
  const std::uint64_t id = new_specification(name, "gpu_user_annotation", fields::gpu_specification::kOther);
  annotation_stages_.emplace(name, id);
  return id;
}

std::uint64_t PerfettoRows::new_stage(const KernelDefinition& kernel) {
  return at(kernel_stages_, kernel.index) = new_specification(kernel.name, "kernel", fields::gpu_specification::kCompute);
}

std::uint64_t PerfettoRows::new_stage(const std::string& name, std::string_view category) {
  const auto found = stages_.find(name);
  if (found != stages_.end()) return found->second;
  const std::uint64_t id = new_specification(name, category, fields::gpu_specification::kOther);
  stages_.emplace(name, id);
  return id;
}

std::uint64_t PerfettoRows::stage(const MemcpyActivity& copy) {
  std::uint64_t& id = copy_stages_[name_key(copy)];
  if (id == 0) id = new_stage(copy_name(copy), "gpu_memcpy");
  return id;
}

std::uint64_t PerfettoRows::stage(const MemsetActivity& fill) {
  std::uint64_t& id = at(fill_stages_, static_cast<std::size_t>(fill.destination));
  if (id == 0) id = new_stage(fill_name(fill), "gpu_memset");
  return id;
}

std::uint64_t PerfettoRows::stage(const CommandActivity& command) {
  std::uint64_t& id = at(command_stages_, static_cast<std::size_t>(command.command));
  if (id == 0) id = new_stage(std::string(to_string(command.command)), works(command.command) ? "xpu_command" : "xpu_sync");
  return id;
}

std::uint64_t PerfettoRows::new_compute_kernel(const KernelDefinition& kernel) {
  const std::uint64_t id = std::uint64_t{kernel.index} + 1;
  interned(fields::interned::kComputeKernel, id, kernel.raw_name, [&] {
    out_.text(fields::compute_kernel::kDemangledName, valid_utf8(kernel.name));
    const auto argument = [&](ArgumentName name, std::uint32_t value) {
      if (value == 0) return;  // unknown, or nothing to say
      out_.message(fields::compute_kernel::kArgument, [&] {
        out_.number(fields::launch::kNameId, id_of(name));
        out_.number(fields::launch::kUnsigned, value);
      });
    };
    argument(ArgumentName::shared_memory, kernel.local_bytes);
    argument(ArgumentName::private_memory, kernel.private_bytes);
    argument(ArgumentName::sub_group_size, kernel.sub_group);
  });
  return at(compute_kernels_, kernel.index) = id;
}

std::string PerfettoRows::collective_fields(const CpuOperationActivity& operation) {
  std::string fields_of_launch;
  if (!is_collective(operation.arguments)) return fields_of_launch;
  for (const CpuArgument& argument : operation.arguments) {
    if (!is_of_collective(argument)) continue;
    const auto [name, is_new] = argument_names_.try_emplace(argument.key, kArgumentNames.size() + argument_names_.size() + 1);
    if (is_new) interned(fields::interned::kComputeArgumentName, name->second, argument.key);
    // A number is one; everything else is shown as it reads.
    const auto* number = std::get_if<std::int64_t>(&argument.value);
    const auto* text = std::get_if<std::string>(&argument.value);
    const std::uint64_t text_id = number != nullptr ? 0 : string_value(text != nullptr ? *text : json_value(argument.value));
    ProtoWriter out([&](std::string_view piece) { fields_of_launch += piece; }, 128);
    out.message(fields::launch::kArgument, [&] {
      out.number(fields::launch::kNameId, name->second);
      if (number != nullptr) {
        out.number(fields::launch::kSigned, *number);
      } else {
        out.number(fields::launch::kStringId, text_id);
      }
    });
    out.flush();
  }
  return fields_of_launch;
}

std::string_view PerfettoRows::new_launch_fields(const GeometryDefinition& geometry) {
  const std::uint64_t(&global)[3] = geometry.global;
  const std::uint64_t(&local)[3] = geometry.local;
  const bool has_groups = local[0] != 0 && local[1] != 0 && local[2] != 0;
  bool whole_groups = has_groups;
  for (int i = 0; i < 3; ++i) whole_groups = whole_groups && global[i] % local[i] == 0;
  const bool has_offset = (geometry.offset[0] | geometry.offset[1] | geometry.offset[2]) != 0;
  const std::uint64_t global_text = whole_groups ? 0 : string_value(triple(global));
  const std::uint64_t offset_text = has_offset ? string_value(triple(geometry.offset)) : 0;

  std::string& text = at(geometries_, geometry.index);
  ProtoWriter out([&](std::string_view piece) { text += piece; }, 128);
  if (has_groups) {
    const auto dimensions = std::clamp(geometry.dimensions, 1u, 3u);
    // Perfetto's fields have 32 bits.
    const auto write = [&](std::uint32_t field, auto&& value) {
      out.message(field, [&] {
        for (std::uint32_t i = 0; i < dimensions; ++i) out.number(i + 1, std::min<std::uint64_t>(value(i), UINT32_MAX));
      });
    };
    write(fields::launch::kGridSize, [&](std::uint32_t i) { return global[i] / local[i] + (global[i] % local[i] != 0); });
    write(fields::launch::kWorkgroupSize, [&](std::uint32_t i) { return local[i]; });
  }
  const auto argument = [&](ArgumentName name, std::uint64_t text_id) {
    if (text_id == 0) return;
    out.message(fields::launch::kArgument, [&] {
      out.number(fields::launch::kNameId, id_of(name));
      out.number(fields::launch::kStringId, text_id);
    });
  };
  argument(ArgumentName::global, global_text);
  argument(ArgumentName::offset, offset_text);
  out.flush();
  return text;
}

}  // namespace xpu::profiler

#pragma once

#include <cstdint>

/// Numbers of the fields and enumerations of Perfetto's trace format that we write; a file is a sequence of packets.
namespace xpu::profiler::perfetto {

inline constexpr std::uint32_t kPacket = 1;

namespace packet {
inline constexpr std::uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                               kSequenceFlags = 13, kGpuRenderStageEvent = 53, kTimestampClockId = 58, kDefaults = 59,
                               kTrackDescriptor = 60, kExtensionDescriptor = 72, kGpuInfo = 128;
inline constexpr std::uint32_t kIncrementalStateCleared = 1, kNeedsIncrementalState = 2;  // of kSequenceFlags
}  // namespace packet

namespace clock_snapshot {
inline constexpr std::uint32_t kClock = 1, kPrimaryTraceClock = 2;
inline constexpr std::uint32_t kClockId = 1, kTimestamp = 2;  // of a clock
inline constexpr std::uint32_t kRealtime = 1, kMonotonic = 3;
inline constexpr std::uint32_t kFirstOfSequence = 64;  // clocks that only one sequence knows
}  // namespace clock_snapshot

/// What is written once and then only numbered. In each of these messages the number is field 1 and the text field 2.
namespace interned {
inline constexpr std::uint32_t kCategory = 1, kEventName = 2, kAnnotationName = 3, kGraphicsContext = 23, kGpuSpecification = 24,
                               kStringValue = 29, kComputeKernel = 1000, kComputeArgumentName = 1001;
inline constexpr std::uint32_t kId = 1, kText = 2;
}  // namespace interned

namespace graphics_context {
inline constexpr std::uint32_t kPid = 2;
}  // namespace graphics_context

/// A hardware queue, or a stage: what is done on one.
namespace gpu_specification {
inline constexpr std::uint32_t kDescription = 3, kCategory = 4;
inline constexpr std::uint32_t kOther = 0, kCompute = 2;  // of kCategory
}  // namespace gpu_specification

namespace compute_kernel {
inline constexpr std::uint32_t kDemangledName = 3, kArgument = 5;
}  // namespace compute_kernel

namespace track_descriptor {
inline constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kCounter = 8;
inline constexpr std::uint32_t kProcessPid = 1, kProcessName = 6, kProcessLabel = 8;
inline constexpr std::uint32_t kThreadPid = 1, kThreadTid = 2, kThreadName = 5;
inline constexpr std::uint32_t kCounterUnit = 3;
inline constexpr std::uint32_t kBytes = 3;  // of kCounterUnit
}  // namespace track_descriptor

namespace track_event {
inline constexpr std::uint32_t kCategoryId = 3, kAnnotation = 4, kType = 9, kNameId = 10, kTrackUuid = 11, kName = 23, kCounterValue = 30,
                               kDoubleCounterValue = 44, kFlowId = 47, kGpuCorrelation = 3000;
inline constexpr std::uint32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;  // of kType
inline constexpr std::uint32_t kSubmittedEventId = 1;                                       // of kGpuCorrelation
}  // namespace track_event

namespace annotation {
inline constexpr std::uint32_t kNameId = 1, kBool = 2, kUnsigned = 3, kSigned = 4, kDouble = 5, kString = 6, kName = 10, kList = 12,
                               kStringId = 17;
}  // namespace annotation

namespace gpu_render_stage_event {
inline constexpr std::uint32_t kEventId = 1, kDuration = 2, kContext = 5, kSubmissionId = 10, kGpuId = 11, kHardwareQueueId = 13,
                               kStageId = 14, kComputeKernelId = 19, kLaunch = 21;
}  // namespace gpu_render_stage_event

/// How a kernel was launched, and arguments of any name.
namespace launch {
inline constexpr std::uint32_t kGridSize = 1, kWorkgroupSize = 2, kArgument = 3;
inline constexpr std::uint32_t kNameId = 1, kSigned = 3, kUnsigned = 4, kDouble = 5, kStringId = 7;  // of an argument
}  // namespace launch

namespace gpu_info {
inline constexpr std::uint32_t kGpu = 1;
inline constexpr std::uint32_t kName = 1, kExtra = 6, kExtraKey = 1, kExtraValue = 2;
}  // namespace gpu_info

/// How a trace describes fields that its reader may not know.
namespace extension_descriptor {
inline constexpr std::uint32_t kSet = 1, kFile = 1;
inline constexpr std::uint32_t kName = 1;  // of a file, a message and a field
inline constexpr std::uint32_t kFilePackage = 2, kFileMessage = 4;
inline constexpr std::uint32_t kMessageField = 2, kMessageExtension = 6;
inline constexpr std::uint32_t kFieldExtendee = 2, kFieldNumber = 3, kFieldLabel = 4, kFieldType = 5, kFieldTypeName = 6;
inline constexpr std::uint32_t kOptional = 1, kRepeated = 3;  // of kFieldLabel
inline constexpr std::uint32_t kUint64 = 4, kMessage = 11;    // of kFieldType
}  // namespace extension_descriptor

}  // namespace xpu::profiler::perfetto

#pragma once

#include "base/probe.hpp"
#include "interceptors/opencl/objects.hpp"

namespace xpu::interceptors::opencl {

// What an object looks like to the subscriber. Nothing here calls a driver; each does nothing when nobody listens.
void publish(const Device& device) noexcept;
void publish(const Context& context) noexcept;
void publish(const Queue& queue) noexcept;
void publish(const Program& program) noexcept;
void publish(const Kernel& kernel) noexcept;
void publish_end(probe::ObjectKind kind, probe::Id id) noexcept;
/// `context` (may be null) knows how much is alive in it.
void publish_memory(Context* context, probe::MemoryAction action, probe::MemoryType type, std::uint64_t address,
                    std::uint64_t bytes) noexcept;

/// Publishes every living object: to a new subscriber, in a forked child, when a recording resumes.
void republish_objects() noexcept;

}  // namespace xpu::interceptors::opencl

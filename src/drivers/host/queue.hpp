#pragma once

#include <memory>

#include "drivers/host/queue_state.hpp"
#include "xpu/hal/queue.hpp"

namespace xpu::drivers::host {

/// A way to a queue, with a sink of its own.
class HostQueue final : public hal::Queue {
 public:
  HostQueue(std::shared_ptr<QueueState> state, hal::CompletionSink* sink) noexcept : state_(std::move(state)), sink_(sink) {}

  Result<> launch(const hal::Launch& launch, const hal::Submission& submission) override;
  Result<> copy(void* destination, const void* source, std::size_t bytes, const hal::Submission& submission) override;
  Result<> fill(void* destination, std::span<const std::byte> pattern, std::size_t bytes, const hal::Submission& submission) override;
  Result<> host_function(const hal::HostFunction& function, const hal::Submission& submission) override;
  Result<> record(hal::Event& event) override;
  Result<> wait(const hal::Event& event) override;
  Result<bool> query() override { return state_->has_ended(); }
  Result<> synchronize_blocking() override;
  bool would_wait_for_itself() const noexcept override;
  void* native_handle() const noexcept override { return state_.get(); }

 private:
  /// Whether the operation runs here and now; `state_` is begun then.
  bool begins_here(bool is_promised) noexcept;
  template <typename T, typename FillIn>
  Result<> append(const hal::Submission& submission, std::size_t extra_bytes, FillIn&& fill_in);

  const std::shared_ptr<QueueState> state_;
  hal::CompletionSink* const sink_;
};

}  // namespace xpu::drivers::host

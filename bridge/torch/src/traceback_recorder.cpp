#include "traceback_recorder.hpp"

#include <torch/csrc/profiler/combined_traceback.h>

#include <deque>
#include <mutex>

namespace xpu_torch {
namespace {

class TracebackRecorder final : public xpu::memory::StackRecorder {
 public:
  explicit TracebackRecorder(bool with_cpp) : with_cpp_(with_cpp) {}

  xpu::memory::StackId record() noexcept override {
    try {
      auto traceback = torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true, with_cpp_);
      const std::lock_guard lock(mutex_);
      tracebacks_.push_back(std::move(traceback));
      return static_cast<xpu::memory::StackId>(tracebacks_.size());
    } catch (...) {
      return 0;
    }
  }

  std::vector<Frame> frames(xpu::memory::StackId stack) const override {
    std::shared_ptr<torch::CapturedTraceback> traceback;
    {
      const std::lock_guard lock(mutex_);
      if (stack == 0 || stack > tracebacks_.size()) return {};
      traceback = tracebacks_[stack - 1];
    }
    const torch::SymbolizedTracebacks symbolized = torch::symbolize({traceback.get()});
    std::vector<Frame> frames;
    for (const std::uint64_t index : symbolized.tracebacks.at(0)) {
      const torch::unwind::Frame& frame = symbolized.all_frames.at(index);
      frames.push_back({frame.filename, frame.funcname, static_cast<std::uint32_t>(frame.lineno)});
    }
    return frames;
  }

 private:
  const bool with_cpp_;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<torch::CapturedTraceback>> tracebacks_;  // by number, from 1
};

}  // namespace

std::shared_ptr<xpu::memory::StackRecorder> make_traceback_recorder(bool with_cpp) { return std::make_shared<TracebackRecorder>(with_cpp); }

}  // namespace xpu_torch

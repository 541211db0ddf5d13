#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "xpu/xpu.hpp"

/// What the programs share that use libxpu as any program does and count by themselves what they ask it to do.
namespace xpu::runtime_programs {

/// Operations that were accepted.
struct Counts {
  std::atomic<std::uint64_t> launches{0}, copies{0}, fills{0}, functions{0};

  std::uint64_t total() const { return launches + copies + fills + functions; }
  /// "WHO PID submitted N launches N copies N fills N functions N", on one line of standard output.
  void print(const char* who) const;
};

/// A stream with memory of its own, on which the same few operations follow each other again and again.
class Worker {
 public:
  static constexpr std::uint64_t kOperationsPerRound = 6;

  explicit Worker(Counts& counts);
  /// Fill, copy to the device, launch, host function, launch, copy back: all asynchronous.
  void round();
  /// Waits; ends the program with exit code 1 when the last round computed something wrong.
  void finish();
  const Stream& stream() const { return stream_; }

 private:
  static constexpr std::uint32_t kItems = 256;

  Counts& counts_;
  Stream stream_;
  Kernel add_;
  Buffer numbers_;
  std::vector<std::uint32_t> input_, output_;
  std::uint64_t rounds_ = 0;
  std::atomic<std::uint64_t> seen_by_functions_{0};
};

struct Options {
  std::uint64_t count = 100;
  std::vector<std::string> names;
};
struct Mode {
  const char* name;
  const char* what;
  int (*run)(const Options& options);
};
/// Ended by one without a name.
extern const Mode kWorkModes[];
extern const Mode kEndModes[];

}  // namespace xpu::runtime_programs

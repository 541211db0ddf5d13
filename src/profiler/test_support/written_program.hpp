#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "xpu/profiler/record_source.hpp"
#include "xpu/trace/live_capture.hpp"
#include "xpu/trace/records.hpp"

namespace xpu::profiler::test_support {

/// The records of a program that runs step by step, each with the thread and the moment of its writing, so that they can be taken as a
/// capture takes them: one thread after the other, while the program goes on.
class WrittenProgram {
 public:
  static constexpr std::uint32_t kSubmitters = 3;
  /// 1 and 2 are in order, 3 is out of order; 4 is in order, of a device whose clock has to be mapped.
  static constexpr std::uint32_t kQueues = 4, kOutOfOrderQueue = 3, kMappedQueue = 4;

  WrittenProgram();

  void let_time_pass(std::uint64_t ns) { now_ns_ += ns; }
  struct Submission {
    std::uint64_t bytes = 0;  ///< Of a copy; 0: it is a kernel.
    std::uint32_t external_ids = 0;
    bool is_refused = false;
  };
  void submit(std::uint32_t writer, std::uint32_t queue) { submit(writer, queue, Submission()); }
  void submit(std::uint32_t writer, std::uint32_t queue, const Submission& submission);
  /// The oldest command of the queue ends; of one out of order, that at `choice`. Some fail, some have no times. Nothing where none is
  /// pending.
  void complete(std::uint32_t queue, std::uint32_t choice);
  /// The same, and the record finds no room.
  void lose_completion(std::uint32_t queue);
  /// Of an operation that was submitted before the records begin.
  void complete_foreign(std::uint32_t queue);
  void call(std::uint32_t writer, bool begins_only);
  void wait(std::uint32_t writer, std::uint32_t queue);
  void use_memory(std::uint32_t writer);
  void begin_range(std::uint32_t writer);
  void end_range(std::uint32_t writer);
  void mark(std::uint32_t writer);
  /// A submission that finds no room, and a record that is none.
  void lose(std::uint32_t writer, std::uint32_t queue);
  void read_clock();

  trace::RecordBuffer texts() const { return trace::RecordBuffer(texts_); }
  /// All of it, thread by thread.
  std::unique_ptr<RecordSource> source() const;

  /// Takes the records little by little.
  class Taking {
   public:
    /// `program` must outlive it.
    Taking(const WrittenProgram& program, std::uint32_t seed) : program_(program), random_(seed) {}
    /// So many records are written meanwhile.
    void let_pass(std::size_t records) { written_ += records; }
    /// What was written since the last time, thread by thread in any order; while one is looked at the others write on.
    std::vector<trace::RecordBuffer> take();
    bool has_taken_all() const;

   private:
    const WrittenProgram& program_;
    std::mt19937 random_;
    std::size_t written_ = 0;
    std::array<std::size_t, kSubmitters + 3> next_{};  // by thread
  };

 private:
  using Bytes = std::vector<std::byte>;
  struct Written {
    std::uint32_t thread;
    Bytes record;
  };
  struct Pending {
    std::uint64_t operation, enter_ns;
    std::uint32_t sequence;
  };
  struct Queue {
    std::deque<Pending> pending;
    std::uint32_t sequence = 0;
    std::uint64_t last_end_ns = 0;
  };
  /// Threads of the device, one a queue but for the fourth, are behind the submitters.
  static std::uint32_t completer_of(std::uint32_t queue) { return kSubmitters + 1 + queue % 2; }

  std::uint32_t text(const char* text);
  template <typename Record>
  void write(std::uint32_t thread, trace::RecordKind kind, Record record, std::uint32_t flags = 0);
  template <typename Record>
  static Bytes encode(trace::RecordKind kind, Record record, std::uint32_t flags);
  bool take_pending(std::uint32_t queue, std::uint32_t choice, Pending& pending);
  std::uint64_t ticks(std::uint32_t queue, std::uint64_t ns) const;

  std::vector<Written> written_;
  Bytes texts_;
  std::uint32_t next_text_ = 1;
  std::uint64_t now_ns_ = 1'000'000, alive_bytes_ = 0, completions_ = 0, next_external_ = 1, foreign_ = 0;
  std::array<Queue, kQueues + 1> queues_;
  std::array<std::uint64_t, kSubmitters + 1> operations_{};
  std::uint32_t launch_, query_, wait_, range_, mark_;
};

}  // namespace xpu::profiler::test_support

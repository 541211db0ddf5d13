#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/stack.hpp"
#include "xpu/memory/history.hpp"

namespace xpu::memory {
namespace {

/// An interpreter's frame, "train.py:17 step".
StackRecorder::Frame provided_frame(std::string_view text) {
  StackRecorder::Frame frame;
  const std::size_t blank = text.find(' ', text.rfind(':') == std::string_view::npos ? 0 : text.rfind(':'));
  const std::string_view place = text.substr(0, blank);
  frame.name = blank == std::string_view::npos ? std::string() : std::string(text.substr(blank + 1));
  const std::size_t colon = place.rfind(':');
  frame.file = place.substr(0, colon);
  if (colon != std::string_view::npos) std::from_chars(place.data() + colon + 1, place.data() + place.size(), frame.line);
  return frame;
}

/// A return address: the function and its file are those of the call before it. Where nobody knows a name, its place in the file stands for
/// it, which tools that read debug information take.
StackRecorder::Frame native_frame(std::uintptr_t address) {
  StackRecorder::Frame frame;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address - 1), &info) == 0) return frame;
  if (info.dli_fname != nullptr) frame.file = info.dli_fname;
  if (info.dli_sname == nullptr) {
    frame.name = fmt::format("+{:#x}", address - 1 - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
    return frame;
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
  frame.name = name == nullptr ? info.dli_sname : name.get();
  return frame;
}

class CallStacks final : public StackRecorder {
 public:
  CallStacks() { base::prepare_call_stacks(); }

  StackId record() noexcept override {
    base::CallStack stack;
    base::capture_call_stack(stack, 1);  // without this function
    Key key;
    key.reserve(stack.count + stack.provided_count + 1);
    key.push_back(stack.provided_count);
    key.insert(key.end(), stack.provided, stack.provided + stack.provided_count);
    key.insert(key.end(), stack.addresses, stack.addresses + stack.count);
    const base::MutexLock lock(mutex_);
    const auto [known, is_new] = ids_.try_emplace(std::move(key), static_cast<StackId>(stacks_.size() + 1));
    if (is_new) stacks_.push_back(&known->first);
    return known->second;
  }

  std::vector<Frame> frames(StackId stack) const override {
    const Key* key = nullptr;
    {
      const base::MutexLock lock(mutex_);
      if (stack == 0 || stack > stacks_.size()) return {};
      key = stacks_[stack - 1];
    }
    std::vector<Frame> frames;
    const std::size_t provided = (*key)[0];
    for (std::size_t index = 1; index < key->size(); ++index) {
      frames.push_back(index <= provided ? provided_frame(probe::text_of(static_cast<probe::Id>((*key)[index])))
                                         : native_frame((*key)[index]));
    }
    return frames;
  }

 private:
  /// The number of provided frames, those, and return addresses.
  using Key = std::vector<std::uintptr_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      std::uint64_t hash = key.size();
      for (const std::uintptr_t part : key) hash = (hash ^ part) * 0x9e3779b97f4a7c15;
      return static_cast<std::size_t>(hash ^ hash >> 29);
    }
  };

  mutable base::Mutex mutex_;
  std::unordered_map<Key, StackId, Hash> ids_ XPU_GUARDED_BY(mutex_);  // nodes stay where they are
  std::vector<const Key*> stacks_ XPU_GUARDED_BY(mutex_);              // by id
};

}  // namespace

std::shared_ptr<StackRecorder> make_call_stack_recorder() { return std::make_shared<CallStacks>(); }

}  // namespace xpu::memory

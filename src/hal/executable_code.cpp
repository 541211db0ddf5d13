#include "hal/executable_code.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace xpu::hal {

Result<std::shared_ptr<const ExecutableCode>> ExecutableCode::copy_of(std::span<const std::byte> code) {
  void* pages = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    return Error{ErrorCode::out_of_host_memory, fmt::format("there is no memory for {} bytes of machine code", code.size()), errno};
  }
  const std::shared_ptr<const ExecutableCode> result(new ExecutableCode(pages, code.size()));
  std::memcpy(pages, code.data(), code.size());
  if (mprotect(pages, code.size(), PROT_READ | PROT_EXEC) != 0) {
    return Error{ErrorCode::unsupported, "this system does not let a process make machine code executable", errno};
  }
  auto* const begin = static_cast<char*>(pages);
  __builtin___clear_cache(begin, begin + code.size());
  return result;
}

ExecutableCode::~ExecutableCode() { munmap(pages_, bytes_); }

}  // namespace xpu::hal

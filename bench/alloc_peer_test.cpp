// The adapter finds at the end of a case whether the allocator and it have counted the same. Usage: alloc_peer_test PEER.so
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "alloc_peer/peer_api.h"

namespace {

void* reserve(std::size_t bytes, std::size_t align) {
  void* const begin = mmap(nullptr, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(begin) + align - 1) / align * align);
}

/// A case in a process of its own, in which this many bytes too few are said to be freed. The signal that ends it; 0 for none.
int signal_of_case(const xa_peer& peer, std::size_t missing_bytes) {
  const pid_t child = fork();
  if (child == 0) {
    const xa_upstream upstream{[](std::size_t, std::size_t) -> void* { return nullptr; },
                               [](void*, std::size_t) {},
                               reserve,
                               [](void*, std::size_t) {},
                               [](void*, std::size_t) { return 0; },
                               [](void*, std::size_t) {}};
    if (peer.init(&upstream, std::size_t{1} << 30) != 0) _exit(1);
    constexpr std::size_t kBytes = 1'000;
    for (int pair = 0; pair < 100; ++pair) peer.free(peer.alloc(kBytes, 1), kBytes, 1);
    void* const kept = peer.alloc(kBytes, 1);
    peer.free(peer.alloc(kBytes, 2), kBytes - missing_bytes, 2);
    std::printf("a case with %zu bytes missing; %p stays\n", missing_bytes, kept);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) std::abort();
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  return WEXITSTATUS(status) == 0 ? 0 : -1;
}

}  // namespace

int main(int argc, char** argv) {
  void* const library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  auto* const get_peer = library == nullptr ? nullptr : reinterpret_cast<const xa_peer* (*)()>(dlsym(library, "xa_get_peer"));
  if (get_peer == nullptr) {
    std::fprintf(stderr, "usage: alloc_peer_test PEER.so\n");
    return 2;
  }
  const int right = signal_of_case(*get_peer(), 0), wrong = signal_of_case(*get_peer(), 1);
  std::printf("ends by signal %d when all is right, by %d when a byte is missing (%d)\n", right, wrong, SIGABRT);
  return right == 0 && wrong == SIGABRT ? 0 : 1;
}

#ifndef XPU_ANNOTATE_H
#define XPU_ANNOTATE_H

/*
 * Your own marks on the timeline: ranges, marks, counters and names. Plain C (C11 or C++), this header alone: nothing to link.
 *
 *     xpu_annotate_push("load");  ...  xpu_annotate_pop();
 *
 * In a program that is not recorded a call costs a test of a null pointer and a decrement, and at most every 1,024th call asks the dynamic
 * linker whether the library has been loaded meanwhile (`xpu record` brings it in with the first use of OpenCL, privately).
 * Any thread; texts are copied before a function returns; null texts are taken as empty.
 */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a recorded program's libxpu offers. Weak: null unless the program itself links to it. Call the functions below instead. */
extern void xpu_annotate_publish(uint32_t type, uint64_t handle, const char* text, double value) __attribute__((weak));

typedef void (*xpu_annotate_function)(uint32_t type, uint64_t handle, const char* text, double value);

struct xpu_annotate_state {
  xpu_annotate_function function;
  uint32_t calls_until_lookup; /* 0 means now. */
  uint32_t next_wait;
};

/* One per program: identical definitions in every translation unit are merged by the linker. */
__attribute__((weak, visibility("hidden"))) struct xpu_annotate_state xpu_annotate_state_ = {NULL, 0, 1};

static inline xpu_annotate_function xpu_annotate_look_up_(void) {
  xpu_annotate_function function = NULL;
  uint32_t wait = __atomic_load_n(&xpu_annotate_state_.next_wait, __ATOMIC_RELAXED);
  /* First, so that other threads do not come here too. */
  __atomic_store_n(&xpu_annotate_state_.calls_until_lookup, wait, __ATOMIC_RELAXED);
  if (wait < 1024) __atomic_store_n(&xpu_annotate_state_.next_wait, wait * 2, __ATOMIC_RELAXED);
  if (xpu_annotate_publish != NULL) {
    function = xpu_annotate_publish;
  } else {
    /* By its soname: this also finds a library that was loaded privately, and never loads one. */
    void* library = dlopen("libxpu.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) {
      /* The handle is kept: the library must stay while we hold its function. */
      *(void**)(&function) = dlsym(library, "xpu_annotate_publish");
    }
  }
  if (function != NULL) __atomic_store_n(&xpu_annotate_state_.function, function, __ATOMIC_RELEASE);
  return function;
}

static inline void xpu_annotate_send_(uint32_t type, uint64_t handle, const char* text, double value) {
  xpu_annotate_function function = __atomic_load_n(&xpu_annotate_state_.function, __ATOMIC_ACQUIRE);
  if (function == NULL) {
    uint32_t left = __atomic_load_n(&xpu_annotate_state_.calls_until_lookup, __ATOMIC_RELAXED);
    if (left != 0) {
      __atomic_store_n(&xpu_annotate_state_.calls_until_lookup, left - 1, __ATOMIC_RELAXED);
      return;
    }
    function = xpu_annotate_look_up_();
    if (function == NULL) return;
  }
  function(type, handle, text, value);
}

/* Begins a range on this thread. Ranges nest. */
static inline void xpu_annotate_push(const char* text) { xpu_annotate_send_(0, 0, text, 0.0); }
/* Ends this thread's innermost range. */
static inline void xpu_annotate_pop(void) { xpu_annotate_send_(1, 0, NULL, 0.0); }
/* A moment on this thread. */
static inline void xpu_annotate_mark(const char* text) { xpu_annotate_send_(2, 0, text, 0.0); }
/* The value that the counter `name` has from now on. */
static inline void xpu_annotate_counter(const char* name, double value) { xpu_annotate_send_(3, 0, name, value); }
/* Names a queue by its native handle: a cl_command_queue, a ze_command_queue_handle_t. */
static inline void xpu_annotate_name_queue(const void* queue, const char* name) {
  xpu_annotate_send_(4, (uint64_t)(uintptr_t)queue, name, 0.0);
}
/*
 * A collective or a message of this thread, for a library that communicates: what it is called, which communicator (any number that tells
 * them apart), how much it sends; and, when it is over, how much it received. They nest, three deep; deeper ones are not told.
 */
static inline void xpu_annotate_begin_communication(const char* name, uint64_t communicator, uint64_t send_bytes) {
  xpu_annotate_send_(6, communicator, name, (double)send_bytes);
}
static inline void xpu_annotate_end_communication(uint64_t receive_bytes) { xpu_annotate_send_(7, receive_bytes, NULL, 0.0); }
/* Names the calling thread. */
static inline void xpu_annotate_name_thread(const char* name) { xpu_annotate_send_(5, 0, name, 0.0); }

#ifdef __cplusplus
}
#endif

#endif /* XPU_ANNOTATE_H */

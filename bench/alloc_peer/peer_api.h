#pragma once

#include <stddef.h>

/* The interface between an allocator under measurement and the program that measures it: a shared object that exports xa_get_peer(). The
 * device below is a fake one that hands out addresses and counts them; nobody may touch the memory. */
#ifdef __cplusplus
extern "C" {
#endif

struct xa_upstream {
  void* (*alloc)(size_t bytes, size_t align); /* null beyond the capacity */
  void (*free)(void* p, size_t bytes);
  void* (*reserve)(size_t bytes, size_t align); /* addresses only */
  void (*unreserve)(void* p, size_t bytes);
  int (*commit)(void* p, size_t bytes); /* 0, or -1 beyond the capacity */
  void (*decommit)(void* p, size_t bytes);
};

struct xa_peer {
  const char* name;
  int address_only;
  int thread_safe;
  size_t max_size; /* of a request; 0 = no limit */
  int (*init)(const struct xa_upstream* up, size_t capacity);
  void* (*alloc)(size_t bytes, int stream);
  void (*free)(void* p, size_t bytes, int stream); /* the stream of the allocation */
  void (*record)(void* p, int stream);             /* another stream uses it */
  void (*sync)(int stream);                        /* all work of the stream so far is done */
  void (*trim)(void);                              /* what is cached goes back */
};

const struct xa_peer* xa_get_peer(void);

#ifdef __cplusplus
}
#endif

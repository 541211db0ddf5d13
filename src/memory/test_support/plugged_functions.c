/* An allocator of somebody else's, in a shared library of its own. */
#include <stddef.h>
#include <stdlib.h>

#define VISIBLE __attribute__((visibility("default")))

VISIBLE size_t plugged_live_bytes = 0;

VISIBLE void *plugged_allocate(size_t bytes, int device, void *queue) {
  (void)device;
  (void)queue;
  plugged_live_bytes += bytes;
  return malloc(bytes);
}

VISIBLE void plugged_free(void *address, size_t bytes, int device, void *queue) {
  (void)device;
  (void)queue;
  plugged_live_bytes -= bytes;
  free(address);
}

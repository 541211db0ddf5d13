/* Stands in for libxpu.so.0 in annotate_late_test.cpp: counts what reaches it. */
#include <stdint.h>

#define VISIBLE __attribute__((visibility("default")))
VISIBLE void xpu_annotate_publish(uint32_t type, uint64_t handle, const char* text, double value);
VISIBLE uint32_t stand_in_calls(void);

static uint32_t g_calls = 0;

void xpu_annotate_publish(uint32_t type, uint64_t handle, const char* text, double value) {
  (void)type, (void)handle, (void)text, (void)value;
  ++g_calls;
}

uint32_t stand_in_calls(void) { return g_calls; }

/* The header as a C program includes it: C11, warnings as errors, nothing linked. */
#include "xpu/annotate.h"

void annotate_everything_from_c(void* queue);

void annotate_everything_from_c(void* queue) {
  xpu_annotate_name_thread("worker");
  xpu_annotate_name_queue(queue, "copies");
  xpu_annotate_push("load");
  xpu_annotate_mark("half");
  xpu_annotate_counter("bytes", 1.5);
  xpu_annotate_begin_communication("allreduce", 7, 4096);
  xpu_annotate_end_communication(8192);
  xpu_annotate_pop();
}

/* The header for C programs: it compiles as strict C11, and a program that uses it runs with the library and without. */
#include "xpu/annotate.h"

int main(void) {
  int step;
  xpu_annotate_name_thread("main");
  for (step = 0; step < 3; ++step) {
    xpu_annotate_push("step");
    xpu_annotate_counter("step", step);
    xpu_annotate_pop();
  }
  xpu_annotate_mark("done");
  return 0;
}

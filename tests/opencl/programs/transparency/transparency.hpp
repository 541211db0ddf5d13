#pragma once

#include "programs/support.hpp"

/// Prints what a program can see and a tracer might change. No line contains a time, an address or a process id, so two runs on one driver
/// print the same.
namespace xpu::opencl_programs::transparency {

void print_queues(const Setup& setup);
void print_objects(const Setup& setup);
void print_events(const Setup& setup);
void print_errors(const Setup& setup);

/// Null where the specification wants an error code and PoCL dereferences it.
void print_null_handles(const Setup& setup);

/// Reference counts. Some drivers (PoCL) count references of their own here, and those come and go with their threads.
void print_references(const Setup& setup);

}  // namespace xpu::opencl_programs::transparency

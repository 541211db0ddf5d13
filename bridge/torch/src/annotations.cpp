#include "annotations.hpp"

#include <ATen/record_function.h>

#include "xpu/annotate.h"

namespace xpu_torch {
namespace {

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  xpu_annotate_push(function.name());
  return nullptr;
}
void end(const at::RecordFunction&, at::ObserverContext*) { xpu_annotate_pop(); }

}  // namespace

void publish_operators() {
  at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end)
                            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE,
                                     at::RecordScope::TORCHSCRIPT_FUNCTION}));
}

}  // namespace xpu_torch

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <array>
#include <cmath>
#include <limits>

#include "run_on_stream.hpp"

// Operators for which PyTorch takes another way on an XPU than on a CPU, one that a CPU wheel does not have: they are led back here.
namespace xpu_torch {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using std::optional;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

Tensor to_device(const Tensor& made, int device) {
  if (!made.defined()) return made;
  return device_view(made, take_over(made.storage(), device));
}
ThreeTensors to_device(const ThreeTensors& made, int device) {
  return {to_device(std::get<0>(made), device), to_device(std::get<1>(made), device), to_device(std::get<2>(made), device)};
}
optional<Tensor> cpu_alias_of(const optional<Tensor>& tensor) {
  return tensor && tensor->defined() ? optional(cpu_alias(*tensor)) : std::nullopt;
}

// PyTorch asks for these two where it knows no library for the device.
Tensor convolution(const Tensor& input, const Tensor& weight, const optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                   IntArrayRef dilation, bool transposed, IntArrayRef output_padding, std::int64_t groups) {
  const int device = input.device().index();
  const Tensor x = cpu_alias(input), w = cpu_alias(weight);
  const optional<Tensor> b = cpu_alias_of(bias);
  Tensor made;
  run_on_stream("xpu_convolution", device, geometry_of(input),
                [&] { made = at::convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups); });
  return to_device(made, device);
}
ThreeTensors convolution_backward(const Tensor& gradient, const Tensor& input, const Tensor& weight, IntArrayRef stride,
                                  IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                  std::int64_t groups, std::array<bool, 3> wanted) {
  const int device = input.device().index();
  const Tensor g = cpu_alias(gradient), x = cpu_alias(input), w = cpu_alias(weight);
  const std::int64_t channels[1] = {weight.size(transposed ? 1 : 0) * (transposed ? groups : 1)};
  const at::OptionalIntArrayRef bias_sizes = wanted[2] ? at::OptionalIntArrayRef(channels) : at::OptionalIntArrayRef();
  ThreeTensors made;
  run_on_stream("xpu_convolution_backward", device, geometry_of(gradient), [&] {
    made = at::convolution_backward(g, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, wanted);
  });
  return to_device(made, device);
}

// PyTorch hands the tensors of an XPU over as they are; the CPU's kernels read them as if they were contiguous.
ThreeTensors group_norm(const Tensor& input, const optional<Tensor>& weight, const optional<Tensor>& bias, std::int64_t n,
                        std::int64_t channels, std::int64_t pixels, std::int64_t groups, double epsilon) {
  const int device = input.device().index();
  const Tensor x = cpu_alias(input);
  const optional<Tensor> w = cpu_alias_of(weight), b = cpu_alias_of(bias);
  ThreeTensors made;
  run_on_stream("xpu_group_norm", device, geometry_of(input), [&] {
    made = at::native_group_norm(x.contiguous(), w ? optional(w->contiguous()) : std::nullopt, b ? optional(b->contiguous()) : std::nullopt,
                                 n, channels, pixels, groups, epsilon);
  });
  return to_device(made, device);
}
ThreeTensors group_norm_backward(const Tensor& gradient, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const optional<Tensor>& weight, std::int64_t n, std::int64_t channels, std::int64_t pixels,
                                 std::int64_t groups, std::array<bool, 3> wanted) {
  const int device = input.device().index();
  const Tensor g = cpu_alias(gradient), x = cpu_alias(input), m = cpu_alias(mean), r = cpu_alias(rstd);
  const optional<Tensor> w = cpu_alias_of(weight);
  ThreeTensors made;
  run_on_stream("xpu_group_norm_backward", device, geometry_of(input), [&] {
    made = at::native_group_norm_backward(g.contiguous(), x.contiguous(), m.contiguous(), r.contiguous(),
                                          w ? optional(w->contiguous()) : std::nullopt, n, channels, pixels, groups, wanted);
  });
  return to_device(made, device);
}

// The library for attention is chosen by the device's type, and a CPU wheel has none for an XPU: it is computed from its parts.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const optional<Tensor>& mask, double dropout, bool is_causal,
                 optional<double> scale, bool enable_gqa) {
  optional<Tensor> added = mask;
  if (mask && mask->defined() && mask->scalar_type() == at::kBool) {
    added = at::zeros_like(*mask, query.options()).masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, added, dropout, is_causal, std::nullopt, scale, enable_gqa));
}
std::int64_t attention_from_its_parts(const Tensor&, const Tensor&, const Tensor&, const optional<Tensor>&, double, bool, optional<double>,
                                      bool) {
  return 0;  // SDPBackend::math
}

// Recurrent layers have one operator for a whole cell on devices like this one. Gates lie behind one another: input, forget, cell, output.
ThreeTensors lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cell, const optional<Tensor>& input_bias,
                       const optional<Tensor>& hidden_bias) {
  Tensor gates = input_gates + hidden_gates;
  if (input_bias && input_bias->defined()) gates = gates + *input_bias + *hidden_bias;
  const std::vector<Tensor> parts = gates.chunk(4, 1);
  const Tensor input = parts[0].sigmoid(), forget = parts[1].sigmoid(), candidate = parts[2].tanh(), output = parts[3].sigmoid();
  const Tensor new_cell = forget * cell + input * candidate;
  return {output * new_cell.tanh(), new_cell, at::cat({input, forget, candidate, output}, 1)};
}
ThreeTensors lstm_cell_backward(const optional<Tensor>& hidden_gradient, const optional<Tensor>& cell_gradient, const Tensor& cell,
                                const Tensor& new_cell, const Tensor& workspace, bool has_bias) {
  const std::vector<Tensor> parts = workspace.chunk(4, 1);
  const Tensor &input = parts[0], &forget = parts[1], &candidate = parts[2], &output = parts[3];
  const Tensor squashed = new_cell.tanh();
  const Tensor of_hidden = hidden_gradient && hidden_gradient->defined() ? *hidden_gradient : at::zeros_like(new_cell);
  Tensor of_cell = of_hidden * output * (1 - squashed * squashed);
  if (cell_gradient && cell_gradient->defined()) of_cell = of_cell + *cell_gradient;
  const Tensor of_gates = at::cat({of_cell * candidate * input * (1 - input), of_cell * cell * forget * (1 - forget),
                                   of_cell * input * (1 - candidate * candidate), of_hidden * squashed * output * (1 - output)},
                                  1);
  return {of_gates, of_cell * forget, has_bias ? of_gates.sum(0) : Tensor()};
}

// Gates: reset, update, new.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hidden,
                                    const optional<Tensor>& input_bias, const optional<Tensor>& hidden_bias) {
  const bool has_bias = input_bias && input_bias->defined();
  const std::vector<Tensor> of_input = (has_bias ? input_gates + *input_bias : input_gates).chunk(3, 1);
  const std::vector<Tensor> of_hidden = (has_bias ? hidden_gates + *hidden_bias : hidden_gates).chunk(3, 1);
  const Tensor reset = (of_input[0] + of_hidden[0]).sigmoid(), update = (of_input[1] + of_hidden[1]).sigmoid();
  const Tensor candidate = (of_input[2] + reset * of_hidden[2]).tanh();
  return {candidate + update * (hidden - candidate), at::cat({reset, update, candidate, hidden, of_hidden[2]}, 1)};
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& gradient, const Tensor& workspace, bool has_bias) {
  const std::vector<Tensor> parts = workspace.chunk(5, 1);
  const Tensor &reset = parts[0], &update = parts[1], &candidate = parts[2], &hidden = parts[3], &of_hidden = parts[4];
  const Tensor of_candidate = gradient * (1 - update) * (1 - candidate * candidate);
  const Tensor of_update = gradient * (hidden - candidate) * update * (1 - update);
  const Tensor of_reset = of_candidate * of_hidden * reset * (1 - reset);
  const Tensor of_input_gates = at::cat({of_reset, of_update, of_candidate}, 1);
  const Tensor of_hidden_gates = at::cat({of_reset, of_update, of_candidate * reset}, 1);
  return {of_input_gates, of_hidden_gates, gradient * update, has_bias ? of_input_gates.sum(0) : Tensor(),
          has_bias ? of_hidden_gates.sum(0) : Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XPU_TORCH_KEY, library) {
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolution_backward);
  library.impl("native_group_norm", &group_norm);
  library.impl("native_group_norm_backward", &group_norm_backward);
  library.impl("_fused_sdp_choice", &attention_from_its_parts);
  library.impl("scaled_dot_product_attention", &attention);
  library.impl("_thnn_fused_lstm_cell", &lstm_cell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  library.impl("_thnn_fused_gru_cell", &gru_cell);
  library.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}
// With autograd, too: else its parts have no gradients.
TORCH_LIBRARY_IMPL(aten, XPU_TORCH_AUTOGRAD_KEY, library) { library.impl("scaled_dot_product_attention", &attention); }

}  // namespace xpu_torch

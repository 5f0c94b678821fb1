// What torch.nn.utils has: parameters as one vector, reparametrised weights, and batch norm folded into the
// layer before it. Packed sequences are in nn/packed_sequence.h, clipping of gradients in optim/clip.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/nn/conv.h"
#include "tern/nn/linear.h"
#include "tern/nn/module.h"
#include "tern/nn/norm.h"

namespace tern::nn::utils {

/// The numbers of all parameters one after the other, [their number]. Differentiable. Throws ValueError for
/// no parameter, DeviceError where they are on several devices.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
/// Copies the parts of such a vector into the parameters. Throws ShapeError unless the sizes fit; then
/// nothing has been changed.
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

/// Names in state dicts: those of torch.nn.utils.weight_norm and spectral_norm ("weight_g"), or of
/// torch.nn.utils.parametrizations ("parametrizations.weight.original0").
enum class NormNames : uint8_t { Hook, Parametrization };

struct WeightNormOptions {
  /// The dimension of the slices that have a norm each; nothing: one norm for all.
  std::optional<int64_t> dim = 0;
  NormNames names = NormNames::Hook;
};

/// Splits a parameter of the module, in two that are learned in its place: g, its norms over all dimensions
/// but `dim`, and v, which begins as the parameter. Before each call of the module the parameter becomes g *
/// v / ||v|| (Salimans and Kingma, "Weight normalization", 2016). Parameters and state dict of the module
/// have "<name>_g" and "<name>_v" (original0 and original1 with the names of parametrizations) after its
/// others. Optimizers must be made after it. Only module(x) computes the parameter, not a layer around the
/// module that reads it itself. Throws ValueError for a name that is no parameter of the module's own or is
/// computed already, IndexError for a dimension that is not there.
Module& weight_norm(Module& module, std::string_view name = "weight", const WeightNormOptions& options = {});
/// Makes the parameter one of the module's own again, with the numbers that it has now. Throws ValueError
/// where there is no weight_norm of it.
Module& remove_weight_norm(Module& module, std::string_view name = "weight");

struct SpectralNormOptions {
  int64_t n_power_iterations = 1;
  double eps = 1e-12;
  /// The rows of the matrix; without it 1 for transposed convolutions, else 0.
  std::optional<int64_t> dim = std::nullopt;
  NormNames names = NormNames::Hook;
};

/// Divides a parameter of the module by its largest singular value, as a matrix, which `n_power_iterations`
/// steps of power iteration estimate before each call in training (Miyato et al., "Spectral normalization for
/// generative adversarial networks", 2018). What is learned is "<name>_orig"; the buffers "<name>_u" and
/// "<name>_v" are the singular vectors ("original", "0._u" and "0._v" with the names of parametrizations).
/// As weight_norm otherwise.
Module& spectral_norm(Module& module, std::string_view name = "weight",
                      const SpectralNormOptions& options = {});
Module& remove_spectral_norm(Module& module, std::string_view name = "weight");

/// The dict as plain modules take it: g and v of weight norms, original and singular vectors of spectral
/// norms, under either kind of names, become the weight that they give, in their place. What belongs to no
/// norm stays. Throws CheckpointError, naming the entry, where parts do not fit each other.
StateDict fold_norms(const StateDict& dict);

/// A copy of the layer that gives what the batch norm after it gives of its result with running statistics:
/// both must be in evaluation mode (ValueError), and the batch norm must have statistics.
template <int N, bool kTransposed>
ConvLayer<N, kTransposed> fuse_conv_bn_eval(const ConvLayer<N, kTransposed>& conv, const BatchNorm& norm);
Linear fuse_linear_bn_eval(const Linear& linear, const BatchNorm& norm);

namespace detail {
/// Weight and bias of a layer with the batch norm behind it; `dim` is that of the weight's output channels.
void fuse_batch_norm(const char* op, const Module& layer, Parameter& weight, Parameter& bias,
                     const BatchNorm& norm, int64_t dim, int64_t groups);
}  // namespace detail

template <int N, bool kTransposed>
ConvLayer<N, kTransposed> fuse_conv_bn_eval(const ConvLayer<N, kTransposed>& conv, const BatchNorm& norm) {
  ConvLayer<N, kTransposed> fused = conv;
  detail::fuse_batch_norm("fuse_conv_bn_eval", conv, fused.weight, fused.bias, norm, kTransposed ? 1 : 0,
                          kTransposed ? conv.options().groups : 1);
  return fused;
}

}  // namespace tern::nn::utils

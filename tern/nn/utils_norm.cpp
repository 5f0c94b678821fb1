// Weight norm and spectral norm: as parametrizations of modules (detail::Parametrization in
// nn/module_call.h), and folded in state dicts.
#include <algorithm>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/nn/utils.h"
#include "tern/ops/creation.h"
#include "tern/ops/distance.h"
#include "tern/ops/matmul.h"
#include "tern/ops/norm.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern::nn::utils {
namespace {

using nn::detail::Parametrization;

constexpr const char* kWeightNorm = "weight_norm";
constexpr const char* kSpectralNorm = "spectral_norm";

// ---- the formulas

/// The norms of v over the dimensions in which g has one element: those of g.
Tensor norms_like(const Tensor& g, const Tensor& v) {
  if (g.dim() == 0) return norm(v);
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (g.size(d) == 1) dims.push_back(d);
  return dims.empty() ? abs(v) : norm(v, 2, dims, /*keepdim=*/true);
}
Tensor weight_of(const Tensor& g, const Tensor& v) { return mul(v, div(g, norms_like(g, v))); }

/// The weight as a matrix whose rows are the slices of dimension `dim`.
Tensor matrix_of(const Tensor& weight, int64_t dim) {
  const Tensor turned = dim == 0 ? weight : movedim(weight, dim, 0);
  return reshape(turned, {turned.size(0), -1});
}
Tensor singular_value(const Tensor& matrix, const Tensor& u, const Tensor& v) {
  return dot(u, mv(matrix, v));
}

struct PowerIteration {
  int64_t dim, steps;
  double eps;
  bool left_first;  ///< as torch.nn.utils.parametrizations.spectral_norm does it

  Tensor unit(const Tensor& vector) const { return normalize(vector, 2, 0, eps); }

  void run(const Tensor& matrix, Tensor& u, Tensor& v, int64_t count) const {
    const NoGradGuard no_grad;
    for (int64_t i = 0; i < count; ++i) {
      if (left_first) u = unit(mv(matrix, v));
      v = unit(mv(t(matrix), u));
      if (!left_first) u = unit(mv(matrix, v));
    }
  }
};

// ---- modules

std::string class_and_name(const Module& module, std::string_view name) {
  return fmt::format("'{}' of {}", name, module.class_name());
}

/// The field itself, also where it is computed.
Parameter& raw_field(Module& module, std::string_view name) {
  const Fields own = module.declared_fields();
  for (const auto& [field, parameter] : own.parameters)
    if (field == name) return *parameter;
  TERN_THROW(ValueError, "{} is no parameter", class_and_name(module, name));
}

Parameter& learned_parameter(const char* op, Module& module, std::string_view name) {
  if (module.hooks())
    for (const Parametrization& p : module.hooks()->parametrizations)
      TERN_CHECK(p.name != name, ValueError, "{}: {} is computed by {} already", op,
                 class_and_name(module, name), p.kind);
  for (const auto& [field, parameter] : module.fields().parameters)
    if (field == name) {
      TERN_CHECK(!is_lazy(*parameter), ValueError,
                 "{}: {} waits for its size: call the module with one batch first", op,
                 class_and_name(module, name));
      return *parameter;
    }
  TERN_THROW(ValueError, "{}: {} is no parameter of the module's own", op, class_and_name(module, name));
}

void add_parametrization(Module& module, Parametrization added) {
  auto& all = module.make_hooks().parametrizations;
  all.push_back(std::move(added));
  const NoGradGuard no_grad;
  static_cast<Tensor&>(raw_field(module, all.back().name)) =
      all.back().compute(all.back(), /*training=*/false);
}

Module& remove_parametrization(const char* op, const char* kind, Module& module, std::string_view name) {
  const auto is_it = [&](const Parametrization& p) { return p.name == name && p.kind == kind; };
  auto* all = module.hooks() ? &module.hooks()->parametrizations : nullptr;
  const auto found =
      all ? std::find_if(all->begin(), all->end(), is_it) : std::vector<Parametrization>::iterator();
  TERN_CHECK(all && found != all->end(), ValueError, "{}: {} has no {}", op, class_and_name(module, name),
             kind);
  const NoGradGuard no_grad;
  const Tensor weight = found->compute(*found, /*training=*/false);
  const bool learned = found->parameters.back().second.requires_grad();
  all->erase(found);
  raw_field(module, name) = Parameter(weight, learned);
  return module;
}

/// "weight_g", or "parametrizations.weight.original0".
std::string part_name(std::string_view name, NormNames names, const char* of_hook,
                      const char* of_parametrization) {
  return names == NormNames::Hook ? fmt::format("{}_{}", name, of_hook)
                                  : fmt::format("parametrizations.{}.{}", name, of_parametrization);
}

}  // namespace

Module& weight_norm(Module& module, std::string_view name, const WeightNormOptions& options) {
  const Parameter& given = learned_parameter(kWeightNorm, module, name);
  const bool learned = given.requires_grad();
  const Tensor v = given.detach().clone();
  Shape shape;
  if (options.dim) {
    shape = Shape(static_cast<size_t>(v.dim()), 1);
    const int64_t dim = wrap_dim(*options.dim, v.dim(), kWeightNorm);
    shape[static_cast<size_t>(dim)] = v.size(dim);
  }
  const NoGradGuard no_grad;
  const Tensor g = norms_like(empty(shape, {.dtype = v.dtype(), .device = v.device()}), v);
  add_parametrization(
      module, {.name = std::string(name),
               .kind = kWeightNorm,
               .parameters = {{part_name(name, options.names, "g", "original0"), Parameter(g, learned)},
                              {part_name(name, options.names, "v", "original1"), Parameter(v, learned)}},
               .buffers = {},
               .compute = [](const Parametrization& self, bool) {
                 return weight_of(self.parameters[0].second, self.parameters[1].second);
               }});
  return module;
}

Module& remove_weight_norm(Module& module, std::string_view name) {
  return remove_parametrization("remove_weight_norm", kWeightNorm, module, name);
}

Module& spectral_norm(Module& module, std::string_view name, const SpectralNormOptions& options) {
  TERN_CHECK(options.n_power_iterations >= 1, ValueError,
             "spectral_norm: Expected n_power_iterations to be positive, but got n_power_iterations={}",
             options.n_power_iterations);
  const Parameter& given = learned_parameter(kSpectralNorm, module, name);
  const bool learned = given.requires_grad(), by_hook = options.names == NormNames::Hook;
  const bool transposed =
      module.as<ConvTranspose1d>() || module.as<ConvTranspose2d>() || module.as<ConvTranspose3d>();
  const PowerIteration iteration{
      .dim = wrap_dim(options.dim.value_or(transposed ? 1 : 0), given.dim(), kSpectralNorm),
      .steps = options.n_power_iterations,
      .eps = options.eps,
      .left_first = !by_hook};
  const NoGradGuard no_grad;
  const Tensor weight = given.detach().clone(), matrix = matrix_of(weight, iteration.dim);
  const auto draw = [&](int64_t size) {
    return iteration.unit(randn({size}, {.dtype = weight.dtype(), .device = weight.device()}));
  };
  Tensor u = draw(matrix.size(0)), v = draw(matrix.size(1));
  if (!by_hook) iteration.run(matrix, u, v, 15);
  add_parametrization(
      module,
      {.name = std::string(name),
       .kind = kSpectralNorm,
       .parameters = {{part_name(name, options.names, "orig", "original"), Parameter(weight, learned)}},
       .buffers = {{part_name(name, options.names, "u", "0._u"), Buffer(u)},
                   {part_name(name, options.names, "v", "0._v"), Buffer(v)}},
       .compute = [iteration](const Parametrization& self, bool training) {
         const Tensor& original = self.parameters[0].second;
         const Tensor rows = matrix_of(original, iteration.dim);
         // Copies, since the buffers change in place before the gradients are computed.
         Tensor left = self.buffers[0].second.detach().clone(),
                right = self.buffers[1].second.detach().clone();
         if (training) {
           iteration.run(rows, left, right, iteration.steps);
           self.buffers[0].second.detach().copy_(left);
           self.buffers[1].second.detach().copy_(right);
         }
         return div(original, singular_value(rows, left, right));
       }});
  return module;
}

Module& remove_spectral_norm(Module& module, std::string_view name) {
  return remove_parametrization("remove_spectral_norm", kSpectralNorm, module, name);
}

// ---- state dicts

namespace {

Tensor folded_weight_norm(const std::string& name, const Tensor& g, const Tensor& v) {
  bool fits = g.dim() == 0 || g.dim() == v.dim();
  for (int64_t d = 0; fits && d < g.dim(); ++d) fits = g.size(d) == 1 || g.size(d) == v.size(d);
  TERN_CHECK(fits && g.is_floating_point() && g.dtype() == v.dtype(), CheckpointError,
             "fold_norms: '{}': the norms {} of {} do not fit the directions {} of {}", name,
             to_string(g.shape()), tern::name(g.dtype()), to_string(v.shape()), tern::name(v.dtype()));
  return weight_of(g, v);
}

/// The dict does not say which dimension has the rows: the one that the vectors fit, and of two that for
/// which they give the larger value, since they are singular vectors.
Tensor folded_spectral_norm(const std::string& name, const Tensor& weight, const Tensor& u, const Tensor& v) {
  Tensor largest;
  for (int64_t dim = 0; dim < weight.dim() && u.dim() == 1 && v.dim() == 1; ++dim) {
    if (u.size(0) != weight.size(dim) || u.size(0) * v.size(0) != weight.numel()) continue;
    const Tensor value = singular_value(matrix_of(weight, dim), u, v);
    if (!largest.defined() || std::abs(value.item<double>()) > std::abs(largest.item<double>()))
      largest = value;
  }
  TERN_CHECK(largest.defined(), CheckpointError,
             "fold_norms: '{}': the singular vectors {} and {} fit no dimension of the weight {}", name,
             to_string(u.shape()), to_string(v.shape()), to_string(weight.shape()));
  return div(weight, largest);
}

/// The parts of one norm under one kind of names; `weight` is what they give.
struct NormParts {
  std::string weight, g, v, original, left, right;
};

/// The norm that an entry of this name may be a part of, under either kind of names.
std::optional<NormParts> norm_of(const std::string& key) {
  static constexpr std::string_view kWord = "parametrizations.";
  const size_t word = key.rfind(kWord);
  if (word != std::string::npos && (word == 0 || key[word - 1] == '.')) {
    const size_t begin = word + kWord.size(), end = key.find('.', begin);
    if (end == std::string::npos) return std::nullopt;
    const std::string path = key.substr(0, end + 1);
    return NormParts{.weight = key.substr(0, word) + key.substr(begin, end - begin),
                     .g = path + "original0",
                     .v = path + "original1",
                     .original = path + "original",
                     .left = path + "0._u",
                     .right = path + "0._v"};
  }
  const size_t underscore = key.rfind('_');
  if (underscore == std::string::npos) return std::nullopt;
  const std::string base = key.substr(0, underscore);
  return NormParts{.weight = base,
                   .g = base + "_g",
                   .v = base + "_v",
                   .original = base + "_orig",
                   .left = base + "_u",
                   .right = base + "_v"};
}

}  // namespace

StateDict fold_norms(const StateDict& dict) {
  const NoGradGuard no_grad;
  StateDict folded;
  for (const auto& [key, tensor] : dict) {
    const std::optional<NormParts> parts = norm_of(key);
    if (!parts) {
      folded.insert(key, tensor);
      continue;
    }
    const Tensor *g = dict.find(parts->g), *v = dict.find(parts->v), *original = dict.find(parts->original),
                 *left = dict.find(parts->left), *right = dict.find(parts->right);
    const bool is_weight_norm = g && v && (key == parts->g || key == parts->v);
    const bool is_spectral_norm =
        original && left && right && (key == parts->original || key == parts->left || key == parts->right);
    if (!is_weight_norm && !is_spectral_norm) {
      folded.insert(key, tensor);
    } else if (!folded.contains(parts->weight)) {
      folded.insert(parts->weight, is_weight_norm
                                       ? folded_weight_norm(parts->weight, *g, *v)
                                       : folded_spectral_norm(parts->weight, *original, *left, *right));
    }
  }
  for (const auto& [path, version] : dict.versions())
    if (path.find("parametrizations") == std::string::npos) folded.set_version(path, version);
  return folded;
}

}  // namespace tern::nn::utils

// The table of names that do not follow from the operator's name.
#include "tern/ops/print_names.h"

#include <algorithm>
#include <cctype>

namespace tern {
namespace {

struct Name {
  std::string_view record, printed;
};

// Operators whose class has another stem or number in PyTorch (2.15). Its numbers tell overloads apart; here
// a record name with ".dim" stands for the overload with a dimension.
constexpr Name kNames[] = {
    {"adaptive_avg_pool2d", "AdaptiveAvgPool2DBackward0"},
    {"adaptive_max_pool2d", "AdaptiveMaxPool2DBackward0"},
    {"avg_pool2d", "AvgPool2DBackward0"},
    {"batch_norm", "NativeBatchNormBackward0"},
    {"bernoulli_", "BernoulliBackward2"},
    {"clamp", "ClampBackward1"},
    {"clamp_", "ClampBackward1"},
    {"conv2d", "ConvolutionBackward0"},
    {"copy_", "CopyBackwards"},
    {"copy_slices", "CopySlices"},
    {"cross_entropy", "NllLossBackward0"},
    {"div(floor)", "DivBackward2"},
    {"div(trunc)", "DivBackward2"},
    {"dropout", "MulBackward0"},
    {"fill_", "FillBackward2"},
    {"floor_divide", "DivBackward2"},
    {"group_norm", "NativeGroupNormBackward0"},
    {"hstack", "CatBackward0"},
    {"l1_loss", "MeanBackward0"},
    {"layer_norm", "NativeLayerNormBackward0"},
    {"linear", "AddmmBackward0"},
    {"log1p", "Log1PBackward0"},
    {"logsigmoid", "LogSigmoidBackward0"},
    {"masked_select", "IndexBackward0"},
    {"matmul", "MmBackward0"},
    {"max", "MaxBackward1"},
    {"max.dim", "MaxBackward0"},
    {"max_pool2d", "MaxPool2DWithIndicesBackward0"},
    {"mean.dim", "MeanBackward1"},
    {"min", "MinBackward1"},
    {"min.dim", "MinBackward0"},
    {"norm", "LinalgVectorNormBackward0"},
    {"prod.dim", "ProdBackward1"},
    {"random_", "RandomBackward2"},
    {"rsub", "RsubBackward1"},
    {"square", "PowBackward0"},
    {"squeeze.dim", "SqueezeBackward1"},
    {"squeeze.dims", "SqueezeBackward2"},
    {"sum.dim", "SumBackward1"},
    {"swapaxes", "TransposeBackward0"},
    {"vstack", "CatBackward0"},
};

}  // namespace

std::string grad_fn_class(std::string_view record_name) {
  auto known = std::find_if(std::begin(kNames), std::end(kNames),
                            [&](const Name& n) { return n.record == record_name; });
  if (known != std::end(kNames)) return std::string(known->printed);
  // CamelCase; what is in brackets or behind a point names a variant, a last underscore the form in place.
  std::string text;
  bool upper = true;
  for (char c : record_name.substr(0, record_name.find_first_of("(."))) {
    if (c == '_') {
      upper = true;
      continue;
    }
    text += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return text + "Backward0";
}

}  // namespace tern

// Wrong uses: modules, state dicts, initial values, optimizers and schedules.
#include <limits>

#include "wrong_use.h"

namespace tern {
namespace {

Tensor parameter() { return ones({2}, {.requires_grad = true}); }

/// Loads the state dict of a Linear(2, 3) after `change`.
void load_changed(const std::function<void(StateDict&)>& change) {
  nn::Sequential net{nn::Linear(2, 3)};
  StateDict dict = net.state_dict();
  change(dict);
  net.load_state_dict(dict);
}

std::vector<WrongUse> layer_rows() {
  const std::type_index value = typeid(ValueError), shape = typeid(ShapeError);
  return {
      {"linear_features", value, [] { nn::Linear(-1, 2); }, {"Linear: in_features", "at least 0", "got -1"}},
      {"conv2d_groups",
       value,
       [] { nn::Conv2d(3, 4, 3, {.groups = 2}); },
       {"Conv2d: in_channels must be divisible by groups", "3 and 2"}},
      {"conv2d_groups_of_output",
       value,
       [] { nn::Conv2d(4, 3, 3, {.groups = 2}); },
       {"Conv2d: out_channels must be divisible by groups", "3 and 2"}},
      {"conv2d_padding",
       value,
       [] { nn::Conv2d(1, 1, 3, {.padding = -1}); },
       {"Conv2d: padding must be at least 0, got (-1, -1)"}},
      {"conv2d_stride",
       value,
       [] {
         nn::Conv2d(1, 1, 3, {.stride = {2, 0}});
       },
       {"Conv2d: stride must be at least 1, got (2, 0)"}},
      {"conv2d_dilation",
       value,
       [] { nn::LazyConv2d(1, 3, {.dilation = 0}); },
       {"Conv2d: dilation must be at least 1, got (0, 0)"}},
      {"conv2d_same_with_stride",
       value,
       [] { nn::Conv2d(1, 1, 3, {.stride = 2, .padding = "same"}); },
       {"Conv2d: padding='same' is not supported for strided convolutions, got stride (2, 2)"}},
      {"conv1d_kernel", value, [] { nn::Conv1d(1, 1, 0); }, {"Conv1d: kernel_size must be at least 1"}},
      {"conv1d_same_with_stride",
       value,
       [] { nn::Conv1d(1, 1, 3, {.stride = 2, .padding = "same"}); },
       {"Conv1d: padding='same' is not supported for strided convolutions"}},
      {"conv_transpose2d_stride",
       value,
       [] { nn::ConvTranspose2d(1, 1, 3, {.stride = 0}); },
       {"ConvTranspose2d: stride must be at least 1, got (0, 0)"}},
      {"conv_transpose2d_output_padding",
       value,
       [] { nn::ConvTranspose2d(1, 1, 3, {.stride = 2, .output_padding = 2}); },
       {"ConvTranspose2d: output_padding must be smaller than either stride or dilation, got (2, 2)"}},
      {"conv_transpose1d_output_padding",
       value,
       [] { nn::ConvTranspose1d(1, 1, 3, {.stride = 2, .output_padding = 2}); },
       {"ConvTranspose1d: output_padding must be smaller than either stride or dilation"}},
      {"instance_norm_features",
       value,
       [] { nn::InstanceNorm1d(-1); },
       {"InstanceNorm1d: num_features must be at least 0, got -1"}},
      {"dropout2d_probability", value, [] { nn::Dropout2d(1.5); }, {"Dropout2d: ", "between 0 and 1", "1.5"}},
      {"adaptive_pool1d_size",
       value,
       [] { nn::AdaptiveMaxPool1d(-2); },
       {"AdaptiveMaxPool1d: output_size must be at least -1, got -2"}},
      {"upsample_size",
       value,
       [] {
         nn::Upsample({.size = {4, 0}});
       },
       {"Upsample: size must be at least 1, got 0"}},
      {"upsample_nothing",
       value,
       [] { nn::UpsamplingNearest2d({}); },
       {"UpsamplingNearest2d: give one of size and scale_factor, got none"}},
      {"upsample_factor",
       value,
       [] { nn::UpsamplingBilinear2d({.scale_factor = {-2}}); },
       {"UpsamplingBilinear2d: scale_factor must be above 0, got -2"}},
      {"fold_output_size",
       value,
       [] {
         nn::Fold({0, 3}, 2);
       },
       {"Fold: output_size must be at least 1, got (0, 3)"}},
      {"unfold_kernel", value, [] { nn::Unfold(0); }, {"Unfold: kernel_size must be at least 1, got (0, 0)"}},
      {"channel_shuffle_groups",
       value,
       [] { nn::ChannelShuffle(0); },
       {"ChannelShuffle: groups must be at least 1, got 0"}},
      {"max_pool2d_kernel",
       value,
       [] { nn::MaxPool2d(0); },
       {"MaxPool2d: kernel_size must be at least 1, got (0, 0)"}},
      {"max_pool2d_padding",
       value,
       [] { nn::MaxPool2d(2, {.padding = 2}); },
       {"MaxPool2d: pad should be at most half of effective kernel size", "pad=(2, 2), kernel_size=(2, 2)"}},
      {"avg_pool2d_stride",
       value,
       [] { nn::AvgPool2d(2, {.stride = 0}); },
       {"AvgPool2d: stride must be at least 1, got (0, 0)"}},
      {"avg_pool2d_divisor",
       value,
       [] { nn::AvgPool2d(2, {.divisor_override = 0}); },
       {"AvgPool2d: divisor_override must not be 0"}},
      {"max_pool1d_dilation",
       value,
       [] { nn::MaxPool1d(2, {.dilation = 0}); },
       {"MaxPool1d: dilation must be at least 1"}},
      {"avg_pool1d_padding",
       value,
       [] { nn::AvgPool1d(2, {.padding = -1}); },
       {"AvgPool1d: padding must be at least 0"}},
      {"adaptive_pool_size",
       value,
       [] { nn::AdaptiveAvgPool2d(-2); },
       {"AdaptiveAvgPool2d: output_size must be at least -1, got (-2, -2)"}},
      {"group_norm_channels",
       value,
       [] { nn::GroupNorm(2, 5); },
       {"GroupNorm: num_channels must be divisible by num_groups", "5 and 2"}},
      {"dropout_probability", value, [] { nn::Dropout(-0.1); }, {"Dropout: ", "between 0 and 1", "-0.1"}},
      {"embedding_padding",
       value,
       [] { nn::Embedding(3, 2, {.padding_idx = 3}); },
       {"Embedding: padding_idx", "3 of 3"}},
      {"lenet_image",
       value,
       [] { nn::LeNet({.image_size = 8}); },
       {"LeNet: images must be at least 12 by 12", "8 by 8"}},
      {"mlp_sizes", value, [] { nn::MLP({10}); }, {"MLP: ", "input and output", "got 1"}},
      {"wrong_size_says_the_path",
       shape,
       [] {
         nn::MLP({4, 8, 2})(ones({1, 5}));
       },
       {"MLP.fc1 (Linear): linear: inner sizes differ: input is [1, 5], weight is [8, 4] (5 vs 4)"}},
      {"wrong_size_deep_inside",
       shape,
       [] {
         nn::Sequential net{nn::ReLU(), nn::Sequential{nn::Linear(2, 3), nn::Linear(4, 5)}};
         net(ones({1, 2}));
       },
       {"Sequential.1.1 (Linear): linear: inner sizes differ", "[1, 3]", "[5, 4]"}},
      {"batch_norm_dimensions",
       shape,
       [] {
         nn::BatchNorm2d(3)(ones({2, 3}));
       },
       {"BatchNorm2d: expected 4D input (got 2D input)"}},
      {"conv2d_channels_in_lenet",
       shape,
       [] {
         nn::LeNet()(ones({1, 3, 28, 28}));
       },
       {"LeNet.conv1 (Conv2d): conv2d: ", "[1, 3, 28, 28]", "1 channels", "got 3 channels"}},
      {"sequential_index",
       typeid(IndexError),
       [] {
         nn::Sequential net{nn::ReLU{}};
         net[1];
       },
       {"Sequential: index 1 is out of range", "1 modules"}},
      {"sequential_name",
       typeid(IndexError),
       [] {
         nn::Sequential net{{"act", nn::ReLU()}};
         net["fc"];
       },
       {"no module 'fc'", "'act'"}},
      {"sequential_name_twice",
       value,
       [] {
         nn::Sequential net{{"act", nn::ReLU()}, {"act", nn::ReLU()}};
       },
       {"Sequential: ", "'act' already"}},
      {"any_module_empty", value, [] { nn::AnyModule()(ones({1})); }, {"AnyModule: it holds no module"}},
      {"any_module_of_another_class",
       typeid(TypeError),
       [] { nn::AnyModule(nn::ReLU()).as<nn::Linear>(); },
       {"AnyModule: it holds a ReLU, not a Linear"}},
      {"empty_hook",
       value,
       [] { nn::Linear(2, 2).register_forward_hook({}); },
       {"register_forward_hook: ", "empty"}},
      {"empty_pre_hook",
       value,
       [] { nn::Linear(2, 2).register_forward_pre_hook({}); },
       {"register_forward_pre_hook: ", "empty"}},
  };
}

std::vector<WrongUse> state_dict_rows() {
  const std::type_index checkpoint = typeid(CheckpointError);
  return {
      {"missing",
       checkpoint,
       [] { load_changed([](StateDict& d) { d.erase("0.bias"); }); },
       {"Error(s) in loading state_dict for Sequential", "Missing key(s) in state_dict: \"0.bias\""}},
      {"unexpected",
       checkpoint,
       [] { load_changed([](StateDict& d) { d.insert("1.weight", ones({1})); }); },
       {"Error(s) in loading state_dict for Sequential", "Unexpected key(s) in state_dict: \"1.weight\""}},
      {"all_under_a_prefix",
       checkpoint,
       [] {
         nn::Linear net(2, 3);
         StateDict wrapped;
         for (const auto& [name, tensor] : net.state_dict()) wrapped.insert("module." + name, tensor);
         net.load_state_dict(wrapped);
       },
       {"Missing key(s)", "\"weight\", \"bias\"", "Unexpected key(s)", "\"module.weight\", \"module.bias\"",
        "begin with 'module.' (torch.nn.DataParallel", ".prefix = \"auto\""}},
      {"shape",
       checkpoint,
       [] { load_changed([](StateDict& d) {
              d.insert("0.weight", ones({3, 4}));
            }); },
       {"size mismatch for 0.weight", "[3, 4]", "[3, 2]"}},
      {"undefined",
       checkpoint,
       [] { load_changed([](StateDict& d) { d.insert("0.weight", Tensor()); }); },
       {"0.weight", "undefined"}},
      {"complex",
       checkpoint,
       [] {
         load_changed([](StateDict& d) {
           d.insert("0.bias", Tensor::from_storage(ones({6}).storage(), DType::Complex64, {3}));
         });
       },
       {"0.bias", "complex64"}},
      {"name_that_is_not_there",
       typeid(IndexError),
       [] {
         const StateDict dict = nn::Linear(2, 2).state_dict();
         (void)dict["fc.weight"];
       },
       {"state dict: there is no tensor 'fc.weight'", "2 names", "did you mean 'weight'?"}},
      {"name_that_a_temporary_lacks",
       typeid(IndexError),
       [] { (void)nn::Linear(2, 2).state_dict()["wieght"]; },
       {"state dict: there is no tensor 'wieght'", "2 names", "did you mean 'weight'?"}},
      {"name_unlike_any",
       typeid(IndexError),
       [] { (void)nn::Linear(2, 2).state_dict().at("running_mean"); },
       {"state dict: there is no tensor 'running_mean'", "2 names", "the first is 'weight'"}},
  };
}

std::vector<WrongUse> init_rows() {
  const std::type_index value = typeid(ValueError), shape = typeid(ShapeError);
  return {
      {"xavier_of_vector",
       shape,
       [] { nn::init::xavier_uniform_(ones({3})); },
       {"init: Fan in and fan out", "fewer than 2 dimensions", "[3]"}},
      {"kaiming_mode",
       value,
       [] {
         nn::init::kaiming_uniform_(ones({2, 2}), {.mode = "fan_both"});
       },
       {"kaiming: Mode fan_both", "'fan_in' and 'fan_out'"}},
      {"gain_of_unknown",
       value,
       [] { nn::init::calculate_gain("swish"); },
       {"calculate_gain: Unsupported nonlinearity swish", "relu"}},
      {"trunc_normal_bounds",
       value,
       [] { nn::init::trunc_normal_(ones({2}), 0, 1, 2, -2); },
       {"trunc_normal_: ", "a < b", "a 2, b -2"}},
      {"eye_of_vector", shape, [] { nn::init::eye_(ones({2})); }, {"eye_: ", "2 dimensions", "[2]"}},
      {"orthogonal_of_vector",
       shape,
       [] { nn::init::orthogonal_(ones({2})); },
       {"orthogonal_: ", "2 or more dimensions", "[2]"}},
  };
}

/// Each function that takes the number of a group, called with that of none.
std::vector<WrongUse> group_rows() {
  using Use = void (*)(optim::Adam&);
  const std::pair<const char*, Use> uses[] = {
      {"lr", [](optim::Adam& adam) { adam.lr(5); }},
      {"set_lr", [](optim::Adam& adam) { adam.set_lr(0.1, 5); }},
      {"momentum", [](optim::Adam& adam) { adam.momentum(5); }},
      {"set_momentum", [](optim::Adam& adam) { adam.set_momentum(0.9, 5); }},
      {"options", [](optim::Adam& adam) { adam.options(5).eps = 1; }},
      {"options_of_const", [](optim::Adam& adam) { (void)std::as_const(adam).options(5).eps; }},
      {"params", [](optim::Adam& adam) { adam.params(5); }},
      {"extra", [](optim::Adam& adam) { adam.extra("initial_lr", 5); }},
      {"set_extra", [](optim::Adam& adam) { adam.set_extra("initial_lr", 1, 5); }},
  };
  std::vector<WrongUse> rows;
  for (const auto& [name, use] : uses)
    rows.push_back({name,
                    typeid(IndexError),
                    [use = use] {
                      optim::Adam adam({{{parameter()}, {}}, {{parameter()}, {}}});
                      use(adam);
                    },
                    {"Adam: there is no parameter group 5", "has 2, numbered from 0"}});
  rows.push_back({"momentum_of_none",
                  typeid(IndexError),
                  [] { optim::Adagrad({parameter()}).momentum(1); },
                  {"Adagrad: there is no parameter group 1", "has 1, numbered from 0"}});
  return rows;
}

std::vector<WrongUse> optimizer_rows() {
  const std::type_index value = typeid(ValueError);
  return {
      {"no_parameters", value, [] { optim::SGD(std::vector<Tensor>{}); }, {"SGD: ", "empty parameter list"}},
      {"undefined_parameter",
       value,
       [] {
         optim::SGD({parameter(), Tensor()});
       },
       {"SGD: parameter 1 is undefined", "leave absent parameters out"}},
      {"computed_parameter",
       value,
       [] { optim::Adam({parameter() * 2}); },
       {"Adam: can't optimize a non-leaf Tensor", "parameter 0", "'mul'"}},
      {"parameter_twice",
       value,
       [] {
         const Tensor p = parameter();
         optim::SGD({p, p});
       },
       {"SGD: some parameters appear twice", "parameter 1"}},
      {"learning_rate",
       value,
       [] { optim::SGD({parameter()}, {.lr = -1}); },
       {"SGD: Invalid learning rate: -1", "at least 0"}},
      {"learning_rate_nan",
       value,
       [] { optim::SGD({parameter()}, {.lr = std::numeric_limits<double>::quiet_NaN()}); },
       {"SGD: Invalid learning rate: nan"}},
      {"betas",
       value,
       [] {
         optim::Adam({parameter()}, {.betas = {0.9, 1.0}});
       },
       {"Adam: Invalid beta parameter at index 1: 1", "below 1"}},
      {"nesterov_without_momentum",
       value,
       [] { optim::SGD({parameter()}, {.nesterov = true}); },
       {"SGD: Nesterov momentum requires a momentum"}},
      {"gradient_of_another_shape",
       typeid(ShapeError),
       [] {
         Tensor p = parameter();
         p.set_grad(ones({3}));
       },
       {"set_grad: ", "[2]", "[3]"}},
      {"loaded_groups",
       value,
       [] {
         optim::SGD sgd({parameter()});
         sgd.load_state_dict({});
       },
       {"SGD: loaded state dict has a different number of parameter groups", "(0 instead of 1)"}},
      {"loaded_parameters",
       value,
       [] {
         optim::SGD one({parameter()}), two({parameter(), parameter()});
         one.load_state_dict(two.state_dict());
       },
       {"SGD: ", "parameter group", "2 parameters instead of 1"}},
      {"clip_norm",
       value,
       [] { optim::clip_grad_norm_({parameter()}, -1); },
       {"clip_grad_norm_: max_norm", "negative", "-1"}},
      {"clip_nonfinite",
       value,
       [] {
         Tensor p = parameter();
         p.set_grad(full({2}, std::numeric_limits<double>::infinity()));
         optim::clip_grad_norm_({p}, 1, {.error_if_nonfinite = true});
       },
       {"clip_grad_norm_: ", "non-finite"}},
      {"clip_value", value, [] { optim::clip_grad_value_({parameter()}, -1); }, {"clip_grad_value_: ", "-1"}},
      {"step_lr",
       value,
       [] {
         optim::SGD sgd({parameter()});
         optim::StepLR(sgd, {.step_size = 0});
       },
       {"StepLR: step_size must be at least 1, got 0"}},
      {"one_cycle_steps",
       value,
       [] {
         optim::SGD sgd({parameter()}, {.momentum = 0.9});
         optim::OneCycleLR(sgd, {.max_lr = 0.1});
       },
       {"OneCycleLR: ", "total_steps OR (epochs AND steps_per_epoch)"}},
      {"one_cycle_too_many_steps",
       value,
       [] {
         optim::SGD sgd({parameter()}, {.momentum = 0.9});
         optim::OneCycleLR schedule(sgd, {.max_lr = 0.1, .total_steps = 2});
         for (int i = 0; i < 3; ++i) schedule.step();
       },
       {"OneCycleLR: Tried to step 3 times", "total steps is 2"}},
      {"nadam_momentum_decay",
       value,
       [] { optim::NAdam({parameter()}, {.momentum_decay = -1}); },
       {"NAdam: Invalid momentum_decay value: -1", "at least 0"}},
      {"adadelta_rho",
       value,
       [] { optim::Adadelta({parameter()}, {.rho = 2}); },
       {"Adadelta: Invalid rho value: 2", "from 0 to 1"}},
      {"rprop_etas",
       value,
       [] {
         optim::Rprop({parameter()}, {.etas = {1.5, 2}});
       },
       {"Rprop: Invalid eta values: 1.5, 2", "between 0 and 1", "above 1"}},
      {"lbfgs_without_closure",
       value,
       [] { optim::LBFGS({parameter()}).step(); },
       {"LBFGS: step() needs a closure", "step(closure)"}},
      {"lbfgs_line_search",
       value,
       [] { optim::LBFGS({parameter()}, {.line_search_fn = "wolfe"}); },
       {"LBFGS: line_search_fn: only 'strong_wolfe'", "'wolfe'"}},
      {"empty_closure",
       value,
       [] { optim::SGD({parameter()}).step(optim::Optimizer::Closure()); },
       {"SGD: step(closure) got an empty function", "loss"}},
      {"total_norm_of_integers",
       typeid(DTypeError),
       [] { optim::get_total_norm({arange(3)}); },
       {"get_total_norm: takes floating-point or complex tensors", "int64"}},
      {"clip_with_vector",
       typeid(ShapeError),
       [] { optim::clip_grads_with_norm_({parameter()}, 1, ones({2})); },
       {"clip_grads_with_norm_: total_norm must be a 0-d tensor", "[2]"}},
      {"ema_decay",
       value,
       [] { optim::get_ema_multi_avg_fn(2); },
       {"get_ema_multi_avg_fn: Invalid decay value 2", "[0,1]"}},
      {"average_of_another_model",
       value,
       [] { optim::AveragedModel(nn::Linear(2, 2)).update_parameters(nn::Linear(3, 2)); },
       {"AveragedModel: number 0 of the parameters", "[2, 3]", "[2, 2]"}},
      {"warm_restarts",
       value,
       [] {
         optim::SGD sgd({parameter()});
         optim::CosineAnnealingWarmRestarts(sgd, {.T_0 = 0});
       },
       {"CosineAnnealingWarmRestarts: Expected positive integer T_0, but got 0"}},
      {"cyclic_mode",
       value,
       [] {
         optim::SGD sgd({parameter()});
         optim::CyclicLR(sgd, {.base_lr = 0.1, .max_lr = 1.0, .mode = "saw"});
       },
       {"CyclicLR: mode 'saw' is invalid", "'triangular2'"}},
      {"swa_lrs",
       value,
       [] {
         optim::SGD sgd({parameter()});
         optim::SWALR(sgd, {.swa_lr = {0.1, 0.2}});
       },
       {"swa_lr must have the same length as optimizer.param_groups", "2 values", "has 1"}},
      {"chained_none",
       value,
       [] { optim::ChainedScheduler({}); },
       {"ChainedScheduler: expects at least one"}},
      {"lambdas",
       value,
       [] {
         optim::SGD sgd({parameter()});
         optim::LambdaLR(sgd, optim::LambdaLR::Function());
       },
       {"LambdaLR: one of the functions is empty"}},
      {"sequential_of_nothing",
       value,
       [] {
         optim::SGD sgd({parameter()});
         optim::SequentialLR(sgd, {}, {});
       },
       {"SequentialLR: expects at least one scheduler"}},
  };
}

TERN_WRONG_USES(Layers, layer_rows);
TERN_WRONG_USES(StateDicts, state_dict_rows);
TERN_WRONG_USES(InitialValues, init_rows);
TERN_WRONG_USES(Optimizers, optimizer_rows);
TERN_WRONG_USES(ParameterGroups, group_rows);

}  // namespace
}  // namespace tern

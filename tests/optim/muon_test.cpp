// Muon against PyTorch's numbers, and that its steps are orthogonal.
#include <gmock/gmock.h>

#include <cmath>

#include "tern/ops/creation.h"
#include "tern/ops/linalg.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"
#include "tern/optim/muon.h"
#include "tests/optim/support.h"
#include "tests/support/expect_error.h"

namespace tern::optim {
namespace {

TEST(Muon, TakesPyTorchsSteps) {
  // p = torch.arange(numel) / 10, three steps with the gradient sin(0.7 step + 1.3 place), PyTorch 2.15. The
  // products of bfloat16 differ in their last bits.
  const struct {
    MuonOptions options;
    Shape shape;
    std::vector<double> expected;
  } rows[] = {
      {{.lr = 0.1},
       {3, 4},
       {-0.0389, -0.0319, 0.2068, 0.4688, 0.4412, 0.3798, 0.4332, 0.6663, 0.9648, 0.9513, 0.8649, 0.9744}},
      {{.lr = 0.1}, {4, 2}, {-0.1168, -0.1664, 0.1666, 0.5389, 0.5507, 0.3235, 0.3294, 0.708}},
      {{.lr = 0.02, .weight_decay = 0, .nesterov = false, .adjust_lr_fn = "match_rms_adamw"},
       {3, 4},
       {-0.0058, 0.0888, 0.1971, 0.3121, 0.409, 0.4927, 0.5895, 0.6995, 0.8117, 0.9075, 0.9897, 1.0894}},
      {{.lr = 0.02, .weight_decay = 0, .nesterov = false, .adjust_lr_fn = "match_rms_adamw"},
       {4, 2},
       {-0.0058, 0.0831, 0.1971, 0.315, 0.4108, 0.4912, 0.5843, 0.7}},
      {{.lr = 0.05, .momentum = 0.5, .ns_steps = 3, .adjust_lr_fn = "spectral_unclamped"},
       {3, 4},
       {-0.0371, 0.0387, 0.2023, 0.3573, 0.4229, 0.4463, 0.5371, 0.708, 0.8525, 0.9025, 0.9292, 1.0369}},
      {{.lr = 0.05, .momentum = 0.5, .ns_steps = 3, .adjust_lr_fn = "spectral_unclamped"},
       {4, 2},
       {-0.0749, -0.0072, 0.1967, 0.4066, 0.4693, 0.4082, 0.4621, 0.7233}}};
  for (const auto& row : rows) {
    const int64_t numel = checked_numel(row.shape);
    const Tensor place = arange(numel).to(float32).view(row.shape);
    const Tensor parameter = (place / 10).requires_grad_();
    Muon optimizer({parameter}, row.options);
    for (int step = 0; step < 3; ++step) {
      parameter.set_grad(sin(place * 1.3 + 0.7 * step));
      optimizer.step();
    }
    const auto got = parameter.detach().flatten().to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], row.expected[i], 2e-3) << i;
  }
}

TEST(Muon, MovesMatricesByOrthogonalSteps) {
  for (const Shape& shape : {Shape{20, 50}, Shape{50, 20}, Shape{30, 30}}) {
    const Tensor parameter = zeros(shape, {.requires_grad = true});
    Muon optimizer({parameter}, {.lr = 1, .weight_decay = 0, .adjust_lr_fn = "spectral_unclamped"});
    parameter.set_grad(sin(arange(checked_numel(shape)).to(float32).view(shape) * 0.37).square() - 0.4);
    optimizer.step();
    const double ratio = std::sqrt(static_cast<double>(shape[0]) / static_cast<double>(shape[1]));
    const auto values = (linalg::svdvals(parameter.detach()) / ratio).to_vector<double>();
    EXPECT_LT(values.front(), 1.3);
    EXPECT_GT(values.front(), 0.6);
  }
}

TEST(Muon, GoesOnWhereItWas) {
  const auto grads = [](const Tensor& parameter, int step) {
    parameter.set_grad(cos(arange(12).to(float32).view({3, 4}) * (step + 1)));
  };
  const Tensor one = ones({3, 4}, {.requires_grad = true});
  Muon first({one}, {.lr = 0.1, .ns_coefficients = {3, -3, 1}, .adjust_lr_fn = "original"});
  for (int step = 0; step < 2; ++step) {
    grads(one, step);
    first.step();
  }
  const Tensor other = one.detach().clone().requires_grad_();
  Muon second({other});
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.options().ns_coefficients, (std::array<double, 3>{3, -3, 1}));
  for (auto* optimizer : {&first, &second}) {
    grads(optimizer == &first ? one : other, 2);
    optimizer->step();
  }
  EXPECT_EQ(one.detach().to_vector<float>(), other.detach().to_vector<float>());
}

TEST(Muon, SaysWhatIsWrong) {
  const Tensor matrix = ones({2, 2}, {.requires_grad = true}), vector = ones({2}, {.requires_grad = true});
  expect_error<ValueError>([&] { Muon({matrix, vector}); }, "Muon only supports 2D parameters");
  Muon optimizer({matrix});
  expect_error<ValueError>([&] { optimizer.add_param_group({vector}); }, "a parameter with size [2]");
  expect_error<ValueError>([&] { Muon({matrix}, {.lr = -1}); }, "Muon: Invalid learning rate: -1");
  expect_error<ValueError>([&] { Muon({matrix}, {.ns_steps = 100}); }, "Muon: Invalid ns_steps");
  expect_error<ValueError>([&] { Muon({matrix}, {.adjust_lr_fn = "other"}); }, "other is not supported");
}

}  // namespace
}  // namespace tern::optim

// A change in place that fails leaves its tensor as it was: numbers, version and history.
#include "wrong_use.h"

namespace tern {
namespace {

struct Change {
  std::string name;
  std::function<void(Tensor&)> use;
};

class FailedChanges : public ::testing::TestWithParam<Change> {};

TEST_P(FailedChanges, ChangeNothing) {
  const Tensor x = tensor({1.0, 2.0, 3.0}, {.requires_grad = true});
  Tensor y = x * 2;
  EXPECT_THROW(GetParam().use(y), Error);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(y.version(), 0u);
  EXPECT_EQ(y.grad_fn_name(), "mul");
  (y * y).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{8, 16, 24}));
}

const Change kChanges[] = {
    {"add_broadcast", [](Tensor& y) { y.add_(ones({4})); }},
    {"add_grow",
     [](Tensor& y) {
       y.add_(ones({2, 3}));
     }},
    {"mul_complex",
     [](Tensor& y) { y.mul_(Tensor::from_storage(ones({6}).storage(), DType::Complex64, {3})); }},
    {"copy_broadcast", [](Tensor& y) { y.copy_(ones({2})); }},
    {"clamp_without_bounds", [](Tensor& y) { y.clamp_({}, {}); }},
    {"pow_broadcast",
     [](Tensor& y) {
       y.pow_(ones({2, 3}));
     }},
    {"lerp_weight", [](Tensor& y) { y.lerp_(y, ones({3}, {.dtype = float64})); }},
    {"addcdiv_broadcast",
     [](Tensor& y) {
       y.addcdiv_(ones({2, 1}), ones({3}));
     }},
    {"masked_fill_mask", [](Tensor& y) { y.masked_fill_(ones({3}), 0); }},
    {"index_add_source",
     [](Tensor& y) {
       y.index_add_(0, tensor({0, 1}), ones({3}));
     }},
    {"index_put_dtype", [](Tensor& y) { index_put_(y, {tensor({0})}, ones({1}, {.dtype = float64})); }},
    {"scatter_rank",
     [](Tensor& y) {
       scatter_(y, 0, zeros({1, 1}, {.dtype = int64}), 1);
     }},
    {"uniform_range", [](Tensor& y) { uniform_(y, 2, 1); }},
    {"normal_deviation", [](Tensor& y) { normal_(y, 0, -1); }},
    {"bernoulli_probability", [](Tensor& y) { bernoulli_(y, 2); }},
    {"undefined_operand", [](Tensor& y) { y.add_(Tensor()); }},
    {"set_grad_shape", [](Tensor& y) { y.set_grad(ones({4})); }},
};
INSTANTIATE_TEST_SUITE_P(Row, FailedChanges, ::testing::ValuesIn(kChanges),
                         [](const ::testing::TestParamInfo<Change>& row) { return row.param.name; });

TEST(FailedLoads, LeaveTheModuleAsItWas) {
  nn::Linear net(2, 3);
  const std::vector<float> before = net.weight.to_vector<float>();
  StateDict dict = nn::Linear(2, 3).state_dict();
  dict.insert("bias", ones({4}));
  EXPECT_THROW(net.load_state_dict(dict), CheckpointError);
  EXPECT_EQ(net.weight.to_vector<float>(), before);
}

}  // namespace
}  // namespace tern

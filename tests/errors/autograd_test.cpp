// Wrong uses: gradients.
#include "wrong_use.h"

namespace tern {
namespace {

Tensor leaf() { return tensor({1.0, 2.0, 3.0}, {.requires_grad = true}); }

std::vector<WrongUse> backward_rows() {
  const std::type_index autograd = typeid(AutogradError);
  return {
      {"of_no_scalar",
       autograd,
       [] { (leaf() * 2).backward(); },
       {"backward: grad can be implicitly created only for scalar outputs", "[3]", "sum() or mean()"}},
      {"without_history",
       autograd,
       [] { ones({}).backward(); },
       {"backward: element 0 of tensors does not require grad", "NoGradGuard", "requires_grad"}},
      {"of_detached",
       autograd,
       [] { leaf().sum().detach().backward(); },
       {"backward: element 0 of tensors does not require grad"}},
      {"inside_no_grad",
       autograd,
       [] {
         Tensor y = no_grad([x = leaf()] { return x.sum(); });
         y.backward();
       },
       {"backward: ", "does not require grad", "NoGradGuard"}},
      {"twice",
       autograd,
       [] {
         Tensor y = exp(leaf()).sum();
         y.backward();
         y.backward();
       },
       {"exp: Trying to backward through the graph a second time", "freed", "retain_graph=true"}},
      {"gradient_shape",
       typeid(ShapeError),
       [] { (leaf() * 2).backward(ones({2})); },
       {"backward: a gradient of shape [2]", "tensor of shape [3]"}},
      {"gradient_dtype",
       typeid(DTypeError),
       [] { (leaf() * 2).backward(empty({3}, {.dtype = DType::Complex64})); },
       {"backward: a gradient of dtype complex64", "dtype float32", "to(dtype)"}},
      {"grad_of_no_inputs",
       typeid(ValueError),
       [] { grad({leaf().sum()}, {}); },
       {"grad: `inputs` argument to `grad()` cannot be empty"}},
      {"its_own_gradient",
       autograd,
       [] {
         const Tensor x = leaf();
         x.set_grad(x);
       },
       {"set_grad: can't assign Variable as its own grad", "clone()"}},
      {"number_of_gradients",
       typeid(ValueError),
       [] {
         backward({leaf().sum()}, {ones({}), ones({})});
       },
       {"backward: got 1 outputs and 2 gradients"}},
      {"of_undefined", typeid(ValueError), [] { backward({Tensor()}); }, {"undefined"}},
      {"grad_of_unused",
       autograd,
       [] { grad({leaf().sum()}, {leaf()}); },
       {"grad: ", "not have been used in the graph", "input 0", "allow_unused=true"}},
      {"grad_of_plain_input",
       autograd,
       [] { grad({leaf().sum()}, {ones({3})}); },
       {"grad: input 0 does not require grad", "requires_grad_()"}},
      {"hook_gives_another_shape",
       typeid(ShapeError),
       [] {
         Tensor x = leaf();
         Tensor y = x * 2;
         y.register_hook([](const Tensor&) { return ones({2}); });
         y.sum().backward();
       },
       {"hook: a gradient of shape [2]", "tensor of shape [3]"}},
      {"hook_gives_another_dtype",
       typeid(DTypeError),
       [] {
         Tensor x = leaf();
         x.register_hook([](const Tensor& g) { return g.to(float64); });
         x.sum().backward();
       },
       {"hook: a gradient of dtype float64", "dtype float32", "to(dtype)"}},
  };
}

std::vector<WrongUse> in_place_rows() {
  const std::type_index autograd = typeid(AutogradError);
  return {
      {"leaf",
       autograd,
       [] { leaf().add_(1); },
       {"add_: a leaf Variable that requires grad", "NoGradGuard", "clone()"}},
      {"view_of_leaf",
       autograd,
       [] { leaf()[0].mul_(2); },
       {"mul_: a view of a leaf Variable that requires grad", "NoGradGuard", "clone()"}},
      {"view_taken_without_recording",
       autograd,
       [] {
         Tensor x = leaf();
         no_grad([&] { return x[0]; }).mul_(2);
       },
       {"mul_: a view that was taken in a NoGradGuard", "both inside, or both outside"}},
      {"saved_result",
       autograd,
       [] {
         Tensor y = exp(leaf());
         Tensor z = y.sum();
         y.add_(1);
         z.backward();
       },
       {"exp: one of the variables needed for gradient computation has been modified by an inplace operation",
        "float32 tensor of shape [3]", "version 1; expected version 0", "clone()"}},
      {"saved_input",
       autograd,
       [] {
         Tensor x = leaf() * 1;
         Tensor y = (x * x).sum();
         x.zero_();
         y.backward();
       },
       {"mul: one of the variables needed for gradient computation has been modified", "version 1",
        "version 0"}},
      {"saved_weight",
       autograd,
       [] {
         Tensor w = ones({2, 3}, {.requires_grad = true});
         Tensor x = ones({1, 3}, {.requires_grad = true});
         Tensor y = linear(x, w).sum();
         no_grad([&] { w.mul_(2); });
         y.backward();
       },
       {"linear: one of the variables needed for gradient computation has been modified", "[2, 3]"}},
      {"view_of_strided_base",
       autograd,
       [] {
         Tensor base = no_grad([] { return ones({2, 4}).narrow(1, 0, 3); });
         base[0].mul_(ones({3}, {.requires_grad = true}));
       },
       {"mul_: ", "gaps between its elements", "[2, 3]", "contiguous() before taking the view"}},
      {"detach_in_place_of_view",
       autograd,
       [] {
         Tensor x = leaf() * 1;
         x[0].detach_();
       },
       {"detach_: can't detach views in-place", "detach()"}},
  };
}

std::vector<WrongUse> flag_rows() {
  const std::type_index autograd = typeid(AutogradError);
  return {
      {"requires_grad_off_for_computed",
       autograd,
       [] { (leaf() * 2).requires_grad_(false); },
       {"requires_grad_: ", "leaf", "detach()"}},
      {"requires_grad_of_integers",
       typeid(DTypeError),
       [] { arange(3).requires_grad_(); },
       {"requires_grad_: only Tensors of floating point dtype", "int64", "to(float32)"}},
      {"retain_grad_without_gradient",
       autograd,
       [] { ones({2}).retain_grad(); },
       {"retain_grad: ", "requires_grad=False", "requires_grad_()"}},
      {"hook_without_gradient",
       autograd,
       [] { ones({2}).register_hook([](const Tensor& g) { return g; }); },
       {"register_hook: ", "doesn't require gradient", "requires_grad_()"}},
      {"empty_hook", typeid(ValueError), [] { leaf().register_hook({}); }, {"register_hook: ", "empty"}},
      {"set_grad_shape",
       typeid(ShapeError),
       [] { leaf().set_grad(ones({2})); },
       {"set_grad: ", "shape [3]", "got [2]"}},
      {"set_grad_dtype",
       typeid(DTypeError),
       [] { leaf().set_grad(ones({3}, {.dtype = float64})); },
       {"set_grad: ", "dtype float32", "got float64", "to(dtype)"}},
      {"gradcheck_of_floats",
       typeid(ValueError),
       [] { gradcheck([](const std::vector<Tensor>& x) { return x[0] * 2; }, {leaf()}); },
       {"gradcheck: input 0", "float64", "got float32"}},
      {"gradcheck_of_a_wrong_gradient",
       autograd,
       [] {
         const Tensor x = ones({2}, {.dtype = float64, .requires_grad = true});
         gradcheck([](const std::vector<Tensor>& in) { return in[0] * in[0].detach(); }, {x});
       },
       {"gradcheck: input 0, element 0", "the gradient is", "finite differences give"}},
  };
}

TERN_WRONG_USES(Backward, backward_rows);
TERN_WRONG_USES(ChangesInPlace, in_place_rows);
TERN_WRONG_USES(GradientFlags, flag_rows);

}  // namespace
}  // namespace tern

// The table of view, join and repetition operators: each on 0, 1, 2, ... with the text that PyTorch prints
// for the result.
#pragma once

#include "tern/ops/creation.h"
#include "tern/ops/shape.h"
#include "tests/ops/reduce_testing.h"

namespace tern::shape_test {

using testing::as;

/// An operator, the shape of its input, and the text of its result.
struct Row {
  const char* name;
  Shape shape;
  Tensor (*op)(const Tensor&);
  const char* text;
};

// clang-format off
inline const Row kRows[] = {
    {"view(x, {3, 2})", {2, 3}, [](const Tensor& x) { return view(x, {3, 2}); },
         "tensor([[0., 1.],\n"
         "        [2., 3.],\n"
         "        [4., 5.]])"},
    {"view(x, {-1})", {2, 3}, [](const Tensor& x) { return view(x, {-1}); },
         "tensor([0., 1., 2., 3., 4., 5.])"},
    {"view(x, {3, -1, 1})", {2, 3}, [](const Tensor& x) { return view(x, {3, -1, 1}); },
         "tensor([[[0.],\n"
         "         [1.]],\n"
         "\n"
         "        [[2.],\n"
         "         [3.]],\n"
         "\n"
         "        [[4.],\n"
         "         [5.]]])"},
    {"view(x, {1, 1})", {}, [](const Tensor& x) { return view(x, {1, 1}); },
         "tensor([[0.]])"},
    {"view(x, {})", {1}, [](const Tensor& x) { return view(x, {}); },
         "tensor(0.)"},
    {"view(permute(x, {2, 0, 1}), {4, 2, 3, 1})", {2, 3, 4}, [](const Tensor& x) { return view(permute(x, {2, 0, 1}), {4, 2, 3, 1}); },
         "tensor([[[[ 0.],\n"
         "          [ 4.],\n"
         "          [ 8.]],\n"
         "\n"
         "         [[12.],\n"
         "          [16.],\n"
         "          [20.]]],\n"
         "\n"
         "\n"
         "        [[[ 1.],\n"
         "          [ 5.],\n"
         "          [ 9.]],\n"
         "\n"
         "         [[13.],\n"
         "          [17.],\n"
         "          [21.]]],\n"
         "\n"
         "\n"
         "        [[[ 2.],\n"
         "          [ 6.],\n"
         "          [10.]],\n"
         "\n"
         "         [[14.],\n"
         "          [18.],\n"
         "          [22.]]],\n"
         "\n"
         "\n"
         "        [[[ 3.],\n"
         "          [ 7.],\n"
         "          [11.]],\n"
         "\n"
         "         [[15.],\n"
         "          [19.],\n"
         "          [23.]]]])"},
    {"view(transpose(x, 0, 2), {2, 3, 1, 2})", {2, 3, 2}, [](const Tensor& x) { return view(transpose(x, 0, 2), {2, 3, 1, 2}); },
         "tensor([[[[ 0.,  6.]],\n"
         "\n"
         "         [[ 2.,  8.]],\n"
         "\n"
         "         [[ 4., 10.]]],\n"
         "\n"
         "\n"
         "        [[[ 1.,  7.]],\n"
         "\n"
         "         [[ 3.,  9.]],\n"
         "\n"
         "         [[ 5., 11.]]]])"},
    {"reshape(t(x), {6})", {2, 3}, [](const Tensor& x) { return reshape(t(x), {6}); },
         "tensor([0., 3., 1., 4., 2., 5.])"},
    {"reshape(t(x), {2, -1})", {2, 3}, [](const Tensor& x) { return reshape(t(x), {2, -1}); },
         "tensor([[0., 3., 1.],\n"
         "        [4., 2., 5.]])"},
    {"view_as(x, zeros({6, 1}))", {2, 3}, [](const Tensor& x) { return view_as(x, zeros({6, 1})); },
         "tensor([[0.],\n"
         "        [1.],\n"
         "        [2.],\n"
         "        [3.],\n"
         "        [4.],\n"
         "        [5.]])"},
    {"reshape_as(t(x), zeros({1, 6}))", {2, 3}, [](const Tensor& x) { return reshape_as(t(x), zeros({1, 6})); },
         "tensor([[0., 3., 1., 4., 2., 5.]])"},
    {"flatten(x)", {2, 3, 2}, [](const Tensor& x) { return flatten(x); },
         "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11.])"},
    {"flatten(x, 1)", {2, 3, 2}, [](const Tensor& x) { return flatten(x, 1); },
         "tensor([[ 0.,  1.,  2.,  3.,  4.,  5.],\n"
         "        [ 6.,  7.,  8.,  9., 10., 11.]])"},
    {"flatten(x, 0, 1)", {2, 3, 2}, [](const Tensor& x) { return flatten(x, 0, 1); },
         "tensor([[ 0.,  1.],\n"
         "        [ 2.,  3.],\n"
         "        [ 4.,  5.],\n"
         "        [ 6.,  7.],\n"
         "        [ 8.,  9.],\n"
         "        [10., 11.]])"},
    {"flatten(transpose(x, 1, 2), 1)", {2, 3, 2}, [](const Tensor& x) { return flatten(transpose(x, 1, 2), 1); },
         "tensor([[ 0.,  2.,  4.,  1.,  3.,  5.],\n"
         "        [ 6.,  8., 10.,  7.,  9., 11.]])"},
    {"flatten(x)", {}, [](const Tensor& x) { return flatten(x); },
         "tensor([0.])"},
    {"unflatten(x, 1, {3, -1})", {2, 6}, [](const Tensor& x) { return unflatten(x, 1, {3, -1}); },
         "tensor([[[ 0.,  1.],\n"
         "         [ 2.,  3.],\n"
         "         [ 4.,  5.]],\n"
         "\n"
         "        [[ 6.,  7.],\n"
         "         [ 8.,  9.],\n"
         "         [10., 11.]]])"},
    {"unflatten(x, -1, {2, 3})", {6}, [](const Tensor& x) { return unflatten(x, -1, {2, 3}); },
         "tensor([[0., 1., 2.],\n"
         "        [3., 4., 5.]])"},
    {"squeeze(x)", {1, 3, 1}, [](const Tensor& x) { return squeeze(x); },
         "tensor([0., 1., 2.])"},
    {"squeeze(x, -1)", {1, 3, 1}, [](const Tensor& x) { return squeeze(x, -1); },
         "tensor([[0., 1., 2.]])"},
    {"squeeze(x, 1)", {1, 3, 1}, [](const Tensor& x) { return squeeze(x, 1); },
         "tensor([[[0.],\n"
         "         [1.],\n"
         "         [2.]]])"},
    {"squeeze(x, {0, 2})", {1, 3, 1}, [](const Tensor& x) { return squeeze(x, {0, 2}); },
         "tensor([0., 1., 2.])"},
    {"unsqueeze(x, 0)", {2, 3}, [](const Tensor& x) { return unsqueeze(x, 0); },
         "tensor([[[0., 1., 2.],\n"
         "         [3., 4., 5.]]])"},
    {"unsqueeze(x, -1)", {2, 3}, [](const Tensor& x) { return unsqueeze(x, -1); },
         "tensor([[[0.],\n"
         "         [1.],\n"
         "         [2.]],\n"
         "\n"
         "        [[3.],\n"
         "         [4.],\n"
         "         [5.]]])"},
    {"unsqueeze(x, 0)", {}, [](const Tensor& x) { return unsqueeze(x, 0); },
         "tensor([0.])"},
    {"permute(x, {2, 0, 1})", {2, 3, 4}, [](const Tensor& x) { return permute(x, {2, 0, 1}); },
         "tensor([[[ 0.,  4.,  8.],\n"
         "         [12., 16., 20.]],\n"
         "\n"
         "        [[ 1.,  5.,  9.],\n"
         "         [13., 17., 21.]],\n"
         "\n"
         "        [[ 2.,  6., 10.],\n"
         "         [14., 18., 22.]],\n"
         "\n"
         "        [[ 3.,  7., 11.],\n"
         "         [15., 19., 23.]]])"},
    {"permute(x, {-1, 1, 0})", {2, 3, 4}, [](const Tensor& x) { return permute(x, {-1, 1, 0}); },
         "tensor([[[ 0., 12.],\n"
         "         [ 4., 16.],\n"
         "         [ 8., 20.]],\n"
         "\n"
         "        [[ 1., 13.],\n"
         "         [ 5., 17.],\n"
         "         [ 9., 21.]],\n"
         "\n"
         "        [[ 2., 14.],\n"
         "         [ 6., 18.],\n"
         "         [10., 22.]],\n"
         "\n"
         "        [[ 3., 15.],\n"
         "         [ 7., 19.],\n"
         "         [11., 23.]]])"},
    {"transpose(x, 0, 1)", {2, 3}, [](const Tensor& x) { return transpose(x, 0, 1); },
         "tensor([[0., 3.],\n"
         "        [1., 4.],\n"
         "        [2., 5.]])"},
    {"transpose(x, 0, -1)", {2, 2, 2}, [](const Tensor& x) { return transpose(x, 0, -1); },
         "tensor([[[0., 4.],\n"
         "         [2., 6.]],\n"
         "\n"
         "        [[1., 5.],\n"
         "         [3., 7.]]])"},
    {"swapaxes(x, 1, 0)", {2, 3}, [](const Tensor& x) { return swapaxes(x, 1, 0); },
         "tensor([[0., 3.],\n"
         "        [1., 4.],\n"
         "        [2., 5.]])"},
    {"t(x)", {2, 3}, [](const Tensor& x) { return t(x); },
         "tensor([[0., 3.],\n"
         "        [1., 4.],\n"
         "        [2., 5.]])"},
    {"t(x)", {3}, [](const Tensor& x) { return t(x); },
         "tensor([0., 1., 2.])"},
    {"mT(x)", {2, 2, 3}, [](const Tensor& x) { return mT(x); },
         "tensor([[[ 0.,  3.],\n"
         "         [ 1.,  4.],\n"
         "         [ 2.,  5.]],\n"
         "\n"
         "        [[ 6.,  9.],\n"
         "         [ 7., 10.],\n"
         "         [ 8., 11.]]])"},
    {"movedim(x, 0, 2)", {2, 3, 4}, [](const Tensor& x) { return movedim(x, 0, 2); },
         "tensor([[[ 0., 12.],\n"
         "         [ 1., 13.],\n"
         "         [ 2., 14.],\n"
         "         [ 3., 15.]],\n"
         "\n"
         "        [[ 4., 16.],\n"
         "         [ 5., 17.],\n"
         "         [ 6., 18.],\n"
         "         [ 7., 19.]],\n"
         "\n"
         "        [[ 8., 20.],\n"
         "         [ 9., 21.],\n"
         "         [10., 22.],\n"
         "         [11., 23.]]])"},
    {"movedim(x, {0, 1}, {-1, 0})", {2, 3, 2}, [](const Tensor& x) { return movedim(x, {0, 1}, {-1, 0}); },
         "tensor([[[ 0.,  6.],\n"
         "         [ 1.,  7.]],\n"
         "\n"
         "        [[ 2.,  8.],\n"
         "         [ 3.,  9.]],\n"
         "\n"
         "        [[ 4., 10.],\n"
         "         [ 5., 11.]]])"},
    {"expand(x, {3, 2})", {3, 1}, [](const Tensor& x) { return expand(x, {3, 2}); },
         "tensor([[0., 0.],\n"
         "        [1., 1.],\n"
         "        [2., 2.]])"},
    {"expand(x, {2, -1, 2})", {3, 1}, [](const Tensor& x) { return expand(x, {2, -1, 2}); },
         "tensor([[[0., 0.],\n"
         "         [1., 1.],\n"
         "         [2., 2.]],\n"
         "\n"
         "        [[0., 0.],\n"
         "         [1., 1.],\n"
         "         [2., 2.]]])"},
    {"expand(x, {2, 2})", {}, [](const Tensor& x) { return expand(x, {2, 2}); },
         "tensor([[0., 0.],\n"
         "        [0., 0.]])"},
    {"expand_as(x, zeros({2, 3}))", {3}, [](const Tensor& x) { return expand_as(x, zeros({2, 3})); },
         "tensor([[0., 1., 2.],\n"
         "        [0., 1., 2.]])"},
    {"broadcast_to(x, {3, 2})", {1, 2}, [](const Tensor& x) { return broadcast_to(x, {3, 2}); },
         "tensor([[0., 1.],\n"
         "        [0., 1.],\n"
         "        [0., 1.]])"},
    {"broadcast_tensors({x, zeros({2, 1})})[0]", {3}, [](const Tensor& x) { return broadcast_tensors({x, zeros({2, 1})})[0]; },
         "tensor([[0., 1., 2.],\n"
         "        [0., 1., 2.]])"},
    {"meshgrid({x, zeros({2})})[0]", {3}, [](const Tensor& x) { return meshgrid({x, zeros({2}, as(x.dtype()))})[0]; },
         "tensor([[0., 0.],\n"
         "        [1., 1.],\n"
         "        [2., 2.]])"},
    {"meshgrid({zeros({2}), x})[1]", {3}, [](const Tensor& x) { return meshgrid({zeros({2}, as(x.dtype())), x})[1]; },
         "tensor([[0., 1., 2.],\n"
         "        [0., 1., 2.]])"},
    {"meshgrid({x, zeros({2})}, \"xy\")[0]", {3}, [](const Tensor& x) { return meshgrid({x, zeros({2}, as(x.dtype()))}, "xy")[0]; },
         "tensor([[0., 1., 2.],\n"
         "        [0., 1., 2.]])"},
    {"meshgrid({zeros({2}), x}, \"xy\")[1]", {3}, [](const Tensor& x) { return meshgrid({zeros({2}, as(x.dtype())), x}, "xy")[1]; },
         "tensor([[0., 0.],\n"
         "        [1., 1.],\n"
         "        [2., 2.]])"},
    {"narrow(x, 1, 1, 2)", {2, 4}, [](const Tensor& x) { return narrow(x, 1, 1, 2); },
         "tensor([[1., 2.],\n"
         "        [5., 6.]])"},
    {"narrow(x, -1, -3, 2)", {2, 4}, [](const Tensor& x) { return narrow(x, -1, -3, 2); },
         "tensor([[1., 2.],\n"
         "        [5., 6.]])"},
    {"narrow(x, 0, 4, 0)", {4}, [](const Tensor& x) { return narrow(x, 0, 4, 0); },
         "tensor([])"},
    {"slice(x, 0, 1, 6, 2)", {7}, [](const Tensor& x) { return slice(x, 0, 1, 6, 2); },
         "tensor([1., 3., 5.])"},
    {"slice(x, 0, -3)", {7}, [](const Tensor& x) { return slice(x, 0, -3); },
         "tensor([4., 5., 6.])"},
    {"slice(x, 0, {}, -2, 3)", {7}, [](const Tensor& x) { return slice(x, 0, {}, -2, 3); },
         "tensor([0., 3.])"},
    {"slice(x, 0, 5, 100)", {7}, [](const Tensor& x) { return slice(x, 0, 5, 100); },
         "tensor([5., 6.])"},
    {"slice(x, 0, 5, 2)", {7}, [](const Tensor& x) { return slice(x, 0, 5, 2); },
         "tensor([])"},
    {"slice(x, 1, {}, {}, 2)", {2, 5}, [](const Tensor& x) { return slice(x, 1, {}, {}, 2); },
         "tensor([[0., 2., 4.],\n"
         "        [5., 7., 9.]])"},
    {"select(x, 0, 1)", {2, 3}, [](const Tensor& x) { return select(x, 0, 1); },
         "tensor([3., 4., 5.])"},
    {"select(x, -1, -2)", {2, 3}, [](const Tensor& x) { return select(x, -1, -2); },
         "tensor([1., 4.])"},
    {"select(x, 0, 2)", {3}, [](const Tensor& x) { return select(x, 0, 2); },
         "tensor(2.)"},
    {"x[1][2]", {2, 3}, [](const Tensor& x) { return x[1][2]; },
         "tensor(5.)"},
    {"unbind(x)[2]", {3, 2}, [](const Tensor& x) { return unbind(x)[2]; },
         "tensor([4., 5.])"},
    {"unbind(x, 1)[0]", {3, 2}, [](const Tensor& x) { return unbind(x, 1)[0]; },
         "tensor([0., 2., 4.])"},
    {"chunk(x, 3)[0]", {7}, [](const Tensor& x) { return chunk(x, 3)[0]; },
         "tensor([0., 1., 2.])"},
    {"chunk(x, 3)[2]", {7}, [](const Tensor& x) { return chunk(x, 3)[2]; },
         "tensor([6.])"},
    {"chunk(x, 2, 1)[1]", {2, 4}, [](const Tensor& x) { return chunk(x, 2, 1)[1]; },
         "tensor([[2., 3.],\n"
         "        [6., 7.]])"},
    {"split(x, 3)[2]", {7}, [](const Tensor& x) { return split(x, 3)[2]; },
         "tensor([6.])"},
    {"split(x, {1, 4}, 1)[1]", {2, 5}, [](const Tensor& x) { return split(x, {1, 4}, 1)[1]; },
         "tensor([[1., 2., 3., 4.],\n"
         "        [6., 7., 8., 9.]])"},
    {"diagonal(x)", {3, 3}, [](const Tensor& x) { return diagonal(x); },
         "tensor([0., 4., 8.])"},
    {"diagonal(x, 2)", {3, 4}, [](const Tensor& x) { return diagonal(x, 2); },
         "tensor([2., 7.])"},
    {"diagonal(x, -1)", {3, 4}, [](const Tensor& x) { return diagonal(x, -1); },
         "tensor([4., 9.])"},
    {"diagonal(x, 1, 2, 0)", {2, 3, 3}, [](const Tensor& x) { return diagonal(x, 1, 2, 0); },
         "tensor([[ 9.],\n"
         "        [12.],\n"
         "        [15.]])"},
    {"diagonal(x, 5)", {2, 2}, [](const Tensor& x) { return diagonal(x, 5); },
         "tensor([])"},
    {"unfold(x, 0, 3, 2)", {7}, [](const Tensor& x) { return unfold(x, 0, 3, 2); },
         "tensor([[0., 1., 2.],\n"
         "        [2., 3., 4.],\n"
         "        [4., 5., 6.]])"},
    {"unfold(x, 0, 2, 1)", {7}, [](const Tensor& x) { return unfold(x, 0, 2, 1); },
         "tensor([[0., 1.],\n"
         "        [1., 2.],\n"
         "        [2., 3.],\n"
         "        [3., 4.],\n"
         "        [4., 5.],\n"
         "        [5., 6.]])"},
    {"unfold(x, 1, 3, 1)", {2, 5}, [](const Tensor& x) { return unfold(x, 1, 3, 1); },
         "tensor([[[0., 1., 2.],\n"
         "         [1., 2., 3.],\n"
         "         [2., 3., 4.]],\n"
         "\n"
         "        [[5., 6., 7.],\n"
         "         [6., 7., 8.],\n"
         "         [7., 8., 9.]]])"},
    {"unfold(x, 0, 2, 3)", {5, 2}, [](const Tensor& x) { return unfold(x, 0, 2, 3); },
         "tensor([[[0., 2.],\n"
         "         [1., 3.]],\n"
         "\n"
         "        [[6., 8.],\n"
         "         [7., 9.]]])"},
    {"unfold(x, 0, 1, 1)", {}, [](const Tensor& x) { return unfold(x, 0, 1, 1); },
         "tensor([0.])"},
    {"as_strided(x, {2, 2}, {3, 1}, 1)", {6}, [](const Tensor& x) { return as_strided(x, {2, 2}, {3, 1}, 1); },
         "tensor([[1., 2.],\n"
         "        [4., 5.]])"},
    {"as_strided(x, {3, 3}, {1, 1})", {6}, [](const Tensor& x) { return as_strided(x, {3, 3}, {1, 1}); },
         "tensor([[0., 1., 2.],\n"
         "        [1., 2., 3.],\n"
         "        [2., 3., 4.]])"},
    {"as_strided(t(x), {4}, {1})", {2, 3}, [](const Tensor& x) { return as_strided(t(x), {4}, {1}); },
         "tensor([0., 1., 2., 3.])"},
    {"cat({x, x}, 0)", {2, 3}, [](const Tensor& x) { return cat({x, x}, 0); },
         "tensor([[0., 1., 2.],\n"
         "        [3., 4., 5.],\n"
         "        [0., 1., 2.],\n"
         "        [3., 4., 5.]])"},
    {"cat({x, ones({2, 1}), x}, -1)", {2, 3}, [](const Tensor& x) { return cat({x, ones({2, 1}), x}, -1); },
         "tensor([[0., 1., 2., 1., 0., 1., 2.],\n"
         "        [3., 4., 5., 1., 3., 4., 5.]])"},
    {"cat({t(x), t(x)}, 1)", {2, 3}, [](const Tensor& x) { return cat({t(x), t(x)}, 1); },
         "tensor([[0., 3., 0., 3.],\n"
         "        [1., 4., 1., 4.],\n"
         "        [2., 5., 2., 5.]])"},
    {"cat({zeros({0}), x})", {2, 3}, [](const Tensor& x) { return cat({zeros({0}), x}); },
         "tensor([[0., 1., 2.],\n"
         "        [3., 4., 5.]])"},
    {"cat({x})", {2, 3}, [](const Tensor& x) { return cat({x}); },
         "tensor([[0., 1., 2.],\n"
         "        [3., 4., 5.]])"},
    {"stack({x, x, ones({3})})", {3}, [](const Tensor& x) { return stack({x, x, ones({3})}); },
         "tensor([[0., 1., 2.],\n"
         "        [0., 1., 2.],\n"
         "        [1., 1., 1.]])"},
    {"stack({x, t(x)}, 1)", {2, 2}, [](const Tensor& x) { return stack({x, t(x)}, 1); },
         "tensor([[[0., 1.],\n"
         "         [0., 2.]],\n"
         "\n"
         "        [[2., 3.],\n"
         "         [1., 3.]]])"},
    {"stack({x, x}, -1)", {2, 2}, [](const Tensor& x) { return stack({x, x}, -1); },
         "tensor([[[0., 0.],\n"
         "         [1., 1.]],\n"
         "\n"
         "        [[2., 2.],\n"
         "         [3., 3.]]])"},
    {"stack({x, x})", {}, [](const Tensor& x) { return stack({x, x}); },
         "tensor([0., 0.])"},
    {"hstack({x, x})", {3}, [](const Tensor& x) { return hstack({x, x}); },
         "tensor([0., 1., 2., 0., 1., 2.])"},
    {"hstack({x, x})", {2, 1}, [](const Tensor& x) { return hstack({x, x}); },
         "tensor([[0., 0.],\n"
         "        [1., 1.]])"},
    {"vstack({x, x})", {3}, [](const Tensor& x) { return vstack({x, x}); },
         "tensor([[0., 1., 2.],\n"
         "        [0., 1., 2.]])"},
    {"repeat(x, {3})", {2}, [](const Tensor& x) { return repeat(x, {3}); },
         "tensor([0., 1., 0., 1., 0., 1.])"},
    {"repeat(x, {2, 2})", {2}, [](const Tensor& x) { return repeat(x, {2, 2}); },
         "tensor([[0., 1., 0., 1.],\n"
         "        [0., 1., 0., 1.]])"},
    {"repeat(x, {2, 1, 2})", {2, 3}, [](const Tensor& x) { return repeat(x, {2, 1, 2}); },
         "tensor([[[0., 1., 2., 0., 1., 2.],\n"
         "         [3., 4., 5., 3., 4., 5.]],\n"
         "\n"
         "        [[0., 1., 2., 0., 1., 2.],\n"
         "         [3., 4., 5., 3., 4., 5.]]])"},
    {"repeat(x, {1, 1})", {2, 3}, [](const Tensor& x) { return repeat(x, {1, 1}); },
         "tensor([[0., 1., 2.],\n"
         "        [3., 4., 5.]])"},
    {"repeat(x, {0, 1})", {2, 3}, [](const Tensor& x) { return repeat(x, {0, 1}); },
         "tensor([], size=(0, 3))"},
    {"tile(x, {2})", {2, 2}, [](const Tensor& x) { return tile(x, {2}); },
         "tensor([[0., 1., 0., 1.],\n"
         "        [2., 3., 2., 3.]])"},
    {"tile(x, {2, 2})", {2}, [](const Tensor& x) { return tile(x, {2, 2}); },
         "tensor([[0., 1., 0., 1.],\n"
         "        [0., 1., 0., 1.]])"},
    {"repeat_interleave(x, 2)", {2, 2}, [](const Tensor& x) { return repeat_interleave(x, 2); },
         "tensor([0., 0., 1., 1., 2., 2., 3., 3.])"},
    {"repeat_interleave(x, 3, 0)", {2, 2}, [](const Tensor& x) { return repeat_interleave(x, 3, 0); },
         "tensor([[0., 1.],\n"
         "        [0., 1.],\n"
         "        [0., 1.],\n"
         "        [2., 3.],\n"
         "        [2., 3.],\n"
         "        [2., 3.]])"},
    {"repeat_interleave(x, 2, -1)", {2, 2}, [](const Tensor& x) { return repeat_interleave(x, 2, -1); },
         "tensor([[0., 0., 1., 1.],\n"
         "        [2., 2., 3., 3.]])"},
    {"roll(x, {2})", {5}, [](const Tensor& x) { return roll(x, {2}); },
         "tensor([3., 4., 0., 1., 2.])"},
    {"roll(x, {-1}, {0})", {5}, [](const Tensor& x) { return roll(x, {-1}, {0}); },
         "tensor([1., 2., 3., 4., 0.])"},
    {"roll(x, {1})", {2, 3}, [](const Tensor& x) { return roll(x, {1}); },
         "tensor([[5., 0., 1.],\n"
         "        [2., 3., 4.]])"},
    {"roll(x, {1, -1}, {0, 1})", {2, 3}, [](const Tensor& x) { return roll(x, {1, -1}, {0, 1}); },
         "tensor([[4., 5., 3.],\n"
         "        [1., 2., 0.]])"},
    {"roll(x, {3}, {1})", {2, 3}, [](const Tensor& x) { return roll(x, {3}, {1}); },
         "tensor([[0., 1., 2.],\n"
         "        [3., 4., 5.]])"},
    {"flip(x, {0})", {4}, [](const Tensor& x) { return flip(x, {0}); },
         "tensor([3., 2., 1., 0.])"},
    {"flip(x, {0, 1})", {2, 3}, [](const Tensor& x) { return flip(x, {0, 1}); },
         "tensor([[5., 4., 3.],\n"
         "        [2., 1., 0.]])"},
    {"flip(x, {-1})", {2, 2, 2}, [](const Tensor& x) { return flip(x, {-1}); },
         "tensor([[[1., 0.],\n"
         "         [3., 2.]],\n"
         "\n"
         "        [[5., 4.],\n"
         "         [7., 6.]]])"},
    {"flip(t(x), {1})", {2, 3}, [](const Tensor& x) { return flip(t(x), {1}); },
         "tensor([[3., 0.],\n"
         "        [4., 1.],\n"
         "        [5., 2.]])"},
    {"flip(x, {})", {2, 3}, [](const Tensor& x) { return flip(x, {}); },
         "tensor([[0., 1., 2.],\n"
         "        [3., 4., 5.]])"},
    {"tril(x)", {3, 3}, [](const Tensor& x) { return tril(x); },
         "tensor([[0., 0., 0.],\n"
         "        [3., 4., 0.],\n"
         "        [6., 7., 8.]])"},
    {"tril(x, 1)", {3, 4}, [](const Tensor& x) { return tril(x, 1); },
         "tensor([[ 0.,  1.,  0.,  0.],\n"
         "        [ 4.,  5.,  6.,  0.],\n"
         "        [ 8.,  9., 10., 11.]])"},
    {"triu(x, -1)", {2, 3, 3}, [](const Tensor& x) { return triu(x, -1); },
         "tensor([[[ 0.,  1.,  2.],\n"
         "         [ 3.,  4.,  5.],\n"
         "         [ 0.,  7.,  8.]],\n"
         "\n"
         "        [[ 9., 10., 11.],\n"
         "         [12., 13., 14.],\n"
         "         [ 0., 16., 17.]]])"},
    {"triu(t(x), 1)", {3, 3}, [](const Tensor& x) { return triu(t(x), 1); },
         "tensor([[0., 3., 6.],\n"
         "        [0., 0., 7.],\n"
         "        [0., 0., 0.]])"},
    {"triu(x, 9)", {2, 3}, [](const Tensor& x) { return triu(x, 9); },
         "tensor([[0., 0., 0.],\n"
         "        [0., 0., 0.]])"},
    {"tril(x, -9)", {2, 3}, [](const Tensor& x) { return tril(x, -9); },
         "tensor([[0., 0., 0.],\n"
         "        [0., 0., 0.]])"},
    {"view(x, {3, 0})", {0, 3}, [](const Tensor& x) { return view(x, {3, 0}); },
         "tensor([], size=(3, 0))"},
    {"t(x)", {0, 3}, [](const Tensor& x) { return t(x); },
         "tensor([], size=(3, 0))"},
    {"cat({x, x})", {0, 3}, [](const Tensor& x) { return cat({x, x}); },
         "tensor([], size=(0, 3))"},
    {"flip(x, {0, 1})", {0, 3}, [](const Tensor& x) { return flip(x, {0, 1}); },
         "tensor([], size=(0, 3))"},
    {"repeat(x, {2, 2})", {0, 3}, [](const Tensor& x) { return repeat(x, {2, 2}); },
         "tensor([], size=(0, 6))"},
    {"reshape(x, {-1, 3})", {0, 3}, [](const Tensor& x) { return reshape(x, {-1, 3}); },
         "tensor([], size=(0, 3))"},
    {"chunk(x, 2)[1]", {0, 3}, [](const Tensor& x) { return chunk(x, 2)[1]; },
         "tensor([], size=(0, 3))"},
    {"expand(unsqueeze(x, 0), {2, 0, 3})", {0, 3}, [](const Tensor& x) { return expand(unsqueeze(x, 0), {2, 0, 3}); },
         "tensor([], size=(2, 0, 3))"},
};
// clang-format on

}  // namespace tern::shape_test

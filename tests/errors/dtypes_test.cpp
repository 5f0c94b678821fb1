// Wrong uses: dtypes, and values that a dtype does not hold.
#include <complex>

#include "wrong_use.h"

namespace tern {
namespace {

/// A tensor of a dtype that is held but not computed on.
Tensor half_complex() { return Tensor::from_storage(ones({8}).storage(), DType::Complex32, {2}); }
Tensor complex_ones() { return ones({2, 2}, {.dtype = complex64}); }

std::vector<WrongUse> operator_rows() {
  const std::type_index dtype = typeid(DTypeError);
  return {
      {"matmul_two_dtypes",
       dtype,
       [] {
         matmul(ones({2, 2}), ones({2, 2}, {.dtype = float64}));
       },
       {"matmul: ", "same dtype", "float32 and float64", "to(dtype)"}},
      {"matmul_of_bools",
       dtype,
       [] {
         matmul(ones({2, 2}, {.dtype = bool_}), ones({2, 2}, {.dtype = bool_}));
       },
       {"matmul: not implemented for bool", "to(dtype)"}},
      {"linear_bias",
       dtype,
       [] {
         linear(ones({2, 3}), ones({4, 3}), ones({4}, {.dtype = float64}));
       },
       {"linear: ", "weight and bias", "float32 and float64", "to(dtype)"}},
      {"addmm_input",
       dtype,
       [] {
         addmm(ones({2}, {.dtype = int64}), ones({2, 2}), ones({2, 2}));
       },
       {"addmm: ", "input and matrices", "int64 and float32", "to(dtype)"}},
      {"add_of_half_complex", dtype, [] { add(half_complex(), 1); }, {"add: ", "complex32", "not supported"}},
      {"exp_of_half_complex", dtype, [] { exp(half_complex()); }, {"exp: ", "complex32", "not supported"}},
      {"sum_of_half_complex", dtype, [] { sum(half_complex()); }, {"sum: ", "complex32", "not supported"}},
      {"to_half_complex",
       dtype,
       [] { ones({2}).to(DType::Complex32); },
       {"to: no conversion from float32 to complex32"}},
      {"copy_of_half_complex",
       dtype,
       [] { ones({2}).copy_(half_complex()); },
       {"copy_: no conversion from complex32 to float32", "one dtype"}},
      {"item_of_half_complex",
       dtype,
       [] { half_complex()[0].item(); },
       {"item: ", "complex32", "copy_to_host()"}},
      {"prod_of_complex", dtype, [] { prod(complex_ones()); }, {"prod", "complex64"}},
      {"max_of_complex", dtype, [] { max(complex_ones()); }, {"max", "complex64", "not supported"}},
      {"sort_of_complex", dtype, [] { sort(complex_ones()); }, {"complex64"}},
      {"lt_of_complex", dtype, [] { lt(complex_ones(), 1); }, {"lt: not implemented for complex64", "abs()"}},
      {"relu_of_complex", dtype, [] { relu(complex_ones()); }, {"relu: ", "complex64", "not supported"}},
      {"softmax_of_complex", dtype, [] { softmax(complex_ones(), 0); }, {"softmax: ", "complex64"}},
      {"conv1d_of_complex",
       dtype,
       [] {
         conv1d(complex_ones(), ones({2, 2, 1}, {.dtype = complex64}));
       },
       {"conv1d: ", "complex64"}},
      {"inv_of_complex", dtype, [] { linalg::inv(complex_ones()); }, {"complex64"}},
      {"clamp_to_complex",
       typeid(ValueError),
       [] { clamp(ones({2}), Scalar(std::complex<double>(0, 1)), {}); },
       {"imaginary part"}},
      {"imag_of_real", dtype, [] { imag(ones({2})); }, {"imag: ", "complex64", "float32"}},
      {"complex_of_halves",
       dtype,
       [] { tern::complex(ones({2}), ones({2}, {.dtype = float64})); },
       {"complex: ", "float64", "to(dtype)"}},
      {"rfft_of_complex", dtype, [] { fft::rfft(complex_ones()); }, {"rfft: expects a real input", "real()"}},
      {"fft_of_halves",
       dtype,
       [] { fft::fft(ones({2}, {.dtype = float16})); },
       {"fft: ", "float16", "to(float32)"}},
      {"fft_of_nothing",
       typeid(ValueError),
       [] { fft::fft(ones({2}), 0); },
       {"fft: Invalid number of data points (0)"}},
      {"sub_of_bools",
       dtype,
       [] { sub(ones({2}, {.dtype = bool_}), ones({2}, {.dtype = bool_})); },
       {"sub: ", "two bool tensors", "logical_xor()"}},
      {"frac_of_integers", dtype, [] { frac(arange(3)); }, {"frac: ", "int64", "floats", "to(dtype)"}},
      {"hypot_of_integers",
       dtype,
       [] { hypot(arange(3), arange(3)); },
       {"hypot: ", "int64", "floats", "to(dtype)"}},
      {"logaddexp2_of_integers",
       dtype,
       [] { logaddexp2(arange(3), arange(3)); },
       {"logaddexp2: ", "int64", "floats", "to(dtype)"}},
      {"heaviside_two_dtypes",
       dtype,
       [] { heaviside(ones({2}), ones({2}, {.dtype = float64})); },
       {"heaviside: ", "different dtypes", "float32", "float64", "to(dtype)"}},
      {"lerp_of_integers", dtype, [] { lerp(arange(3), arange(3), 0.5); }, {"lerp: ", "int64", "floats"}},
      {"lerp_end",
       dtype,
       [] { lerp(ones({2}), ones({2}, {.dtype = float64}), 0.5); },
       {"lerp: ", "float32", "`end`", "float64", "to(dtype)"}},
      {"lerp_weight",
       dtype,
       [] { ones({2}).lerp_(ones({2}), ones({2}, {.dtype = float64})); },
       {"lerp: ", "float32", "`weight`", "float64", "to(dtype)"}},
      {"addcmul_of_bools",
       dtype,
       [] { addcmul(ones({2}) > 0, ones({2}) > 0, ones({2}) > 0); },
       {"addcmul: ", "bool", "not supported", "to(dtype)"}},
      {"addcmul_value",
       dtype,
       [] { addcmul(arange(3), arange(3), arange(3), 0.5); },
       {"addcmul: ", "value", "0.5", "int64"}},
      {"addcdiv_of_integers",
       dtype,
       [] { addcdiv(ones({3}), arange(3), arange(3)); },
       {"addcdiv: ", "Integer division", "int64", "to(dtype)"}},
      {"sin_of_integers_in_place",
       dtype,
       [] { arange(3).sin_(); },
       {"sin_: result type float32 can't be cast", "int64", "not in place"}},
      {"addcmul_in_place",
       dtype,
       [] { arange(3).addcmul_(ones({3}), ones({3})); },
       {"addcmul_: result type float32 can't be cast", "int64", "not in place"}},
      {"neg_of_bool", dtype, [] { neg(ones({2}, {.dtype = bool_})); }, {"neg: ", "bool", "to(dtype)"}},
      {"bitwise_and_of_floats",
       dtype,
       [] { bitwise_and(ones({2}), ones({2})); },
       {"bitwise_and: not implemented for float32", "integers and bool"}},
      {"bitwise_not_of_float",
       dtype,
       [] { bitwise_not(ones({2})); },
       {"bitwise_not: not implemented for float32", "integers and bool"}},
      {"in_place_would_widen",
       dtype,
       [] { ones({2}, {.dtype = int64}).add_(ones({2})); },
       {"add_: result type float32", "output type int64", "not in place"}},
      {"div_in_place_of_integers",
       dtype,
       [] { ones({2}, {.dtype = int64}).div_(2); },
       {"div_: result type float32", "output type int64", "not in place"}},
      {"fraction_as_alpha_of_integers",
       dtype,
       [] { ones({2}, {.dtype = int64}).add_(ones({2}, {.dtype = int64}), 0.5); },
       {"add_: ", "alpha", "floating point", "0.5"}},
      {"mean_of_integers", dtype, [] { mean(arange(4)); }, {"mean: ", "int64", "floating"}},
      {"var_of_integers", dtype, [] { var(arange(4)); }, {"var: ", "int64", "float"}},
      {"norm_of_integers", dtype, [] { norm(arange(4)); }, {"norm: ", "int64", "float"}},
      {"softmax_of_integers",
       dtype,
       [] { softmax(arange(4), 0); },
       {"softmax: not implemented for int64", "to(float32)"}},
      {"argmax_of_bools", dtype, [] { argmax(ones({2}, {.dtype = bool_})); }, {"argmax: ", "bool", "to("}},
      {"topk_of_bools", dtype, [] { topk(ones({2}, {.dtype = bool_}), 1); }, {"topk: ", "bool", "to(uint8)"}},
      {"median_of_bools",
       dtype,
       [] { median(ones({2}, {.dtype = bool_})); },
       {"median: ", "bool", "to(uint8)"}},
      {"isclose_of_two_dtypes",
       dtype,
       [] { isclose(ones({2}), ones({2}, {.dtype = float64})); },
       {"isclose: ", "a is float32, b is float64", "to(dtype)"}},
  };
}

std::vector<WrongUse> network_dtype_rows() {
  const std::type_index dtype = typeid(DTypeError);
  return {
      {"conv2d_two_dtypes",
       dtype,
       [] {
         conv2d(ones({1, 1, 3, 3}, {.dtype = float64}), ones({1, 1, 3, 3}));
       },
       {"conv2d: Input type (float64)", "weight type (float32)", "to(dtype)"}},
      {"conv2d_bias",
       dtype,
       [] {
         conv2d(ones({1, 1, 3, 3}), ones({1, 1, 3, 3}), ones({1}, {.dtype = float64}));
       },
       {"conv2d: Input type (float32)", "bias type (float64)", "to(dtype)"}},
      {"conv2d_of_integers",
       dtype,
       [] {
         conv2d(ones({1, 1, 3, 3}, {.dtype = int64}), ones({1, 1, 3, 3}, {.dtype = int64}));
       },
       {"conv2d: not implemented for int64", "to(float32)"}},
      {"avg_pool3d_of_integers",
       dtype,
       [] {
         avg_pool3d(ones({1, 2, 2, 2}, {.dtype = int64}), 2);
       },
       {"avg_pool3d: not implemented for int64", "to(float32)"}},
      {"max_pool2d_of_bools",
       dtype,
       [] {
         max_pool2d(ones({1, 2, 2}, {.dtype = bool_}), {.kernel_size = 2});
       },
       {"max_pool2d: not implemented for bool", "to(dtype)"}},
      {"interpolate_of_bytes",
       dtype,
       [] {
         interpolate(ones({1, 1, 4}, {.dtype = uint8}), {.size = {3}, .mode = "linear"});
       },
       {"interpolate: mode linear is not implemented for uint8", "to(float32)"}},
      {"avg_pool2d_of_bytes",
       dtype,
       [] {
         avg_pool2d(ones({1, 2, 2}, {.dtype = uint8}), {.kernel_size = 2});
       },
       {"avg_pool2d: not implemented for uint8", "to(float32)"}},
      {"layer_norm_of_integers",
       dtype,
       [] {
         layer_norm(ones({2, 3}, {.dtype = int64}), {3});
       },
       {"layer_norm: not implemented for int64", "to(float32)"}},
      {"batch_norm_weight",
       dtype,
       [] {
         batch_norm(ones({4, 3}), zeros({3}), ones({3}), ones({3}, {.dtype = float64}));
       },
       {"batch_norm: weight", "float32", "float64"}},
      {"embedding_of_floats",
       dtype,
       [] {
         embedding(ones({2}), ones({4, 3}));
       },
       {"embedding: ", "int32/int64", "float32", "to(int64)"}},
      {"cross_entropy_target",
       dtype,
       [] {
         cross_entropy(ones({4, 3}), ones({4}));
       },
       {"cross_entropy: ", "target dtype", "int64", "float32", "to(int64)"}},
      {"cross_entropy_of_integers",
       dtype,
       [] {
         cross_entropy(ones({4, 3}, {.dtype = int64}), zeros({4}, {.dtype = int64}));
       },
       {"cross_entropy: ", "int64", "floating point", "to(float32)"}},
      {"mse_loss_of_integers",
       dtype,
       [] { mse_loss(arange(3), arange(3)); },
       {"mse_loss: not implemented for int64", "to(float32)"}},
      {"module_to_integers",
       dtype,
       [] { nn::Linear(2, 2).to(int64); },
       {"Module::to: only floating-point dtypes", "int64"}},
      {"linear_input",
       dtype,
       [] {
         nn::MLP({3, 2})(ones({1, 3}, {.dtype = float64}));
       },
       {"MLP.fc1 (Linear): ", "linear: ", "float64 and float32", "to(dtype)"}},
      {"optimizer_of_integers",
       dtype,
       [] { optim::SGD({arange(3)}); },
       {"SGD: only floating-point and complex tensors", "parameter 0 is int64"}},
  };
}

std::vector<WrongUse> index_dtype_rows() {
  const std::type_index dtype = typeid(DTypeError);
  return {
      {"gather_with_floats",
       dtype,
       [] { gather(ones({3}), 0, ones({1})); },
       {"gather: ", "int32/int64", "float32", "to(int64)"}},
      {"index_select_with_bools",
       dtype,
       [] { index_select(ones({3}), 0, ones({3}, {.dtype = bool_})); },
       {"index_select: ", "int32/int64", "bool", "to(int64)"}},
      {"index_with_floats",
       typeid(IndexError),
       [] { index(ones({3}), {ones({1})}); },
       {"index: ", "int64, int32, uint8 or bool", "float32", "to(int64)"}},
      {"index_add_source",
       dtype,
       [] { index_add(ones({3}), 0, tensor({0}), ones({1}, {.dtype = float64})); },
       {"index_add: ", "float32 and float64", "to(dtype)"}},
      {"index_put_values",
       dtype,
       [] { index_put(ones({3}), {tensor({0})}, ones({1}, {.dtype = float64})); },
       {"index_put: ", "float32", "float64", "to(dtype)"}},
      {"where_condition",
       dtype,
       [] { where(ones({3}), ones({3}), ones({3})); },
       {"where: expected a bool tensor as condition", "float32", "ne(x, 0)"}},
      {"masked_fill_mask",
       dtype,
       [] { masked_fill(ones({3}), arange(3), 0); },
       {"masked_fill: expected a bool tensor as mask", "int64", "ne(x, 0)"}},
      {"searchsorted_two_dtypes",
       dtype,
       [] { searchsorted(arange(3), ones({2})); },
       {"searchsorted: ", "same dtype", "int64 and float32", "to(dtype)"}},
      {"one_hot_of_floats",
       dtype,
       [] { one_hot(ones({3})); },
       {"one_hot: ", "integers", "float32", "to(int64)"}},
      {"meshgrid_two_dtypes",
       dtype,
       [] {
         meshgrid({arange(3), ones({2})});
       },
       {"meshgrid: ", "int64 and float32", "to(dtype)"}},
  };
}

std::vector<WrongUse> creation_rows() {
  const std::type_index dtype = typeid(DTypeError);
  return {
      {"arange_of_bools", dtype, [] { arange(3, {.dtype = bool_}); }, {"arange: ", "bool"}},
      {"linspace_of_bools", dtype, [] { linspace(0, 1, 3, {.dtype = bool_}); }, {"linspace: ", "bool"}},
      {"ones_of_half_complex",
       dtype,
       [] { ones({2}, {.dtype = DType::Complex32}); },
       {"ones: ", "complex32", "no operator computes"}},
      {"rand_of_integers",
       dtype,
       [] { rand({2}, {.dtype = int64}); },
       {"rand: ", "floating-point dtype", "int64"}},
      {"uniform_of_integers",
       dtype,
       [] {
         Tensor x = arange(3);
         uniform_(x);
       },
       {"uniform_: ", "floating-point dtype", "int64"}},
      {"integers_with_gradient",
       dtype,
       [] { zeros({2}, {.dtype = int64, .requires_grad = true}); },
       {"requires_grad", "floating point", "int64"}},
      {"unknown_name", dtype, [] { parse_dtype("float33"); }, {"unknown dtype 'float33'", "float32"}},
      {"default_dtype_of_integers",
       dtype,
       [] { set_default_dtype(int32); },
       {"set_default_dtype: ", "floating-point", "int32"}},
      {"promotion_of_half_complex",
       dtype,
       [] { promote_types(DType::Complex32, float32); },
       {"no type promotion between complex32 and float32", "to(dtype)"}},
      {"data_of_another_type",
       dtype,
       [] { ones({2}).data<double>(); },
       {"data<float64>()", "float32", "to(dtype)"}},
      {"safetensors_of_complex128",
       dtype,
       [] {
         save_safetensors_to_buffer(
             {{"x", Tensor::from_storage(ones({8}).storage(), DType::Complex128, {2})}});
       },
       {"save_safetensors: tensor 'x' has dtype complex128", "save()"}},
      {"value_outside_dtype",
       typeid(ValueError),
       [] { full({2}, 300, {.dtype = uint8}); },
       {"full: value 300 cannot be converted to type uint8 without overflow", "wider dtype"}},
      {"list_outside_dtype",
       typeid(ValueError),
       [] {
         tensor({1, -1}, {.dtype = uint8});
       },
       {"tensor: value -1 cannot be converted to type uint8 without overflow", "wider dtype"}},
      {"unsigned_above_int64",
       typeid(ValueError),
       [] { tensor(std::vector<uint64_t>{~uint64_t{0}}); },
       {"tensor: value 18446744073709551615 is larger than int64 holds"}},
  };
}

TERN_WRONG_USES(OperatorDTypes, operator_rows);
TERN_WRONG_USES(NetworkDTypes, network_dtype_rows);
TERN_WRONG_USES(IndexDTypes, index_dtype_rows);
TERN_WRONG_USES(CreationDTypes, creation_rows);

}  // namespace
}  // namespace tern

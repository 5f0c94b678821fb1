// Matrix products with their gradients. Fully connected layers are in linear.cpp, einsum, which is made of
// products, in einsum.cpp.
#include "tern/ops/matmul.h"

#include <complex>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/complex.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

[[noreturn, gnu::cold]] void throw_inner_sizes(const char* op, const Tensor& a, const Tensor& b, int64_t k,
                                               int64_t other) {
  TERN_THROW(ShapeError, "{}: inner sizes differ: a is {}, b is {} ({} vs {})", op, to_string(a.shape()),
             to_string(b.shape()), k, other);
}

/// The last two dimensions of an operand, with vectors completed by a dimension
/// of size 1.
struct Matrix {
  int64_t rows, cols, row_stride, col_stride;
};
Matrix left_matrix(const Tensor& a) {
  const size_t r = a.shape().size();
  if (r == 1) return {1, a.shape()[0], 0, a.strides()[0]};
  return {a.shape()[r - 2], a.shape()[r - 1], a.strides()[r - 2], a.strides()[r - 1]};
}
Matrix right_matrix(const Tensor& b) {
  const size_t r = b.shape().size();
  if (r == 1) return {b.shape()[0], 1, b.strides()[0], 0};
  return {b.shape()[r - 2], b.shape()[r - 1], b.strides()[r - 2], b.strides()[r - 1]};
}
IntArrayRef batch_of(const Tensor& x) {
  return {x.shape().data(), x.shape().size() < 2 ? 0 : x.shape().size() - 2};
}

Shape batch_shape(const char* op, const Tensor& a, const Tensor& b) {
  const IntArrayRef left = batch_of(a), right = batch_of(b);
  TERN_CHECK(broadcasts(left, right), ShapeError,
             "{}: batch sizes do not broadcast: a is {}, b is {} ({} vs {})", op, to_string(a.shape()),
             to_string(b.shape()), to_string(left), to_string(right));
  return broadcast_shapes(left, right, op);
}

/// Fills the batch dimensions of `args`, merging neighbours, for a result that
/// is contiguous with matrices of m * n elements.
void set_batch(MatmulArgs& args, const char* op, const Shape& batch, const Tensor& a, const Tensor& b,
               const Tensor& addend) {
  const size_t rank = batch.size();
  Strides strides[3] = {Strides(rank), Strides(rank), Strides(rank)};
  const Tensor* operands[3] = {&a, &b, &addend};
  for (int i = 0; i < 3; ++i) {
    if (!operands[i]->defined()) continue;
    broadcast_strides(batch_of(*operands[i]), operands[i]->strides(), batch, strides[i].data());
  }
  int n = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (batch[d] == 1) continue;
    bool merges = n > 0;
    const int64_t* before[3] = {args.a_batch_strides, args.b_batch_strides, args.addend_batch_strides};
    for (int i = 0; i < 3; ++i) merges = merges && before[i][n - 1] == strides[i][d] * batch[d];
    if (merges) {
      args.batch_sizes[n - 1] *= batch[d];
    } else {
      TERN_CHECK(n < MatmulArgs::kMaxBatchDims, NotImplementedError,
                 "{}: more than {} batch dimensions: reshape the operands", op, MatmulArgs::kMaxBatchDims);
      args.batch_sizes[n++] = batch[d];
    }
    args.a_batch_strides[n - 1] = strides[0][d];
    args.b_batch_strides[n - 1] = strides[1][d];
    args.addend_batch_strides[n - 1] = strides[2][d];
  }
  args.batch_dims = n;
  int64_t step = args.m * args.n;
  for (int d = n; d-- > 0;) {
    args.out_batch_strides[d] = step;
    step *= args.batch_sizes[d];
  }
  // Matrices of `a` that follow each other, times the same b, are one tall
  // matrix.
  if (n == 1 && args.m == 1) {
    args.a_row_stride = args.a_batch_strides[0];
    args.addend_row_stride = args.addend_batch_strides[0];
  }
  if (n == 1 && args.b_batch_strides[0] == 0 && args.a_batch_strides[0] == args.m * args.a_row_stride &&
      (args.addend == nullptr || args.addend_batch_strides[0] == args.m * args.addend_row_stride)) {
    args.m *= args.batch_sizes[0];
    args.batch_dims = 0;
  }
}

Tensor complex_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& addend, double alpha,
                       double beta);

/// alpha * a b + beta * addend without gradient; `addend` may be undefined,
/// else it broadcasts to the result.
Tensor product(const char* op, const Tensor& a, const Tensor& b, const Tensor& addend = {}, double alpha = 1,
               double beta = 1) {
  check_factors(op, a, b);
  const Matrix left = left_matrix(a), right = right_matrix(b);
  if (left.cols != right.rows) [[unlikely]]
    throw_inner_sizes(op, a, b, left.cols, right.rows);
  if (is_complex(a.dtype())) [[unlikely]]
    return complex_product(op, a, b, addend, alpha, beta);
  MatmulArgs args;
  args.dtype = a.dtype();
  args.m = left.rows;
  args.n = right.cols;
  args.k = alpha == 0 ? 0 : left.cols;  // as BLAS has it, the factors are not looked at then
  args.a = a.data_ptr();
  args.a_row_stride = left.row_stride;
  args.a_col_stride = left.col_stride;
  args.b = b.data_ptr();
  args.b_row_stride = right.row_stride;
  args.b_col_stride = right.col_stride;
  args.out_row_stride = args.n;
  args.alpha = alpha;
  args.beta = beta;
  const bool batched = a.shape().size() > 2 || b.shape().size() > 2;
  Shape batch;
  if (batched) batch = batch_shape(op, a, b);
  Shape shape = batch;
  if (a.shape().size() > 1) shape.push_back(args.m);
  if (b.shape().size() > 1) shape.push_back(args.n);
  const int64_t numel = checked_numel(shape);
  if (addend.defined()) {
    Strides strides(shape.size());
    broadcast_strides(addend.shape(), addend.strides(), shape, strides.data());
    args.addend = addend.data_ptr();
    args.addend_row_stride = strides[shape.size() - 2];
    args.addend_col_stride = strides[shape.size() - 1];
  }
  Tensor out = empty_contiguous(std::move(shape), numel, a.dtype(), a.device());
  if (numel == 0) return out;
  args.out = out.data_ptr();
  if (batched) set_batch(args, op, batch, a, b, addend);
  launch(current_stream(a.device()), kernels::matmul, args);
  return out;
}

/// One product of real matrices: a as its parts [m, 2 k] side by side, times [2 k, 2 n], where the two rows
/// of an element's row are b and i b. What comes out are the parts of the result.
Tensor complex_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& addend, double alpha,
                       double beta) {
  const bool row = a.dim() == 1, column = b.dim() == 1;
  const Tensor left = row ? unsqueeze(a.detach(), 0) : a.detach();
  const Tensor right = column ? unsqueeze(b.detach(), 1) : b.detach();
  const int64_t k = left.size(-1), n = right.size(-1);
  Shape shape = right.shape();
  shape.insert(shape.size() - 1, 2);
  Tensor both = empty_contiguous(shape, checked_numel(shape), b.dtype(), b.device());
  const Tensor turned = complex_binary(
      BinaryOp::Mul, right, complex_number(std::complex<double>(0, 1), b.dtype(), b.device()), b.dtype());
  if (both.numel() != 0) {
    copy_elements(select(both, -2, 0), right);
    copy_elements(select(both, -2, 1), turned);
  }
  const Tensor parts_of_a = flatten(real_view(left), -2, -1);
  shape.pop_back();
  shape.pop_back();
  shape.back() = 2 * k;
  shape.push_back(2 * n);
  Tensor parts = product(op, parts_of_a, reshape(real_view(both), shape), {}, alpha);
  shape = parts.shape();
  shape.back() = n;
  shape.push_back(2);
  Tensor y = complex_view(reshape(parts, shape));
  if (column) y = squeeze(y, -1);
  if (row) y = squeeze(y, column ? -1 : -2);
  if (addend.defined()) y = add(y, mul(addend.detach(), beta));
  return y;
}

Tensor record_product(const char* op, const Tensor& a, const Tensor& b);

/// All dimensions but the last joined.
Tensor as_matrix(const Tensor& x) {
  const int64_t cols = x.size(-1);
  return reshape(
      x, {cols == 0 ? checked_numel({x.shape().data(), x.shape().size() - 1}) : x.numel() / cols, cols});
}

/// The gradients of a product: g b^T and a^T g, summed where operands were
/// broadcast.
Tensor left_gradient(const Tensor& g, const Tensor& b, const Shape& a_shape, bool a_is_vector) {
  if (b.dim() == 1) {
    // g [..., m] (or 0-d) and b [k]: every row of `a` meets b.
    return reduce_to(times_conj(unsqueeze(g, -1), b), a_shape, g.dtype());
  }
  if (!a_is_vector) return reduce_to(record_product("matmul_backward", g, mT(conj(b))), a_shape, g.dtype());
  const Tensor all = record_product("matmul_backward", unsqueeze(g, -2), mT(conj(b)));
  return reduce_to(squeeze(all, -2), a_shape, g.dtype());
}
Tensor right_gradient(const Tensor& g, const Tensor& a, const Shape& b_shape, bool b_is_vector) {
  if (a.dim() == 1) {
    // g [..., n] (or 0-d) and a [k].
    if (b_is_vector) return reduce_to(times_conj(g, a), b_shape, g.dtype());
    return reduce_to(times_conj(unsqueeze(g, -2), unsqueeze(a, -1)), b_shape, g.dtype());
  }
  const Tensor columns = b_is_vector ? unsqueeze(g, -1) : g;
  if (b_shape.size() <= 2 && a.dim() > 2) {
    const Tensor flat = record_product("matmul_backward", t(as_matrix(conj(a))), as_matrix(columns));
    return reshape(flat, b_shape);
  }
  const Tensor all = record_product("matmul_backward", mT(conj(a)), columns);
  return reduce_to(b_is_vector ? squeeze(all, -1) : all, b_shape, g.dtype());
}

Tensor record_product(const char* op, const Tensor& a, const Tensor& b) {
  Tensor y = product(op, a, b);
  if (tracks_grad(a, b))
    record(op, y, {a, b}, [a_ = save(a), b_ = save(b)](GradContext& c, const Tensor& g) {
      const Tensor left = c[a_], right = c[b_];
      return std::array<Tensor, 2>{
          c.needs(0) ? left_gradient(g, right, left.shape(), left.dim() == 1) : Tensor(),
          c.needs(1) ? right_gradient(g, left, right.shape(), right.dim() == 1) : Tensor()};
    });
  return y;
}

void check_rank(const char* op, const char* operand, const Tensor& x, int64_t rank) {
  TERN_CHECK(x.dim() == rank, ShapeError,
             "{}: {} must be a {}-D tensor, got shape {}: matmul takes other dimensions", op, operand, rank,
             to_string(x.shape()));
}

void check_addend(const char* op, const Tensor& input, const Shape& target) {
  TERN_CHECK(broadcast_shapes(input.shape(), target, op) == target, ShapeError,
             "{}: input of shape {} does not broadcast to the result's shape {}", op,
             to_string(input.shape()), to_string(target));
}

Tensor add_product(const char* op, const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                   double alpha) {
  check_same_device(op, {{"input", input}, {"a", a}, {"b", b}});
  check_factors(op, a, b);
  TERN_CHECK(input.dtype() == a.dtype(), DTypeError,
             "{}: expected input and matrices to have the same dtype, but got: "
             "{} and {}: convert one with to(dtype)",
             op, name(input.dtype()), name(a.dtype()));
  Shape target = a.shape();
  target.back() = b.shape().back();
  check_addend(op, input, target);
  Tensor y = product(op, a, b, beta == 0 ? Tensor() : input, alpha, beta);
  if (tracks_grad(input, a, b))
    record(op, y, {input, a, b},
           [a_ = save(a), b_ = save(b), shape = input.shape(), alpha, beta](GradContext& c, const Tensor& g) {
             std::array<Tensor, 3> grads;
             auto scaled = [](const Tensor& x, double factor) { return factor == 1 ? x : mul(x, factor); };
             if (c.needs(0)) grads[0] = scaled(reduce_to(g, shape, g.dtype()), beta);
             if (c.needs(1)) grads[1] = scaled(matmul(g, mT(conj(c[b_]))), alpha);
             if (c.needs(2)) grads[2] = scaled(matmul(mT(conj(c[a_])), g), alpha);
             return grads;
           });
  return y;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (autocasts(a)) [[unlikely]]
    return autocast_lower(matmul, a, b);
  TERN_CHECK(a.dim() > 0 && b.dim() > 0, ShapeError,
             "matmul: both arguments to matmul need to be at least 1D, but "
             "they are {}D and {}D: use * for numbers",
             a.dim(), b.dim());
  return record_product("matmul", a, b);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (autocasts(a)) [[unlikely]]
    return autocast_lower(mm, a, b);
  check_rank("mm", "a", a, 2);
  check_rank("mm", "b", b, 2);
  return record_product("mm", a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  if (autocasts(a)) [[unlikely]]
    return autocast_lower(bmm, a, b);
  check_rank("bmm", "a", a, 3);
  check_rank("bmm", "b", b, 3);
  TERN_CHECK(a.size(0) == b.size(0), ShapeError,
             "bmm: batch sizes differ: a is {}, b is {} ({} vs {}): matmul broadcasts", to_string(a.shape()),
             to_string(b.shape()), a.size(0), b.size(0));
  return record_product("bmm", a, b);
}

Tensor mv(const Tensor& a, const Tensor& b) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_lower(mv, a, b);
  check_rank("mv", "a", a, 2);
  check_rank("mv", "b", b, 1);
  return record_product("mv", a, b);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_widest(dot, a, b);
  check_rank("dot", "a", a, 1);
  check_rank("dot", "b", b, 1);
  return record_product("dot", a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check_rank("outer", "a", a, 1);
  check_rank("outer", "b", b, 1);
  return mul(unsqueeze(a, 1), b);
}

Tensor addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  if (autocasts(input)) [[unlikely]]
    return autocast_lower(addmm, input, mat1, mat2, beta, alpha);
  check_rank("addmm", "mat1", mat1, 2);
  check_rank("addmm", "mat2", mat2, 2);
  return add_product("addmm", input, mat1, mat2, beta.to_double(), alpha.to_double());
}

Tensor baddbmm(const Tensor& input, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  if (autocasts(input)) [[unlikely]]
    return autocast_lower(baddbmm, input, batch1, batch2, beta, alpha);
  check_rank("baddbmm", "batch1", batch1, 3);
  check_rank("baddbmm", "batch2", batch2, 3);
  TERN_CHECK(batch1.size(0) == batch2.size(0), ShapeError,
             "baddbmm: batch sizes differ: batch1 is {}, batch2 is {} ({} vs {})", to_string(batch1.shape()),
             to_string(batch2.shape()), batch1.size(0), batch2.size(0));
  return add_product("baddbmm", input, batch1, batch2, beta.to_double(), alpha.to_double());
}

Tensor addmv(const Tensor& input, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  if (autocasts_on_gpu(input)) [[unlikely]]
    return autocast_lower(addmv, input, mat, vec, beta, alpha);
  check_rank("addmv", "mat", mat, 2);
  check_rank("addmv", "vec", vec, 1);
  TERN_CHECK(input.dim() <= 1, ShapeError, "addmv: input must be a vector or a number, got shape {}",
             to_string(input.shape()));
  return squeeze(
      add_product("addmv", unsqueeze(input, -1), mat, unsqueeze(vec, 1), beta.to_double(), alpha.to_double()),
      1);
}

Tensor addr(const Tensor& input, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  if (autocasts_on_gpu(input)) [[unlikely]]
    return autocast_lower(addr, input, vec1, vec2, beta, alpha);
  check_rank("addr", "vec1", vec1, 1);
  check_rank("addr", "vec2", vec2, 1);
  check_addend("addr", input, {vec1.size(0), vec2.size(0)});
  const DType dtype = result_type(input, vec1, vec2);
  detail::check_value("addr", dtype, beta);
  detail::check_value("addr", dtype, alpha);
  Tensor start = input;
  if (beta.to_double() == 0)
    start = masked_fill(input, full({}, true, {.device = input.device()}), 0);
  else if (beta.to_double() != 1)
    start = mul(input, beta);
  return with_context("addr", [&] { return addcmul(start, unsqueeze(vec1, 1), vec2, alpha); });
}

Tensor chain_matmul(const std::vector<Tensor>& matrices) {
  TERN_CHECK(!matrices.empty(), ValueError, "chain_matmul: expected one or more matrices");
  if (autocasts_on_gpu(matrices)) [[unlikely]]
    return autocast_lower(chain_matmul, matrices);
  for (const Tensor& x : matrices) {
    check_rank("chain_matmul", "each of the matrices", x, 2);
    TERN_CHECK(x.dtype() == matrices[0].dtype(), DTypeError,
               "chain_matmul: expected matrices of one dtype, but got {} and {}: convert one with to(dtype)",
               name(matrices[0].dtype()), name(x.dtype()));
  }
  Tensor y = matrices[0];
  for (size_t i = 1; i < matrices.size(); ++i)
    y = with_context("chain_matmul", [&] { return mm(y, matrices[i]); });
  return y;
}

}  // namespace tern

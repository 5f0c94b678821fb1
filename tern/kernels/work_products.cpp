// What matrix products, convolutions, poolings and readings of images do.
#include "tern/kernels/resize_window.h"
#include "tern/kernels/work_describe.h"

namespace tern::kernels {
namespace {

/// A matrix of each product of the batch.
Span matrices(const MatmulArgs& args, int64_t rows, int64_t row_stride, int64_t cols, int64_t col_stride,
              const int64_t* batch_strides) {
  Span span = Span().walk(rows, row_stride).walk(cols, col_stride);
  for (int d = 0; d < args.batch_dims; ++d) span.walk(args.batch_sizes[d], batch_strides[d]);
  return span;
}

int64_t input_numel(const Conv2dShape& s) { return s.batch * s.in_channels * s.in_h * s.in_w; }
int64_t output_numel(const Conv2dShape& s) { return s.batch * s.out_channels * s.out_h * s.out_w; }
int64_t weight_numel(const Conv2dShape& s) {
  return s.groups > 0 ? s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w : 0;
}

int64_t input_numel(const Pool2dShape& s) { return s.planes * s.in_h * s.in_w; }
int64_t output_numel(const Pool2dShape& s) { return s.planes * s.out_h * s.out_w; }
double window_flops(const Pool2dShape& s) {
  return static_cast<double>(output_numel(s)) * static_cast<double>(s.kernel_h) *
         static_cast<double>(s.kernel_w);
}

/// A pooling: from the large image to the small one.
template <class Args>
void describe_pool(const Args& args, Work& work) {
  writes(work, args.output, itemsize(args.dtype), output_numel(args.shape));
  if (output_numel(args.shape) != 0) reads(work, args.input, itemsize(args.dtype), input_numel(args.shape));
}
template <class Args>
void describe_pool_backward(const Args& args, Work& work) {
  writes(work, args.grad_input, itemsize(args.dtype), input_numel(args.shape));
  if (input_numel(args.shape) != 0)
    reads(work, args.grad_output, itemsize(args.dtype), output_numel(args.shape));
}

Span span(const AttentionShape& shape, const AttentionOperand& x, int64_t heads, int64_t rows,
          int64_t width) {
  return Span()
      .walk(shape.batch, x.batch_stride)
      .walk(heads, x.head_stride)
      .walk(rows, x.row_stride)
      .walk(width, 1);
}

/// What the scores and their products with the values are made of.
template <class Args>
void reads_of_scores(const Args& args, Work& work) {
  const AttentionShape& s = args.shape;
  const size_t item = itemsize(args.dtype);
  const int64_t columns = s.columns_of_row(s.rows - 1);  // later ones are hidden from all rows
  reads(work, args.query.data, item, span(s, args.query, s.heads, s.rows, s.width));
  reads(work, args.key.data, item, span(s, args.key, s.key_heads, columns, s.width));
  reads(work, args.value.data, item, span(s, args.value, s.key_heads, columns, s.value_width));
}

}  // namespace

void describe(const MatmulArgs& args, Work& work) {
  if (args.addend != nullptr) work.op = args.batch_dims == 0 ? "addmm" : "baddbmm";
  constexpr const char* kOps[] = {"", "linear_relu", "linear_gelu", "linear_gelu_backward"};
  if (args.epilogue != MatmulEpilogue::None) work.op = kOps[static_cast<size_t>(args.epilogue)];
  if (args.m == 0 || args.n == 0 || args.batch_count() == 0) return;
  const size_t item = itemsize(args.dtype);
  work.flops = args.flops();
  writes(work, args.out, item,
         matrices(args, args.m, args.out_row_stride, args.n, 1, args.out_batch_strides));
  reads(work, args.a, item,
        matrices(args, args.m, args.a_row_stride, args.k, args.a_col_stride, args.a_batch_strides));
  reads(work, args.b, item,
        matrices(args, args.k, args.b_row_stride, args.n, args.b_col_stride, args.b_batch_strides));
  reads(work, args.addend, item,
        matrices(args, args.m, args.addend_row_stride, args.n, args.addend_col_stride,
                 args.addend_batch_strides));
  if (args.epilogue == MatmulEpilogue::Gelu) writes(work, args.gelu_input, item, args.m * args.n);
  if (args.epilogue == MatmulEpilogue::GeluGradient) reads(work, args.gelu_input, item, args.m * args.n);
}

void describe(const AttentionArgs& args, Work& work) {
  const AttentionShape& s = args.shape;
  const size_t item = itemsize(args.dtype);
  work.flops = s.flops(2);
  writes(work, args.output.data, item, span(s, args.output, s.heads, s.rows, s.value_width));
  writes(work, args.log_sums, sizeof(float), s.batch * s.heads * s.rows);
  reads_of_scores(args, work);
}

void describe(const AttentionBackwardArgs& args, Work& work) {
  const AttentionShape& s = args.shape;
  const size_t item = itemsize(args.dtype);
  work.flops = s.flops(5);
  writes(work, args.grad_query.data, item, span(s, args.grad_query, s.heads, s.rows, s.width));
  writes(work, args.grad_key.data, item, span(s, args.grad_key, s.key_heads, s.columns, s.width));
  writes(work, args.grad_value.data, item, span(s, args.grad_value, s.key_heads, s.columns, s.value_width));
  for (const AttentionOperand* x : {&args.output, &args.grad_output})
    reads(work, x->data, item, span(s, *x, s.heads, s.rows, s.value_width));
  reads(work, args.log_sums, sizeof(float), s.batch * s.heads * s.rows);
  reads_of_scores(args, work);
}

void describe(const LinearBackwardArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t outputs = args.rows * args.out_features;
  work.flops = args.grad_input || args.grad_weight ? args.flops() : static_cast<double>(outputs);
  writes(work, args.grad_input, item, args.rows * args.in_features);
  writes(work, args.grad_weight, item, args.out_features * args.in_features);
  writes(work, args.grad_bias, item, args.out_features);
  reads(work, args.grad_output, item,
        Span().walk(args.rows, args.grad_row_stride).walk(args.out_features, args.grad_col_stride));
  reads(work, args.relu_output, item, outputs);
  if (args.grad_input != nullptr) {
    reads(work, args.gelu_input, item, args.rows * args.in_features);
    reads(work, args.weight, item,
          Span()
              .walk(args.out_features, args.weight_row_stride)
              .walk(args.in_features, args.weight_col_stride));
  }
  if (args.grad_weight != nullptr)
    reads(work, args.input, item,
          Span().walk(args.rows, args.input_row_stride).walk(args.in_features, args.input_col_stride));
}

void describe(const Conv2dArgs& args, Work& work) {
  const Conv2dShape& s = args.shape;
  const size_t item = itemsize(args.dtype);
  if (output_numel(s) == 0) return;
  if (args.relu) work.op = "conv2d_relu";
  work.flops = s.flops();
  writes(work, args.output, item, output_numel(s));
  reads(work, args.input, item, input_numel(s));
  reads(work, args.weight, item, weight_numel(s));
  reads(work, args.bias, item, s.out_channels);
}

void describe(const Conv2dBackwardArgs& args, Work& work) {
  const Conv2dShape& s = args.shape;
  const size_t item = itemsize(args.dtype);
  const bool sums = args.grad_weight != nullptr || args.grad_bias != nullptr;
  if (input_numel(s) == 0 && !sums) return;
  work.flops = args.flops() > 0 ? args.flops() : static_cast<double>(output_numel(s));
  writes(work, args.grad_input, item, input_numel(s));
  writes(work, args.grad_weight, item, weight_numel(s));
  writes(work, args.grad_bias, item, s.out_channels);
  reads(work, args.grad_output, item, output_numel(s));
  reads(work, args.relu_output, item, output_numel(s));
  if (args.grad_input != nullptr) reads(work, args.weight, item, weight_numel(s));
  if (args.grad_weight != nullptr) reads(work, args.input, item, input_numel(s));
}

void describe(const MaxPool2dArgs& args, Work& work) {
  work.flops = window_flops(args.shape);
  describe_pool(args, work);
  writes(work, args.indices, sizeof(int64_t), output_numel(args.shape));
}

void describe(const MaxPool2dBackwardArgs& args, Work& work) {
  work.flops = static_cast<double>(output_numel(args.shape));
  describe_pool_backward(args, work);
  reads(work, args.indices, sizeof(int64_t), output_numel(args.shape));
}

void describe(const AvgPool2dArgs& args, Work& work) {
  work.flops = window_flops(args.shape);
  describe_pool(args, work);
}

void describe(const AvgPool2dBackwardArgs& args, Work& work) {
  work.flops = window_flops(args.shape);
  describe_pool_backward(args, work);
}

void describe(const AdaptiveAvgPool2dArgs& args, Work& work) {
  work.flops = static_cast<double>(input_numel(args.shape));
  describe_pool(args, work);
}

void describe(const AdaptiveAvgPool2dBackwardArgs& args, Work& work) {
  work.flops = static_cast<double>(input_numel(args.shape));
  describe_pool_backward(args, work);
}

void describe(const AdaptiveMaxPool2dArgs& args, Work& work) {
  work.flops = static_cast<double>(input_numel(args.shape));
  describe_pool(args, work);
  writes(work, args.indices, sizeof(int64_t), output_numel(args.shape));
}

void describe(const ResizeArgs& args, Work& work) {
  const size_t item = itemsize(args.dtype);
  const int64_t images = args.outer * args.inner;
  const int64_t in = images * args.h.in * args.w.in, out = images * args.h.out * args.w.out;
  const double inputs_of_one = static_cast<double>(ResizeRule<float>(args.h).most()) *
                               static_cast<double>(ResizeRule<float>(args.w).most());
  const double used = std::min(static_cast<double>(in), inputs_of_one * static_cast<double>(out));
  work.op = args.transposed ? "interpolate_backward" : "interpolate";
  work.flops = inputs_of_one == 1 && !args.transposed ? 0 : 2 * inputs_of_one * static_cast<double>(out);
  writes(work, args.output, item, args.transposed ? in : out);
  if (args.transposed)
    reads(work, args.input, item, out);
  else
    reads(work, args.input, item, Span(in).touched(used));
}

namespace {

/// Both matrices and the work of `flops` for each coordinate of each pair of rows.
void describe_distance(const DistanceProblem& p, double flops, Work& work) {
  const size_t item = itemsize(p.dtype);
  work.flops = flops * static_cast<double>(p.batch * p.rows) * static_cast<double>(p.others * p.size);
  reads(work, p.a, item, p.batch * p.rows * p.size);
  reads(work, p.b, item, p.batch * p.others * p.size);
}

}  // namespace

void describe(const DistanceArgs& args, Work& work) {
  const DistanceProblem& p = args.problem;
  work.op = "cdist";
  writes(work, args.output, itemsize(p.dtype), p.batch * p.rows * p.others);
  describe_distance(p, 3, work);
}

void describe(const DistanceBackwardArgs& args, Work& work) {
  const DistanceProblem& p = args.problem;
  const size_t item = itemsize(p.dtype);
  work.op = "cdist_backward";
  writes(work, args.grad_a, item, p.batch * p.rows * p.size);
  describe_distance(p, 4, work);
  // The slope of a sum of sizes does not depend on it.
  if (p.p != 1) reads(work, args.output, item, p.batch * p.rows * p.others);
  reads(work, args.grad_output, item, p.batch * p.rows * p.others);
}

void describe(const GridSampleArgs& args, Work& work) {
  const GridPlan& plan = args.plan;
  const size_t item = itemsize(plan.dtype);
  if (plan.outputs() == 0) return;
  const double used = plan.taps() * static_cast<double>(plan.outputs());
  if (plan.mode != GridMode::Nearest) work.flops = 2 * used;
  writes(work, args.output, item, plan.outputs());
  reads(work, args.input, item, Span(plan.inputs()).touched(used));
  reads(work, plan.grid, item, plan.batch * plan.points * plan.rank());
}

void describe(const GridSampleBackwardArgs& args, Work& work) {
  const GridPlan& plan = args.plan;
  const size_t item = itemsize(plan.dtype);
  if (plan.outputs() == 0) return;
  const double used = plan.taps() * static_cast<double>(plan.outputs());
  work.flops = 2 * used * ((args.grad_input ? 1 : 0) + (args.grad_grid ? plan.rank() : 0));
  const int64_t coordinates = plan.batch * plan.points * plan.rank();
  writes(work, args.grad_input, item, plan.inputs());
  writes(work, args.grad_grid, item, coordinates);
  reads(work, args.grad_output, item, plan.outputs());
  reads(work, plan.grid, item, coordinates);
  if (args.grad_grid != nullptr) reads(work, args.input, item, Span(plan.inputs()).touched(used));
}

}  // namespace tern::kernels

// What the kernels do that move elements to places which other elements name, or which their order gives.
#include "tern/kernels/work_describe.h"

namespace tern::kernels {
namespace {

double product(const IndexGeometry& g) { return g.numel == 0 ? 0 : static_cast<double>(g.numel); }

/// Anything that the index tensors may point to from an element of the span.
void address(Span& span, const IndexedDims& dims) {
  for (int i = 0; i < dims.count; ++i) span.address(dims.size[i], dims.stride[i]);
}

/// How often an element of operand `which` is named: by dimensions that move it or one of the index tensors.
double times_named(const IndexGeometry& g, int which, int index_tensors) {
  double times = 1;
  for (int d = 0; d < g.ndim; ++d) {
    bool moves = g.strides[which][d] != 0;
    for (int i = 0; i < index_tensors; ++i) moves = moves || g.strides[2 + i][d] != 0;
    if (moves) times *= static_cast<double>(g.sizes[d]);
  }
  return times;
}

void name_after(const IndexedDims& dims, Work& work) {
  if (dims.op[0] != '\0') work.op = dims.op;
}

}  // namespace

void describe(const IndexGetArgs& args, Work& work) {
  name_after(args.dims, work);
  const IndexGeometry& g = args.geometry;
  if (g.numel == 0) return;
  const size_t item = itemsize(args.dtype);
  writes(work, args.out, item, Span().walk(g, 0));
  Span in = Span().walk(g, 1);
  address(in, args.dims);
  reads(work, args.in, item, in.touched(times_named(g, 1, args.dims.count)));
  for (int i = 0; i < args.dims.count; ++i)
    reads(work, args.dims.index[i], sizeof(int64_t), Span().walk(g, 2 + i));
}

void describe(const IndexPutArgs& args, Work& work) {
  name_after(args.dims, work);
  const double walked = product(args.free) * product(args.addressed);
  if (walked == 0) return;
  const size_t item = itemsize(args.dtype);
  const bool joins = args.mode != IndexPutMode::Set;
  work.flops = joins ? walked : 0;
  auto both = [&](int operand) { return Span().walk(args.free, operand).walk(args.addressed, operand); };
  Span out = both(0);
  address(out, args.dims);
  out.touched(times_named(args.free, 0, args.dims.count) * times_named(args.addressed, 0, args.dims.count));
  add_operand(work, joins ? Access::ReadWrite : Access::Write, args.out, item, out);
  reads(work, args.source, item, both(1));
  for (int i = 0; i < args.dims.count; ++i) reads(work, args.dims.index[i], sizeof(int64_t), both(2 + i));
}

void describe(const EmbeddingBagArgs& args, Work& work) {
  name_after(args.dims, work);
  const size_t item = itemsize(args.dtype);
  writes(work, args.out, item, args.bags * args.width);
  if (args.length == 0 || args.width == 0) return;
  const double added = static_cast<double>(args.length) * static_cast<double>(args.width);
  work.flops = args.factors == nullptr ? added : 2 * added;
  Span table = Span().walk(args.width, args.column_stride);
  address(table, args.dims);
  reads(work, args.table, item, table.touched(added));
  reads(work, args.dims.index[0], sizeof(int64_t), args.length);
  reads(work, args.begins, sizeof(int64_t), args.bags);
  reads(work, args.factors, item, args.length);
}

void describe(const NonzeroCountArgs& args, Work& work) {
  writes(work, args.starts, sizeof(int64_t), nonzero_sections(args.geometry.numel) + 1);
  reads(work, args.in, itemsize(args.dtype), Span().walk(args.geometry, 0));
}

void describe(const NonzeroArgs& args, Work& work) {
  writes(work, args.out, sizeof(int64_t),
         Span().walk(args.count, args.row_stride).walk(args.rank, args.column_stride));
  reads(work, args.in, itemsize(args.dtype), Span().walk(args.geometry, 0));
  reads(work, args.starts, sizeof(int64_t), nonzero_sections(args.geometry.numel));
}

void describe(const SearchSortedArgs& args, Work& work) {
  const int64_t values = args.rows * args.row_values;
  if (values == 0) return;
  writes(work, args.out, sizeof(int64_t), values);
  reads(work, args.values, itemsize(args.dtype), values);
  reads(work, args.sorted, itemsize(args.dtype), Span(args.length).walk(args.rows, args.sorted_row_stride));
}

void describe(const SortArgs& args, Work& work) {
  if (args.only_last)
    work.op = args.nan_wins ? "median" : "kthvalue";
  else if (args.count < args.size)
    work.op = "topk";
  if (args.size == 0 || args.count == 0) return;
  const int64_t rows = args.outer * args.inner, results = rows * (args.only_last ? 1 : args.count);
  writes(work, args.values, itemsize(args.dtype), results);
  writes(work, args.indices, sizeof(int64_t), results);
  reads(work, args.in, itemsize(args.dtype), rows * args.size);
}

}  // namespace tern::kernels

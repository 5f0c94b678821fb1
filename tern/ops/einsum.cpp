// Einstein's notation, reduced to batched products of two operands at a time, from left to right.
#include <algorithm>
#include <array>

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

using Labels =
    std::vector<int>;  // letters are their character codes, the dimensions of "..." are 256, 257, ...

constexpr int kEllipsis = -1;
constexpr int kFirstEllipsisDim = 256;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
  bool has_output = false;
};

[[noreturn]] void throw_equation(std::string_view equation, const std::string& why) {
  TERN_THROW(ValueError, "einsum: {} in the equation '{}'", why, equation);
}

Labels parse_term(std::string_view equation, std::string_view term) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (term.substr(i, 3) != "..." || std::count(labels.begin(), labels.end(), kEllipsis) != 0)
        throw_equation(equation, "found '.' that is not part of a single '...'");
      labels.push_back(kEllipsis);
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else {
      throw_equation(equation, fmt::format("invalid subscript '{}': subscripts are letters", c));
    }
  }
  return labels;
}

Equation parse(std::string_view equation) {
  Equation result;
  const size_t arrow = equation.find("->");
  std::string_view rest = equation.substr(0, arrow);
  while (true) {
    const size_t comma = rest.find(',');
    result.inputs.push_back(parse_term(equation, rest.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  if (arrow != std::string_view::npos) {
    result.has_output = true;
    result.output = parse_term(equation, equation.substr(arrow + 2));
  }
  return result;
}

/// Replaces "..." by the labels of `count` dimensions, right-aligned among `most`.
Labels expand_ellipsis(const Labels& labels, int64_t count, int64_t most) {
  Labels result;
  for (int label : labels) {
    if (label != kEllipsis)
      result.push_back(label);
    else
      for (int64_t d = most - count; d < most; ++d) result.push_back(kFirstEllipsisDim + static_cast<int>(d));
  }
  return result;
}

/// Takes diagonals until no label is repeated.
Tensor merge_repeated(std::string_view equation, Tensor x, Labels& labels) {
  for (size_t j = 1; j < labels.size(); ++j) {
    const size_t i = static_cast<size_t>(std::find(labels.begin(), labels.end(), labels[j]) - labels.begin());
    if (i == j) continue;
    const int64_t a = static_cast<int64_t>(i), b = static_cast<int64_t>(j);
    if (x.size(a) != x.size(b))
      throw_equation(equation, fmt::format("a subscript has sizes {} and {}", x.size(a), x.size(b)));
    x = diagonal(x, 0, a, b);  // the joined dimension comes last
    labels.push_back(labels[j]);
    labels.erase(labels.begin() + b);
    labels.erase(labels.begin() + a);
    j = 0;
  }
  return x;
}

/// x with a dimension for each of `all`, in that order; size 1 for labels that it lacks.
Tensor align(const Tensor& x, const Labels& labels, const Labels& all) {
  SmallVector<int64_t, 6> order;
  Shape shape;
  for (int label : all) {
    const auto found = std::find(labels.begin(), labels.end(), label);
    if (found != labels.end()) order.push_back(found - labels.begin());
  }
  Tensor y = permute(x, order);
  for (size_t d = 0; d < all.size(); ++d)
    if (std::find(labels.begin(), labels.end(), all[d]) == labels.end())
      y = unsqueeze(y, static_cast<int64_t>(d));
  return y;
}

/// Product of two aligned operands, summed over the dimensions marked in `summed`, which stay with size 1.
Tensor contract(Tensor a, Tensor b, const std::vector<bool>& summed) {
  const size_t rank = summed.size();
  SmallVector<int64_t, 6> both, left, right, inner, alone_a, alone_b;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t dim = static_cast<int64_t>(d);
    const bool in_a = a.shape()[d] != 1, in_b = b.shape()[d] != 1;
    if (summed[d]) {
      if (in_a && in_b)
        inner.push_back(dim);
      else if (in_a)
        alone_a.push_back(dim);
      else if (in_b)
        alone_b.push_back(dim);
    } else if (in_a && in_b) {
      both.push_back(dim);
    } else {
      (in_a ? left : right).push_back(dim);
    }
  }
  if (!alone_a.empty()) a = sum(a, alone_a, /*keepdim=*/true);
  if (!alone_b.empty()) b = sum(b, alone_b, /*keepdim=*/true);
  if (inner.empty()) return mul(a, b);
  // Dimensions in the order both, left, inner, right, and those of size 1 anywhere.
  auto arrange = [&](const Tensor& x, std::initializer_list<const SmallVector<int64_t, 6>*> groups,
                     std::array<int64_t, 3>& sizes) {
    SmallVector<int64_t, 6> order;
    std::vector<bool> used(rank);
    size_t g = 0;
    for (const auto* group : groups) {
      sizes[g] = 1;
      for (int64_t dim : *group) {
        order.push_back(dim);
        used[static_cast<size_t>(dim)] = true;
        sizes[g] *= x.size(dim);
      }
      ++g;
    }
    for (size_t d = 0; d < rank; ++d)
      if (!used[d]) order.push_back(static_cast<int64_t>(d));
    return reshape(permute(x, order), {sizes[0], sizes[1], sizes[2]});
  };
  std::array<int64_t, 3> a_sizes, b_sizes;
  Shape result_shape;
  SmallVector<int64_t, 6> result_order;
  const Tensor a3 = arrange(a, {&both, &left, &inner}, a_sizes),
               b3 = arrange(b, {&both, &inner, &right}, b_sizes);
  const Tensor y = both.empty() ? matmul(squeeze(a3, 0), squeeze(b3, 0)) : matmul(a3, b3);
  std::vector<bool> used(rank);
  for (const auto* group : {&both, &left, &right}) {
    for (int64_t dim : *group) {
      result_order.push_back(dim);
      result_shape.push_back(a.size(dim) != 1 ? a.size(dim) : b.size(dim));
      used[static_cast<size_t>(dim)] = true;
    }
  }
  for (size_t d = 0; d < rank; ++d) {
    if (used[d]) continue;
    result_order.push_back(static_cast<int64_t>(d));
    result_shape.push_back(1);
  }
  SmallVector<int64_t, 6> back(rank);
  for (size_t d = 0; d < rank; ++d) back[static_cast<size_t>(result_order[d])] = static_cast<int64_t>(d);
  return permute(reshape(y, result_shape), back);
}

/// The labels that occur once, "..." before letters in alphabetical order.
Labels implied_output(const std::vector<Labels>& inputs) {
  Labels all;
  for (const Labels& labels : inputs) all.insert(all.end(), labels.begin(), labels.end());
  Labels output;
  for (int label : all) {
    const bool once = std::count(all.begin(), all.end(), label) == 1 || label >= kFirstEllipsisDim;
    if (once && std::find(output.begin(), output.end(), label) == output.end()) output.push_back(label);
  }
  auto order = [](int label) { return label >= kFirstEllipsisDim ? label - 2 * kFirstEllipsisDim : label; };
  std::sort(output.begin(), output.end(), [&](int a, int b) { return order(a) < order(b); });
  return output;
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  if (autocasts_on_gpu(operands)) [[unlikely]]
    return autocast_lower([&](const std::vector<Tensor>& cast) { return einsum(equation, cast); }, operands);
  Equation parsed = parse(equation);
  TERN_CHECK(!operands.empty(), ValueError, "einsum: must provide at least one operand");
  TERN_CHECK(parsed.inputs.size() == operands.size(), ValueError,
             "einsum: {} operands were provided, but the equation '{}' has {}", operands.size(), equation,
             parsed.inputs.size());
  int64_t most = 0;
  std::vector<int64_t> ellipsis_dims(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const Labels& labels = parsed.inputs[i];
    const bool open = std::find(labels.begin(), labels.end(), kEllipsis) != labels.end();
    const int64_t named = static_cast<int64_t>(labels.size()) - (open ? 1 : 0);
    TERN_CHECK(open ? named <= operands[i].dim() : named == operands[i].dim(), ShapeError,
               "einsum: the number of subscripts ({}) does not match the number of dimensions of operand {}, "
               "whose shape is {}, in the "
               "equation '{}'",
               named, i, to_string(operands[i].shape()), equation);
    ellipsis_dims[i] = open ? operands[i].dim() - named : 0;
    most = std::max(most, ellipsis_dims[i]);
  }
  std::vector<Tensor> tensors = operands;
  for (size_t i = 0; i < operands.size(); ++i)
    parsed.inputs[i] = expand_ellipsis(parsed.inputs[i], ellipsis_dims[i], most);
  const Labels output =
      parsed.has_output ? expand_ellipsis(parsed.output, most, most) : implied_output(parsed.inputs);
  for (size_t i = 0; i < operands.size(); ++i)
    tensors[i] = merge_repeated(equation, tensors[i], parsed.inputs[i]);
  // Labels of the result first, then those that are summed, with the operand that has each last.
  Labels all = output;
  std::vector<size_t> last_use;
  for (size_t d = 0; d < output.size(); ++d)
    if (std::count(output.begin(), output.end(), output[d]) != 1)
      throw_equation(equation, "a subscript appears twice in the output");
  for (const Labels& labels : parsed.inputs)
    for (int label : labels)
      if (std::find(all.begin(), all.end(), label) == all.end()) all.push_back(label);
  for (int label : all) {
    size_t last = operands.size();
    int64_t size = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto found = std::find(parsed.inputs[i].begin(), parsed.inputs[i].end(), label);
      if (found == parsed.inputs[i].end()) continue;
      last = i;
      const int64_t here = tensors[i].size(found - parsed.inputs[i].begin());
      if (here != 1 && size != 1 && here != size)
        TERN_THROW(
            ShapeError,
            "einsum: operands do not broadcast: a subscript of operand {}, whose shape is {}, has size {} "
            "there and {} before in the equation '{}'",
            i, to_string(operands[i].shape()), here, size, equation);
      if (here != 1) size = here;
    }
    if (last == operands.size()) throw_equation(equation, "an output subscript does not appear in any input");
    last_use.push_back(last);
  }
  Tensor result = align(tensors[0], parsed.inputs[0], all);
  auto summed_at = [&](size_t operand) {
    std::vector<bool> summed(all.size());
    for (size_t d = output.size(); d < all.size(); ++d) summed[d] = last_use[d] == operand;
    return summed;
  };
  auto sum_marked = [&](const Tensor& x, const std::vector<bool>& summed) {
    SmallVector<int64_t, 6> dims;
    for (size_t d = 0; d < summed.size(); ++d)
      if (summed[d] && x.shape()[d] != 1) dims.push_back(static_cast<int64_t>(d));
    return dims.empty() ? x : sum(x, dims, /*keepdim=*/true);
  };
  result = sum_marked(result, summed_at(0));
  for (size_t i = 1; i < operands.size(); ++i)
    result = contract(result, align(tensors[i], parsed.inputs[i], all), summed_at(i));
  return reshape(result, IntArrayRef(result.shape().data(), output.size()));
}

}  // namespace tern

// Buckets: filled by hooks, summed by the group's thread, given back at the end of backward.
#include "tern/parallel/gradient_reducer.h"

#include <algorithm>
#include <numeric>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/device/copy.h"
#include "tern/device/stream.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"

namespace tern::dist {

using parallel::Packing;

GradientReducer::GradientReducer(ProcessGroup group, const std::vector<Tensor>& parameters,
                                 size_t bucket_bytes)
    : group_(std::move(group)),
      parameters_(parameters),
      bucket_bytes_(bucket_bytes),
      places_(parameters.size()) {
  std::vector<size_t> order(parameters.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  make_buckets(order);
  for (size_t i = 0; i < parameters.size(); ++i)
    hooks_.push_back(parameters[i].register_post_accumulate_grad_hook([this, i](const Tensor&) { came(i); }));
}

void GradientReducer::make_buckets(const std::vector<size_t>& order) {
  buckets_.clear();
  for (size_t i : order) {
    const Tensor& parameter = parameters_[i];
    const auto fits = [&](const Bucket& bucket) {
      const Packing& packing = bucket.packing;
      return packing.dtype == parameter.dtype() &&
             static_cast<size_t>(packing.numel) * itemsize(packing.dtype) + parameter.nbytes() <=
                 bucket_bytes_;
    };
    if (buckets_.empty() || !fits(buckets_.back())) buckets_.emplace_back().packing.dtype = parameter.dtype();
    Bucket& bucket = buckets_.back();
    places_[i].bucket = buckets_.size() - 1;
    places_[i].member = bucket.packing.members.size();
    bucket.packing.add(i, parameter, /*alignment=*/1);
  }
}

void GradientReducer::order_by_arrival() {
  for (size_t i = parameters_.size(); i-- > 0;)
    if (std::find(arrivals_.begin(), arrivals_.end(), i) == arrivals_.end()) arrivals_.push_back(i);
  const Tensor order = tensor(std::vector<int64_t>(arrivals_.begin(), arrivals_.end()));
  group_.broadcast(order);
  const auto agreed = order.to_vector<int64_t>();
  make_buckets(std::vector<size_t>(agreed.begin(), agreed.end()));
  is_ordered_ = true;
}

GradientReducer::~GradientReducer() {
  for (size_t i = 0; i < hooks_.size(); ++i) parameters_[i].remove_hook(hooks_[i]);
}

void GradientReducer::begin() {
  in_backward_ = true;
  next_ = 0;
  arrivals_.clear();
  for (Bucket& bucket : buckets_) {
    if (bucket.result.valid()) bucket.result.wait();  // of a backward that ended with an exception
    const Device device = parameters_[bucket.packing.members[0]].device();
    const int64_t numel = bucket.packing.numel, members = static_cast<int64_t>(bucket.packing.members.size());
    if (!bucket.row.defined() || bucket.row.device() != device) {
      bucket.row = empty({numel + members}, {.dtype = bucket.packing.dtype, .device = device});
      bucket.marks = device.is_cpu() ? bucket.row.narrow(0, numel, members)
                                     : empty({members}, {.dtype = bucket.packing.dtype}).pin_memory();
    }
    bucket.marks.zero_();
    const Stream here = current_stream(device);
    if (bucket.stream.device == device && bucket.stream != here) here.wait_stream(bucket.stream);
    bucket.stream = here;
    bucket.missing = bucket.packing.members.size();
    bucket.result = {};
  }
  when_backward_ends([this] { finish(); });
}

void GradientReducer::move_marks(const Bucket& bucket, bool to_row) {
  if (bucket.row.is_cpu()) return;
  const Tensor& marks = bucket.marks;
  const size_t behind = static_cast<size_t>(bucket.packing.numel) * itemsize(bucket.packing.dtype);
  if (to_row)
    copy_bytes(*bucket.row.storage(), behind, *marks.storage(), 0, marks.nbytes(), /*non_blocking=*/true);
  else
    copy_bytes(*marks.storage(), 0, *bucket.row.storage(), behind, marks.nbytes());
}

void GradientReducer::came(size_t parameter) {
  if (group_.size() == 1) return;
  Place& place = places_[parameter];
  if (!enabled_) {
    place.is_gathered = true;
    return;
  }
  const NoGradGuard no_grad;
  if (!in_backward_) begin();
  if (!is_ordered_) arrivals_.push_back(parameter);
  Bucket& bucket = buckets_[place.bucket];
  put(bucket, place.member);
  mark(bucket, place.member).fill_(1);
  --bucket.missing;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) send(buckets_[next_++]);
}

void GradientReducer::put(Bucket& bucket, size_t member) {
  const Tensor grad = parameters_[bucket.packing.members[member]].grad();
  const Stream here = current_stream(bucket.stream.device);
  const StreamGuard guard(bucket.stream);
  Tensor place = bucket.packing.view(bucket.row, member);
  if (!grad.defined()) {
    place.zero_();
    return;
  }
  if (here != bucket.stream) {
    bucket.stream.wait_stream(here);
    grad.record_stream(bucket.stream);
  }
  place.copy_(grad);
}

void GradientReducer::send(Bucket& bucket) {
  const StreamGuard guard(bucket.stream);
  move_marks(bucket, /*to_row=*/true);
  bucket.result = group_.all_reduce_async(bucket.row, ReduceOp::Avg);
}

void GradientReducer::finish() {
  const NoGradGuard no_grad;
  in_backward_ = false;
  for (; next_ < buckets_.size(); ++next_) {
    Bucket& bucket = buckets_[next_];
    for (size_t m = 0; bucket.missing > 0 && m < bucket.packing.members.size(); ++m) {
      if (mark(bucket, m).item<double>() != 0) continue;
      put(bucket, m);
      if (places_[bucket.packing.members[m]].is_gathered) mark(bucket, m).fill_(1);
    }
    send(bucket);
  }
  for (Bucket& bucket : buckets_) {
    std::exchange(bucket.result, {}).get();
    take_means(bucket);
  }
  for (Place& place : places_) place.is_gathered = false;
  if (!is_ordered_) order_by_arrival();
}

void GradientReducer::take_means(Bucket& bucket) {
  bucket.stream = current_stream(bucket.row.device());
  move_marks(bucket, /*to_row=*/false);
  for (size_t m = 0; m < bucket.packing.members.size(); ++m) {
    if (mark(bucket, m).item<double>() == 0) continue;  // used by no process: as it was
    const Tensor& parameter = parameters_[bucket.packing.members[m]];
    const Tensor mean = bucket.packing.view(bucket.row, m);
    if (Tensor grad = parameter.grad(); grad.defined())
      grad.copy_(mean);
    else
      parameter.set_grad(mean.clone());
  }
}

}  // namespace tern::dist

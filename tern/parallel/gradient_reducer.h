// The means of gradients over the processes of a group, taken while a backward goes on. Internal to parallel:
// its user is parallel/distributed_data_parallel.h.
#pragma once

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/device/stream.h"
#include "tern/parallel/packing.h"
#include "tern/parallel/process_group.h"

namespace tern::dist {

/// Gradients go in buckets: rows on the parameters' device, filled from the last parameter to the first, as
/// backward finds them. A full one is sent while backward goes on; buckets are sent in one order on all
/// processes, whatever the order in which gradients come. The first backward shows that order: buckets are
/// then made anew by that of rank 0. At the end of backward the means take the gradients' places.
class GradientReducer {
 public:
  GradientReducer(ProcessGroup group, const std::vector<Tensor>& parameters, size_t bucket_bytes);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Whether backward takes means.
  void set_enabled(bool enabled) noexcept { enabled_ = enabled; }
  bool enabled() const noexcept { return enabled_; }
  /// Forgets a backward that ended with an exception.
  void restart() noexcept { in_backward_ = false; }

 private:
  struct Bucket {
    parallel::Packing packing;        ///< of numbers of parameters
    Tensor row;                       ///< after the gradients a 1 for each that there is
    Tensor marks;                     ///< those, in host memory: the row's own where that is there
    Stream stream;                    ///< that fills the row
    size_t missing = 0;               ///< gradients that have not come in this run
    std::shared_future<void> result;  ///< of a bucket that was sent in this run
  };
  struct Place {
    size_t bucket = 0, member = 0;
    bool is_gathered = false;  ///< its gradient has grown since the last means, while they were off
  };

  /// Of all parameters, in the order that their gradients are expected in.
  void make_buckets(const std::vector<size_t>& order);
  void order_by_arrival();
  void begin();
  void came(size_t parameter);
  /// The member's gradient, as far as there is one, into the bucket.
  void put(Bucket& bucket, size_t member);
  void send(Bucket& bucket);
  void finish();
  void take_means(Bucket& bucket);
  /// Copies marks between host memory and a row that is elsewhere.
  static void move_marks(const Bucket& bucket, bool to_row);
  /// 1 where the bucket has a gradient for the member, on this process; later the mean of that.
  static Tensor mark(const Bucket& bucket, size_t member) {
    return bucket.marks.select(0, static_cast<int64_t>(member));
  }

  ProcessGroup group_;
  std::vector<Tensor> parameters_;
  size_t bucket_bytes_;
  std::vector<int64_t> hooks_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;     ///< of each parameter
  size_t next_ = 0;               ///< bucket to be sent
  std::vector<size_t> arrivals_;  ///< parameters whose gradients have come, while that shows their order
  bool is_ordered_ = false;
  bool enabled_ = true;
  bool in_backward_ = false;
};

}  // namespace tern::dist

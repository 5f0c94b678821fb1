// What is sent.
#include "tern/train/processes.h"

#include <algorithm>

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/io/serialize.h"
#include "tern/ops/creation.h"

namespace tern::train {

Checkpoint load_checkpoint(const std::filesystem::path& path,
                           const std::optional<dist::ProcessGroup>& group) {
  if (!group || group->size() == 1) return Checkpoint::load(path);
  std::string bytes;
  if (group->rank() == 0) {
    const auto file = io::open_file(path);
    bytes.resize(file->size());
    file->read_at(0, std::as_writable_bytes(std::span(bytes)));
  }
  bytes = group->broadcast(std::move(bytes));
  return with_context(fmt::format("loading '{}'", path.string()), [&] {
    return Checkpoint::from_value(load_from_buffer(std::as_bytes(std::span(bytes)), {.map_location = "cpu"}));
  });
}

Processes::Processes(const std::optional<dist::ProcessGroup>& group) {
  if (group && group->size() > 1) group_ = group;
}

void Processes::check_same(const std::string& what) const {
  if (!group_) return;
  const std::vector<std::string> all = group_->all_gather(what);
  for (size_t r = 1; r < all.size(); ++r)
    TERN_CHECK(all[r] == all[0], DistributedError,
               "fit: the processes do not do the same: rank 0 has {}; rank {} has {}", all[0], r, all[r]);
}

void Processes::share(nn::Module& module) {
  if (group_)
    shared_ = std::make_unique<dist::detail::DistributedModule>(module, *group_,
                                                                dist::DistributedDataParallelOptions{});
}

dist::GroupGuard Processes::begin_forward(nn::Module& module) {
  return shared_ ? shared_->begin_forward(module) : dist::GroupGuard(nullptr);
}

void Processes::set_synchronizes(bool on) {
  if (shared_) shared_->set_synchronizes(on);
}

Averages::Sums Processes::total(const Averages::Sums& own) const {
  if (!group_) return own;
  const Tensor sums = empty({4}, {.dtype = DType::Float64});
  auto* at = sums.data<double>();
  at[0] = own.loss;
  at[1] = static_cast<double>(own.correct);
  at[2] = static_cast<double>(own.judged);
  at[3] = static_cast<double>(own.count);
  group_->all_reduce(sums);
  const auto count = [&](int i) { return static_cast<int64_t>(at[i]); };
  return {at[0], count(1), count(2), count(3)};
}

bool Processes::any(bool own) {
  if (!group_) return own;
  bool answer = false;
  if (answer_.valid()) {
    answer_.get();
    answer = asked_.item<uint8_t>() != 0;
  }
  asked_ = full({}, own ? 1 : 0, {.dtype = DType::UInt8});
  answer_ = group_->all_reduce_async(asked_, dist::ReduceOp::Max);
  return answer;
}

std::vector<std::vector<uint8_t>> Processes::of_others(const std::vector<uint8_t>& own) const {
  std::vector<std::vector<uint8_t>> others;
  if (!group_) return others;
  const std::vector<std::string> all = group_->all_gather(std::string(own.begin(), own.end()));
  for (size_t r = 1; r < all.size(); ++r) others.emplace_back(all[r].begin(), all[r].end());
  return others;
}

}  // namespace tern::train

// The ordered map of names to tensors.
#include "tern/core/state_dict.h"

#include "tern/base/check.h"

namespace tern {

StateDict::StateDict(std::initializer_list<Entry> entries) {
  for (const auto& [name, tensor] : entries) insert(name, tensor);
}

const Tensor* StateDict::find(std::string_view name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

const Tensor& StateDict::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  TERN_CHECK(tensor != nullptr, IndexError, "state dict: there is no tensor '{}' among its {} names{}", name,
             size(), empty() ? "" : fmt::format(" (the first is '{}')", entries_.front().first));
  return *tensor;
}

Tensor& StateDict::operator[](std::string_view name) {
  auto [position, inserted] = index_.try_emplace(std::string(name), entries_.size());
  if (inserted) entries_.emplace_back(position->first, Tensor());
  return entries_[position->second].second;
}

bool StateDict::erase(std::string_view name) {
  auto found = index_.find(name);
  if (found == index_.end()) return false;
  size_t position = found->second;
  index_.erase(found);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
  for (size_t i = position; i < entries_.size(); ++i) index_.find(entries_[i].first)->second = i;
  return true;
}

void StateDict::clear() { *this = StateDict(); }

std::optional<int64_t> StateDict::version(std::string_view path) const {
  auto found = version_index_.find(path);
  if (found == version_index_.end()) return std::nullopt;
  return versions_[found->second].second;
}

void StateDict::set_version(std::string_view path, int64_t version) {
  auto [position, inserted] = version_index_.try_emplace(std::string(path), versions_.size());
  if (inserted)
    versions_.emplace_back(position->first, version);
  else
    versions_[position->second].second = version;
}

}  // namespace tern

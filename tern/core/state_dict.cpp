// The ordered map of names to tensors.
#include "tern/core/state_dict.h"

#include <algorithm>
#include <numeric>

#include "tern/base/check.h"

namespace tern {

namespace {

/// How many characters must be changed, put in or taken out to make `b` of `a` (Levenshtein's distance).
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // from what was seen of `a` to each beginning of `b`
  std::iota(row.begin(), row.end(), size_t{0});
  for (char letter : a) {
    size_t diagonal = row[0]++;
    for (size_t i = 0; i < b.size(); ++i) {
      const size_t replaced = diagonal + (letter == b[i] ? 0 : 1);
      diagonal = row[i + 1];
      row[i + 1] = std::min({replaced, row[i] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The name that may have been meant: the nearest one, where no more than a third of `name` differs.
std::string hint(std::string_view name, const std::vector<StateDict::Entry>& entries) {
  if (entries.empty()) return "";
  const std::string* nearest = nullptr;
  size_t fewest = name.size() / 3 + 1;
  for (const auto& [known, tensor] : entries) {
    if (std::max(known.size(), name.size()) - std::min(known.size(), name.size()) >= fewest) continue;
    const size_t edits = edits_between(name, known);
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = &known;
  }
  return nearest ? fmt::format(" (did you mean '{}'?)", *nearest)
                 : fmt::format(" (the first is '{}')", entries.front().first);
}

}  // namespace

StateDict::StateDict(std::initializer_list<Entry> entries) {
  for (const auto& [name, tensor] : entries) insert(name, tensor);
}

const Tensor* StateDict::find(std::string_view name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

const Tensor& StateDict::at(std::string_view name) const& {
  const Tensor* tensor = find(name);
  TERN_CHECK(tensor != nullptr, IndexError, "state dict: there is no tensor '{}' among its {} names{}", name,
             size(), hint(name, entries_));
  return *tensor;
}

Tensor& StateDict::operator[](std::string_view name) & {
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

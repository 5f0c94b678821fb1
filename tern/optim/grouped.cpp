// Reading and checking of options.
#include "tern/optim/grouped.h"

#include "tern/base/check.h"

namespace tern::optim::detail {

void OptionReader::operator()(const char* name, double& value) {
  names.emplace_back(name);
  value = map.number(name).value_or(value);
}

void OptionReader::operator()(const char* name, bool& value) {
  names.emplace_back(name);
  value = map.boolean(name).value_or(value);
}

void OptionReader::operator()(const char* name, int64_t& value) {
  names.emplace_back(name);
  value = map.integer(name).value_or(value);
}

void OptionReader::operator()(const char* name, std::optional<std::string>& value) {
  names.emplace_back(name);
  if (map.contains(name)) value = map.text(name);
}

namespace {
/// As many numbers as are expected, or nothing where there are none.
std::optional<std::vector<double>> numbers(const StateMap& map, const char* name, size_t count) {
  auto list = map.numbers(name);
  if (list)
    TERN_CHECK(list->size() == count, ValueError, "state dict: '{}' must be {} numbers, got {}", name, count,
               list->size());
  return list;
}
}  // namespace

void OptionReader::operator()(const char* name, std::pair<double, double>& value) {
  names.emplace_back(name);
  if (const auto both = numbers(map, name, 2)) value = {(*both)[0], (*both)[1]};
}

void OptionReader::operator()(const char* name, std::array<double, 3>& value) {
  names.emplace_back(name);
  if (const auto all = numbers(map, name, 3)) std::copy(all->begin(), all->end(), value.begin());
}

void check_option(bool valid, const char* optimizer, const char* what, double value, const char* rule) {
  TERN_CHECK(valid, ValueError, "{}: Invalid {}: {} (it must be {})", optimizer, what, value, rule);
}

void check_adam_options(const char* optimizer, double lr, std::pair<double, double> betas, double eps,
                        double weight_decay) {
  check_option(lr >= 0, optimizer, "learning rate", lr);
  check_option(eps >= 0, optimizer, "epsilon value", eps);
  check_option(betas.first >= 0 && betas.first < 1, optimizer, "beta parameter at index 0", betas.first,
               "at least 0 and below 1");
  check_option(betas.second >= 0 && betas.second < 1, optimizer, "beta parameter at index 1", betas.second,
               "at least 0 and below 1");
  check_option(weight_decay >= 0, optimizer, "weight_decay value", weight_decay);
}

}  // namespace tern::optim::detail

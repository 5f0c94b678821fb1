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

void OptionReader::operator()(const char* name, std::pair<double, double>& value) {
  names.emplace_back(name);
  if (auto both = map.numbers(name)) {
    TERN_CHECK(both->size() == 2, ValueError, "state dict: '{}' must be two numbers, got {}", name,
               both->size());
    value = {(*both)[0], (*both)[1]};
  }
}

void check_option(bool valid, const char* optimizer, const char* what, double value, const char* rule) {
  TERN_CHECK(valid, ValueError, "{}: Invalid {}: {} (it must be {})", optimizer, what, value, rule);
}

}  // namespace tern::optim::detail

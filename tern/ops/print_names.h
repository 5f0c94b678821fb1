// Names of gradient functions as PyTorch prints them.
#pragma once

#include <string>
#include <string_view>

namespace tern {

/// The name of PyTorch's class for a recorded operator: "exp" gives "ExpBackward0".
std::string grad_fn_class(std::string_view record_name);

}  // namespace tern

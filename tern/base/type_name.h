// Names of classes, as messages and printed modules show them.
#pragma once

#include <string>
#include <typeinfo>

namespace tern {

/// The name of a class without namespaces and template arguments.
std::string short_type_name(const std::type_info& type);

}  // namespace tern

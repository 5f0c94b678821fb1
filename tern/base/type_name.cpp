// Names of classes, from the mangled ones.
#include "tern/base/type_name.h"

#include <cxxabi.h>

#include <cstdlib>

namespace tern {

std::string short_type_name(const std::type_info& type) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : type.name();
  std::free(demangled);
  // The last component, where "::" inside <> and () does not count; then the part before the template
  // arguments.
  size_t start = 0, end = name.size();
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (c == '<' && depth == 0) end = i;
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (depth == 0 && name.compare(i, 2, "::") == 0) {
      start = i + 2;
      end = name.size();
    }
  }
  return name.substr(start, end - start);
}

}  // namespace tern

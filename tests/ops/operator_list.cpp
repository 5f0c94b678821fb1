// The operators that operator_table.py knows, for operator_tool.cpp and bench/operator_peer.cpp. One line of
// a table stands for each; the tables are in operator_list_<family>.cpp.
#include <string>

#include "tern/base/error.h"
#include "tests/ops/operator_methods.h"
#include "tests/ops/operator_tables.h"

namespace tern::testing {

const Operator& find_operator(const std::string& name) {
  for (const Table* table :
       {&kPointwise, &kCompare, &kInPlace, &kReduce, &kShape, &kIndex, &kOrder, &kNetwork, &kResize, &kLoss,
        &kCreation, &kLinalg, &kSpecial, &kComplex, &kMethods})
    if (auto row = table->find(name); row != table->end()) return row->second;
  throw IndexError("there is no row for '" + name + "'");
}

}  // namespace tern::testing

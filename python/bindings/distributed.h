// A group of processes as Python holds it.
#pragma once

#include <optional>
#include <utility>

#include "bindings.h"
#include "tern/base/check.h"

namespace tern::python {

/// A group, which is left without holding up Python's other threads.
class Group {
 public:
  explicit Group(dist::ProcessGroup group) : group_(std::move(group)) {}
  ~Group() { close(); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const dist::ProcessGroup& operator*() const {
    TERN_CHECK(group_, ValueError, "the group was destroyed: call init_process_group() again");
    return *group_;
  }
  const dist::ProcessGroup* operator->() const { return &**this; }
  void close() {
    const py::gil_scoped_release no_gil;
    group_.reset();
  }

 private:
  std::optional<dist::ProcessGroup> group_;
};

}  // namespace tern::python

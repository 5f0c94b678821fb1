// History of views that are changed in place: a change of a view is a change of a region of its base.
#pragma once

#include "tern/autograd/node.h"

namespace tern {

/// After `view` was changed in place by `node`: gives its base the history "the old base with this region
/// replaced by the node's result", and the view that of a region of the new base. Throws AutogradError when
/// the base has gaps between its elements.
void rewrite_base_history(const Tensor& view, GradMeta& meta, IntrusivePtr<Node> node);

/// Gives a view whose base was rewritten since a new history. Throws as well.
void refresh_view_history(const Tensor& view, GradMeta& meta);

}  // namespace tern

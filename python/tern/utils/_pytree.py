"""Trees of lists, tuples, named tuples, dicts and leaves, for what maps functions over them."""

import collections


class LeafSpec:
    """The place of a leaf."""

    num_leaves = 1

    def __eq__(self, other):
        return isinstance(other, LeafSpec)

    def __repr__(self):
        return "*"


class TreeSpec:
    """How a tree is built: `build` makes the node of its children again."""

    def __init__(self, type, context, children_specs, build):
        self.type, self.context, self.children_specs, self._build = type, context, children_specs, build
        self.num_leaves = sum(child.num_leaves for child in children_specs)

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and self._key() == other._key()

    def _key(self):
        return self.type, self.context, self.children_specs

    def __repr__(self):
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


def _parts(tree):
    """(children, context, what builds the node of its children); None for a leaf."""
    kind = type(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_make"):
        return list(tree), kind, kind._make
    if kind in (list, tuple, collections.deque):
        return list(tree), None, kind
    if kind in (dict, collections.OrderedDict):
        keys = list(tree)
        return list(tree.values()), keys, lambda children: kind(zip(keys, children))
    if kind is collections.defaultdict:
        keys, factory = list(tree), tree.default_factory
        return list(tree.values()), [factory, keys], lambda children: kind(factory, zip(keys, children))
    return None


def tree_flatten(tree, is_leaf=None):
    """(the leaves in order, the spec that tree_unflatten takes)."""
    parts = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if parts is None:
        return [tree], LeafSpec()
    children, context, build = parts
    flat = [tree_flatten(child, is_leaf) for child in children]
    return [leaf for leaves, _ in flat for leaf in leaves], TreeSpec(type(tree), context, [spec for _, spec in flat], build)


def tree_unflatten(leaves, treespec):
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: the spec has {treespec.num_leaves} leaves, {len(leaves)} were given")
    return _built(iter(leaves), treespec)


def _built(leaves, spec):
    return next(leaves) if isinstance(spec, LeafSpec) else spec._build([_built(leaves, child) for child in spec.children_specs])


def tree_leaves(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[0]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree of func(leaf, leaves of the other trees in its place)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_only(type_or_types, func, tree, is_leaf=None):
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, type_or_types) else leaf, tree, is_leaf=is_leaf)


def tree_all(predicate, tree):
    return all(map(predicate, tree_leaves(tree)))


def tree_any(predicate, tree):
    return any(map(predicate, tree_leaves(tree)))

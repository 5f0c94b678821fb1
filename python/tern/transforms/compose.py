"""Transforms that put others together, those of the extension and any functions of Python. Of the former alone they are one of the
extension too (`extension_steps`), which a DataLoader's threads run without Python."""

import types

from tern import _C


def extension_steps(transform):
    """The transforms of the extension that a transform is, one after the other; None where a part of it is Python's."""
    if isinstance(transform, _C._Transform):
        own = any(isinstance(getattr(type(transform), name), types.FunctionType) for name in ("__call__", "forward"))
        return None if own else [transform]
    made = getattr(transform, "_extension_steps", None)
    return made() if made else None


def _each(transforms):
    """One transform of the extension for each; None where one is Python's."""
    steps = [extension_steps(transform) for transform in transforms]
    return None if None in steps else [_C._compose(each) for each in steps]


class Lambda:
    """A function of a picture."""

    def __init__(self, lambd):
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__}")
        self.lambd = lambd

    def __call__(self, picture):
        return self.lambd(picture)

    def __repr__(self):
        return "Lambda()"


class _Several:
    """Some transforms, in a list that may be changed."""

    def __init__(self, transforms):
        if isinstance(transforms, _C._Transform) or not hasattr(transforms, "__iter__"):
            raise TypeError(f"{type(self).__name__}: expects a list of transforms, got {type(transforms).__name__}")
        self.transforms = transforms if hasattr(transforms, "append") else list(transforms)
        for transform in self.transforms:
            if not callable(transform):
                raise TypeError(f"{type(self).__name__}: {transform!r} can not be called; a transform is a function of a picture")

    def __call__(self, picture):
        each = _each(self.transforms)
        return self._in_python(picture) if each is None else self._in_extension(each)(picture)

    def _extension_steps(self):
        own = type(self).__call__ is not _Several.__call__
        each = None if own else _each(self.transforms)
        return None if each is None else [self._in_extension(each)]

    def __repr__(self):
        lines = "".join(f"\n    {line}" for transform in self.transforms for line in repr(transform).splitlines())
        return f"{type(self).__name__}({lines}\n)"


class Compose(_Several):
    """One transform after the other."""

    def _in_python(self, picture):
        for transform in self.transforms:
            picture = transform(picture)
        return picture

    def _in_extension(self, each):
        return _C._compose(each)

    def _extension_steps(self):
        if type(self).__call__ is not _Several.__call__:
            return None
        steps = [extension_steps(transform) for transform in self.transforms]
        return None if None in steps else sum(steps, [])


class RandomApply(Compose):
    """All of the transforms with probability p, else none."""

    def __init__(self, transforms, p=0.5):
        super().__init__(transforms)
        self.p = p

    def _in_python(self, picture):
        return super()._in_python(picture) if _C.rand(()).item() < self.p else picture

    def _in_extension(self, each):
        return _C._random_apply(each, self.p)

    _extension_steps = _Several._extension_steps


class RandomChoice(_Several):
    """One of the transforms, with the probabilities p, of which only the proportions count."""

    def __init__(self, transforms, p=None):
        super().__init__(transforms)
        if p is not None and len(p) != len(self.transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(p)} != {len(self.transforms)}")
        self.p = p

    def _in_python(self, picture):
        weights = _C.tensor([float(each) for each in self.p or [1] * len(self.transforms)])
        return self.transforms[_C.multinomial(weights, 1).item()](picture)

    def _in_extension(self, each):
        return _C._random_choice(each, None if self.p is None else list(self.p))


class RandomOrder(_Several):
    """All of the transforms in an order that is drawn anew each time."""

    def _in_python(self, picture):
        for place in _C.randperm(len(self.transforms)).tolist():
            picture = self.transforms[place](picture)
        return picture

    def _in_extension(self, each):
        return _C._random_order(each)

"""torch._foreach_*: an operator on each tensor of a list. Numbers, tensors and lists of the same length stand beside it; under a name
that ends in _ the tensors are changed."""

import tern

_NAMES = """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min copy cos cosh div erf erfc exp expm1 floor frac lerp lgamma log log10
    log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc zero
""".split()
_ONLY_IN_PLACE = ("copy", "zero")
_BOUNDS = {"clamp_max": "max", "minimum": "max", "clamp_min": "min", "maximum": "min"}  # of numbers and of tensors


def _operator(name, in_place):
    if name in _BOUNDS:
        return lambda x, limit: (x.clamp_ if in_place else x.clamp)(**{_BOUNDS[name]: limit})
    if in_place:
        return lambda x, *args, **kwargs: getattr(x, f"{name}_")(*args, **kwargs)
    return getattr(tern, name)


def _foreach(name, in_place):
    operator, full_name = _operator(name, in_place), f"_foreach_{name}" + "_" * in_place

    def foreach(self, *args, **kwargs):
        if not isinstance(self, (list, tuple)) or not self:
            raise ValueError(f"{full_name}: expected a list of tensors that is not empty")
        columns = []
        for values in args:
            if not isinstance(values, (list, tuple)):
                values = [values] * len(self)
            if len(values) != len(self):
                raise ValueError(f"{full_name}: {len(self)} tensors, but {len(values)} values beside them")
            columns.append(values)
        results = [operator(*row, **kwargs) for row in zip(self, *columns)]
        return None if in_place else results

    foreach.__name__ = foreach.__qualname__ = full_name
    return foreach


def _foreach_norm(self, ord=2, dtype=None):
    return [tern.linalg.vector_norm(x, ord, dtype=dtype) for x in self]


functions = {"_foreach_norm": _foreach_norm}
for _name in _NAMES:
    for _in_place in (True,) if _name in _ONLY_IN_PLACE else (False, True):
        _function = _foreach(_name, _in_place)
        functions[_function.__name__] = _function

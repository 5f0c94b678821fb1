"""Samples into batches, and what is done with each tensor of a batch."""

import collections.abc

from tern import _C


def _is_array(value):
    return hasattr(value, "__array__") and hasattr(value, "dtype")


def _dict_like(mapping, entries):
    """The entries as what the mapping is, or as a dict where its class is not made of entries alone."""
    try:
        return type(mapping)(entries)
    except TypeError:
        return entries


def _same_form(value, part):
    """The value with part(item) in the place of each item that it holds; the value where it holds none."""
    if isinstance(value, collections.abc.Mapping):
        return _dict_like(value, {name: part(item) for name, item in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(part, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(part, value))
    return value


def each_tensor(value, function):
    """The value with function(tensor) in the place of each of its tensors."""
    if isinstance(value, _C.Tensor):
        return function(value)
    return _same_form(value, lambda item: each_tensor(item, function))


def default_convert(value):
    """The value with tensors in the place of its arrays."""
    if _is_array(value) and not isinstance(value, _C.Tensor):
        return _C.as_tensor(value) if value.dtype.kind not in "SUO" else value
    return value if isinstance(value, _C.Tensor) else _same_form(value, default_convert)


def default_collate(batch):
    """Samples as one batch: tensors, arrays and numbers are stacked, texts listed, tuples and dicts taken apart."""
    first = batch[0]
    if isinstance(first, _C.Tensor):
        return _C.stack(list(batch))
    if _is_array(first) and first.dtype.kind not in "SUO":
        return _C.stack([_C.as_tensor(item) for item in batch])
    if isinstance(first, float):
        return _C.tensor(list(batch), dtype=_C.float64)
    if isinstance(first, int):
        return _C.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return _dict_like(first, {name: default_collate([sample[name] for sample in batch]) for name in first})
    if isinstance(first, (tuple, list)):
        if len({len(sample) for sample in batch}) != 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(list(items)) for items in zip(*batch)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
                    f"found {type(first)}")

"""Tensors in state dicts that are pieces of divided ones carry what they are pieces of: (shape of the whole, first element)."""

from tern import _C


def piece_of(tensor):
    """What mark() has left, or None."""
    return getattr(tensor, "_piece", None)


def mark(module, state, prefix=""):
    """In the state dict of a module."""
    for name, parameter in module.named_parameters(remove_duplicate=False):
        piece, saved = _C._piece_of(parameter), state.get(prefix + name)
        if piece is not None and saved is not None and saved.shape == parameter.shape:
            saved._piece = piece


def mark_state(optimizer, state):
    """In the state dict of an optimizer."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, entries in state["state"].items():
        piece = _C._piece_of(parameters[number])
        for name, value in entries.items() if piece is not None else ():
            if isinstance(value, _C.Tensor) and _C._is_like_parameter(name, value.shape, parameters[number].shape):
                value._piece = piece

"""Less memory for training: what operators keep for backward is computed again there."""

from tern import _C


def checkpoint(function, *args, use_reentrant=False, **kwargs):
    """function(*args, **kwargs), of which nothing but the arguments is kept; backward calls it again, with the same numbers."""
    places = [place for place, arg in enumerate(args) if isinstance(arg, _C.Tensor)]

    def call(tensors):
        given = list(args)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return function(*given, **kwargs)

    return _C._checkpoint(call, [args[place] for place in places])


def checkpoint_sequential(functions, segments, input, use_reentrant=False):
    """The modules one after the other, in `segments` parts, each but the last a checkpoint()."""
    modules = list(functions)
    if not 1 <= segments <= len(modules):
        raise ValueError(f"checkpoint_sequential: {segments} parts of {len(modules)} modules")

    def run(part):
        def of(x):
            for module in part:
                x = module(x)
            return x
        return of

    length = len(modules) // segments
    for start in range(0, length * (segments - 1), length):
        input = checkpoint(run(modules[start:start + length]), input)
    return run(modules[length * (segments - 1):])(input)

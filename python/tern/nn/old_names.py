"""What programs of earlier years call otherwise: names of initialisations without the underscore, reductions by two flags."""

import warnings

from tern import _C


def reduction_of(size_average, reduce):
    """The reduction that the two flags stand for, which are true unless given."""
    average, reduces = size_average is None or size_average, reduce is None or reduce
    reduction = "none" if not reduces else "mean" if average else "sum"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3)
    return reduction


def takes_old_reduction(layer):
    """The loss, whose class takes the two flags too."""
    init = layer.__init__

    def initialise(self, *args, size_average=None, reduce=None, **options):
        if size_average is not None or reduce is not None:
            options["reduction"] = reduction_of(size_average, reduce)
        init(self, *args, **options)

    initialise.__doc__ = init.__doc__
    layer.__init__ = initialise


def under_old_name(name, function):
    """init.normal_ as init.normal, which PyTorch warns of too."""
    def old(*args, **options):
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return function(*args, **options)

    old.__name__ = old.__qualname__ = name
    return old


for _layer in vars(_C).values():
    if isinstance(_layer, type) and issubclass(_layer, _C.Module) and hasattr(_layer, "reduction") and _layer.__name__.endswith("Loss"):
        takes_old_reduction(_layer)

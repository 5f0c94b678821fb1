"""Gradients of functions against finite differences."""

from tern import _C


def _check(native, func, inputs, eps, atol, rtol, raise_exception):
    inputs = (inputs,) if isinstance(inputs, _C.Tensor) else tuple(inputs)
    places = [place for place, value in enumerate(inputs) if isinstance(value, _C.Tensor) and value.requires_grad]
    if not places:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")

    def outputs(tensors):
        given = list(inputs)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        results = func(*given)
        return (results,) if isinstance(results, _C.Tensor) else results

    learned = [number for number, result in enumerate(outputs([inputs[place] for place in places])) if result.requires_grad]
    try:
        for number in learned:
            native(lambda *tensors: outputs(tensors)[number], [inputs[place] for place in places], eps, atol, rtol)
    except _C.AutogradError:
        if raise_exception:
            raise
        return False
    return True


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    """Compares the gradients of `func`, of float64 inputs that require some, with finite differences. AutogradError says where
    they differ; without `raise_exception` the result is False then."""
    return _check(_C._gradcheck, func, inputs, eps, atol, rtol, raise_exception)


def gradgradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    """The same for second derivatives."""
    return _check(_C._gradgradcheck, func, inputs, eps, atol, rtol, raise_exception)

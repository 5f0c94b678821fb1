"""Functions with gradients of their own."""

from tern import _C


class FunctionContext:
    """What forward() and backward() of one call tell each other; attributes of one's own are there again in backward()."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.saved_tensors = ()
        self._to_save, self._not_differentiable, self._materialize = [], [], True

    def save_for_backward(self, *tensors):
        """In forward(): keeps tensors, which `saved_tensors` gives in backward()."""
        self._to_save = list(tensors)

    def mark_non_differentiable(self, *results):
        """In forward(): results through which no gradient flows."""
        self._not_differentiable = list(results)

    def set_materialize_grads(self, value):
        """In forward(): whether backward() is given zeros, or None, for a result that nothing depended on."""
        self._materialize = value


class Function:
    """Derive, write the static methods forward(ctx, ...) and backward(ctx, *grads), and call `apply(...)`.

    backward() returns a gradient for each argument of forward(), None for those that are no tensors or need none.
    """

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("an autograd.Function needs a static method forward")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("an autograd.Function needs a static method backward")

    @classmethod
    def apply(cls, *args):
        is_tensor = [isinstance(arg, _C.Tensor) for arg in args]
        context = FunctionContext(tuple(t and arg.requires_grad for t, arg in zip(is_tensor, args)))
        single = True

        def forward():
            nonlocal single
            results = cls.forward(context, *args)
            single = not isinstance(results, (tuple, list))
            return [results] if single else list(results)

        def backward(grads):
            given = cls.backward(context, *grads)
            given = given if isinstance(given, (tuple, list)) else (given,)
            if len(given) < len(is_tensor) or any(grad is not None for grad in given[len(is_tensor):]):
                raise _C.AutogradError(f"{cls.__name__}.backward() returned {len(given)} gradients for "
                                       f"{len(is_tensor)} arguments of forward()")
            return [grad for t, grad in zip(is_tensor, given) if t]

        tensors = [arg for t, arg in zip(is_tensor, args) if t]
        results = _C._apply_function(tensors, forward, backward, lambda: context)
        return results[0] if single else tuple(results)

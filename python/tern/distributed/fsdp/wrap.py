"""Which modules of a network are divided by themselves: torch.distributed.fsdp.wrap. A policy is a function of a module, of
`recurse` (whether to look below it, or whether to take it) and of the number of its parameters that nobody took."""

def always_wrap_policy(*args, **kwargs):
    return True


def size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, min_num_params=100_000_000, force_leaf_modules=None,
                                exclude_wrap_modules=None):
    """Modules with at least `min_num_params` parameters."""
    from tern import nn
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, tuple(force_leaf_modules or {nn.MultiheadAttention}))
    return is_large and not isinstance(module, tuple(exclude_wrap_modules or {nn.ModuleList, nn.ModuleDict}))


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Modules of these classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Modules for which lambda_fn(module) is true."""
    return recurse or lambda_fn(module)


class CustomPolicy:
    """Modules for which lambda_fn(module) is true."""

    def __init__(self, lambda_fn):
        self.lambda_fn = lambda_fn

    def __call__(self, module, recurse, nonwrapped_numel):
        return recurse or bool(self.lambda_fn(module))


class ModuleWrapPolicy:
    """Modules of these classes."""

    def __init__(self, module_classes):
        self.module_classes = tuple(module_classes)

    def __call__(self, module, recurse, nonwrapped_numel=-1):
        return recurse or isinstance(module, self.module_classes)


_numel_of = lambda parameters: sum(p.numel() for p in parameters)  # noqa: E731


def chosen(module, policy):
    """The modules below that the policy would have divided by themselves, inner ones first."""
    if policy is None:
        return []
    taken = []

    def walk(parent):
        """The number of parameters of the module that no module below it took."""
        rest = _numel_of(parent.parameters(recurse=False))
        for child in parent.children():
            numel = _numel_of(child.parameters())
            if policy(module=child, recurse=True, nonwrapped_numel=numel):
                numel = walk(child)
            if policy(module=child, recurse=False, nonwrapped_numel=numel):
                taken.append(child)
            else:
                rest += numel
        return rest

    walk(module)
    return taken

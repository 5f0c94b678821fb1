"""fully_shard(): parameters, gradients and optimizer's state that are divided over the processes.

    for block in net.blocks:
        fully_shard(block)
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters())

While a module runs, its parameters are whole; outside of that each process has a piece of each of them, in one dimension. Whole
states for files are in tern.distributed.checkpoint.state_dict.
"""

import dataclasses
import functools

from tern import _C, distributed
from tern.utils._pytree import tree_map


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Parameters are gathered and computed with in `param_dtype`, gradients added up in `reduce_dtype`."""

    param_dtype: object = None
    reduce_dtype: object = None
    output_dtype: object = None
    cast_forward_inputs: bool = True


@dataclasses.dataclass
class OffloadPolicy:
    """Pieces stay where the module is."""


class CPUOffloadPolicy(OffloadPolicy):
    def __init__(self, pin_memory=True):
        raise _C.NotImplementedError("CPUOffloadPolicy: pieces stay where the module is")


class FSDPModule:
    """What modules become that fully_shard() was called with."""

    __slots__ = ()  # the layout of a module's own class, or it could not change to this one

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """While False, backward() adds up whole gradients here, and leaves those of the pieces as they are."""
        _C._set_requires_gradient_sync(self, requires_gradient_sync)

    def unshard(self, async_op=False):
        """A hint to gather early; here parameters are gathered when the module is called."""

    def reshard(self):
        """Parameters are divided outside of a forward anyway."""

    set_modules_to_forward_prefetch = set_modules_to_backward_prefetch = lambda self, modules: None
    set_is_last_backward = lambda self, is_last_backward: None  # noqa: E731


def _cast(value, dtype):
    return tree_map(lambda x: x.to(dtype) if isinstance(x, _C.Tensor) and x.is_floating_point() else x, value)


def cast_around(module, policy):
    if policy.cast_forward_inputs and policy.param_dtype is not None:
        def before(_, args, kwargs):
            return _cast(tuple(args), policy.param_dtype), _cast(dict(kwargs), policy.param_dtype)
        module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
    if policy.output_dtype is not None:
        module.register_forward_hook(lambda _, args, output: _cast(output, policy.output_dtype))


def fully_shard(module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None, mp_policy=None, offload_policy=None,
                ignored_params=None):
    """Divides the parameters of the module (or of each in a list), those of modules below that are divided already left out,
    over the processes. From the inside out: the blocks of a network first, then the network. All begin with rank 0's."""
    if ignored_params:
        raise _C.NotImplementedError("fully_shard: ignored_params: all parameters of a module are divided")
    if isinstance(module, (list, tuple)):
        for each in module:
            fully_shard(each, mesh=mesh, reshard_after_forward=reshard_after_forward, mp_policy=mp_policy)
        return module
    policy = mp_policy or MixedPrecisionPolicy()
    group = distributed._group(None if mesh is None else mesh.get_group())
    reshard = reshard_after_forward if reshard_after_forward is None else bool(reshard_after_forward)
    _C._fully_shard(module, group._native, reshard, policy.param_dtype, policy.reduce_dtype)
    before = type(module)
    module.__class__ = type(f"FSDP{before.__name__}", (FSDPModule, before), {"__slots__": (), "__module__": before.__module__})
    cast_around(module, policy)
    return module


def register_fsdp_forward_method(module, method_name):
    """Calls of this method gather the parameters as those of the module do."""
    method = getattr(module, method_name)

    @functools.wraps(method)
    def inside(*args, **kwargs):
        with _C._Surrounded(module):
            return method(*args, **kwargs)

    setattr(module, method_name, inside)

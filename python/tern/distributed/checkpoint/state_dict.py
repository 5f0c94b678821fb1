"""State dicts of modules and optimizers whatever wraps or divides them: torch.distributed.checkpoint.state_dict. With
full_state_dict=True they are whole, with the module's own names, and any number of processes, or one, loads them."""

import dataclasses

from tern import _C, distributed


@dataclasses.dataclass
class StateDictOptions:
    """`full_state_dict`: whole parameters in place of this process' pieces. `cpu_offload`: in host memory, and whole ones on rank 0
    only. `broadcast_from_rank0`: only rank 0 has what is loaded."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _own(module):
    """The module inside of what wraps it: names are the module's own."""
    from tern import nn
    from tern.distributed.fsdp import FullyShardedDataParallel
    while isinstance(module, (nn.DataParallel, nn.parallel.DistributedDataParallel, FullyShardedDataParallel)):
        module = module.module
    return module


def _is_first(module):
    rank = _C._rank_of_shards(module)
    if rank is None:
        rank = distributed.get_rank() if distributed.is_initialized() else 0
    return rank == 0


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state dict of the model. All processes call it."""
    options = options or StateDictOptions()
    module = _own(model)
    if options.full_state_dict:
        with _C._FullParameters(module, options.cpu_offload, options.cpu_offload):
            state = {} if options.cpu_offload and not _is_first(module) else module.state_dict()
    else:
        state = module.state_dict()
    if options.cpu_offload:
        for name in state:
            state[name] = state[name].cpu()
    if options.ignore_frozen_params:
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                state.pop(name, None)
    return state


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Loads what get_model_state_dict() with the same options gave."""
    options = options or StateDictOptions()
    module = _own(model)
    if not options.full_state_dict and not options.broadcast_from_rank0:
        return module.load_state_dict(model_state_dict, strict=options.strict)
    with _C._FullParameters(module, False, True) as parameters:
        if options.broadcast_from_rank0:
            keys = _load_on_first(module, model_state_dict, options)
            parameters.broadcast()
        else:
            keys = module.load_state_dict(model_state_dict, strict=options.strict)
        parameters.write_back()
    return keys


def _load_on_first(module, state, options):
    """Others are told where that fails, in place of waiting."""
    keys, failed = _C.IncompatibleKeys([], []), [""]
    error = None
    if _is_first(module):
        try:
            keys = module.load_state_dict(state, strict=options.strict)
        except Exception as raised:
            error, failed = raised, [str(raised) or repr(raised)]
    distributed.broadcast_object_list(failed, src=0)
    if failed[0]:
        raise error or _C.CheckpointError(f"rank 0: {failed[0]}")
    return keys


def _names(module, optimizer):
    """The names of the optimizer's parameters, by their numbers in its state."""
    named = {id(parameter): name for name, parameter in module.named_parameters()}
    return [named[id(p)] for group in optimizer.param_groups for p in group["params"]]


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The optimizer's state dict with the names of parameters in the place of their numbers. All processes call it."""
    options = options or StateDictOptions()
    module, merged = _own(model), {"state": {}, "param_groups": []}
    for optimizer in [optimizers] if hasattr(optimizers, "param_groups") else optimizers:
        if options.full_state_dict:
            state = _C._full_optimizer_state(module, optimizer, options.cpu_offload)
        else:
            state = optimizer.state_dict()
        if options.full_state_dict and options.cpu_offload and not _is_first(module):
            merged = {}
            continue
        names = _names(module, optimizer)
        merged["state"].update({names[number]: entries for number, entries in state["state"].items()})
        for group in state["param_groups"]:
            merged["param_groups"].append({**group, "params": [names[number] for number in group["params"]]})
    return merged


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Loads what get_optimizer_state_dict() with the same options gave."""
    options = options or StateDictOptions()
    module = _own(model)
    if options.broadcast_from_rank0:
        values = [optim_state_dict]
        distributed.broadcast_object_list(values, src=0)
        optim_state_dict = values[0]
    groups = iter(optim_state_dict["param_groups"])
    for optimizer in [optimizers] if hasattr(optimizers, "param_groups") else optimizers:
        numbers = {name: number for number, name in enumerate(_names(module, optimizer))}
        own = [next(groups) for _ in optimizer.param_groups]
        state = {
            "state": {numbers[name]: entries for name, entries in optim_state_dict["state"].items() if name in numbers},
            "param_groups": [{**group, "params": [numbers[name] for name in group["params"]]} for group in own]}
        if options.full_state_dict or options.broadcast_from_rank0:
            _C._load_full_optimizer_state(module, optimizer, state)
        else:
            optimizer.load_state_dict(state)


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """Both of the model and of its optimizers."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Loads what get_state_dict() gave."""
    keys = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys

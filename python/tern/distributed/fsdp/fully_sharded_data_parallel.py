"""FullyShardedDataParallel: the earlier interface, a module around the module that is divided."""

import contextlib
import dataclasses
import enum

from tern import _C, distributed
from tern.distributed.checkpoint import state_dict as states
from tern.distributed.fsdp import wrap
from tern.distributed.fsdp._fully_shard import MixedPrecisionPolicy, cast_around


class ShardingStrategy(enum.Enum):
    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()


class BackwardPrefetch(enum.Enum):
    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclasses.dataclass
class MixedPrecision:
    param_dtype: object = None
    reduce_dtype: object = None
    buffer_dtype: object = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclasses.dataclass
class CPUOffload:
    offload_params: bool = False


@dataclasses.dataclass
class FullStateDictConfig:
    offload_to_cpu: bool = False
    rank0_only: bool = False


@dataclasses.dataclass
class FullOptimStateDictConfig(FullStateDictConfig):
    rank0_only: bool = False


class FullyShardedDataParallel(_C.Module):
    """A module whose parameters are divided over the processes, together with those of the modules below that the policy
    chooses. state_dict() and load_state_dict() are of the whole module, with its own names; all processes call them."""

    _not_saved = ("process_group",)

    def __init__(self, module, process_group=None, sharding_strategy=None, cpu_offload=None, auto_wrap_policy=None,
                 backward_prefetch=None, mixed_precision=None, ignored_modules=None, param_init_fn=None, device_id=None,
                 sync_module_states=False, forward_prefetch=False, limit_all_gathers=True, use_orig_params=False, **options):
        super().__init__()
        if getattr(cpu_offload, "offload_params", cpu_offload):
            raise _C.NotImplementedError("FullyShardedDataParallel: cpu_offload: pieces stay where the module is")
        if sharding_strategy in (ShardingStrategy.NO_SHARD, ShardingStrategy.HYBRID_SHARD):
            raise _C.NotImplementedError(f"FullyShardedDataParallel: {sharding_strategy}: use DistributedDataParallel, or FULL_SHARD")
        if ignored_modules:
            raise _C.NotImplementedError("FullyShardedDataParallel: ignored_modules: all parameters of a module are divided")
        if device_id is not None:
            module.to(_C.device("cuda", device_id) if isinstance(device_id, int) else device_id)
        precision = mixed_precision or MixedPrecision()
        policy = MixedPrecisionPolicy(precision.param_dtype, precision.reduce_dtype, None, precision.cast_root_forward_inputs)
        self.process_group = distributed._group(process_group)
        self._state_type, self._state_config = StateDictType.FULL_STATE_DICT, FullStateDictConfig()
        reshard = sharding_strategy in (None, ShardingStrategy.FULL_SHARD)
        for below in wrap.chosen(module, auto_wrap_policy):
            self._divide(below, reshard, policy)
        self._divide(module, None if reshard else False, policy)
        self.module = module

    def _divide(self, module, reshard, policy):
        if not _C._is_fully_sharded(module):
            _C._fully_shard(module, self.process_group._native, reshard, policy.param_dtype, policy.reduce_dtype)
            cast_around(module, policy)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
            return getattr(self.module, name)

    @contextlib.contextmanager
    def no_sync(self):
        """In this context backward() adds up whole gradients here; the first one after it takes the means of what was gathered."""
        _C._set_requires_gradient_sync(self, False)
        try:
            yield
        finally:
            _C._set_requires_gradient_sync(self, True)

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        return _C.clip_grad_norm_(list(self.parameters()), max_norm, norm_type)

    def state_dict(self, *args, **kwargs):
        if self._state_type is not StateDictType.FULL_STATE_DICT:
            return self.module.state_dict(*args, **kwargs)
        config = self._state_config
        with _C._FullParameters(self, config.rank0_only, config.offload_to_cpu):
            if config.rank0_only and self.process_group.rank() != 0:
                return {}
            state = self.module.state_dict(*args, **kwargs)
        if config.offload_to_cpu:
            for name in state:
                state[name] = state[name].cpu()
        return state

    def load_state_dict(self, state_dict, strict=True, assign=False):
        if self._state_type is not StateDictType.FULL_STATE_DICT:
            return self.module.load_state_dict(state_dict, strict)
        return states.set_model_state_dict(self.module, state_dict, options=states.StateDictOptions(full_state_dict=True, strict=strict))

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """In this context state_dict() gives whole parameters (FULL_STATE_DICT), or the pieces of this process."""
        before = module._state_type, module._state_config
        module._state_type, module._state_config = state_dict_type, state_dict_config or FullStateDictConfig()
        try:
            yield
        finally:
            module._state_type, module._state_config = before

    @staticmethod
    def set_state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        module._state_type, module._state_config = state_dict_type, state_dict_config or FullStateDictConfig()

    @staticmethod
    def optim_state_dict(module, optim, optim_state_dict=None, group=None):
        """The optimizer's whole state, by the names of parameters."""
        offload = module._state_config.rank0_only
        return states.get_optimizer_state_dict(module.module, optim, options=states.StateDictOptions(True, offload))

    @staticmethod
    def optim_state_dict_to_load(module, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None):
        """What the optimizer's load_state_dict() takes of a whole state: the pieces of this process."""
        before = optim.state_dict()
        states.set_optimizer_state_dict(module.module, optim, optim_state_dict, options=states.StateDictOptions(True))
        pieces = optim.state_dict()
        if not load_directly:
            optim.load_state_dict(before)
        return pieces

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(module, recurse=True, writeback=True, rank0_only=False, offload_to_cpu=False, with_grads=False):
        """In this context parameters are whole; what is done to them stays, unless `writeback` is False."""
        with _C._FullParameters(module, rank0_only, offload_to_cpu) as whole:
            yield
            if writeback:
                whole.write_back()

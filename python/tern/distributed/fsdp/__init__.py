"""Networks whose parameters, gradients and optimizer's state are divided over the processes: torch.distributed.fsdp."""

from tern.distributed.fsdp._fully_shard import (  # noqa: F401
    CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard, register_fsdp_forward_method)
from tern.distributed.fsdp.fully_sharded_data_parallel import (  # noqa: F401
    BackwardPrefetch, CPUOffload, FullOptimStateDictConfig, FullStateDictConfig, FullyShardedDataParallel, MixedPrecision,
    ShardingStrategy, StateDictType)

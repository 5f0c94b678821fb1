"""torch.distributed.fsdp.sharded_grad_scaler: any GradScaler asks all processes where parameters are divided."""

from tern.amp import GradScaler as ShardedGradScaler  # noqa: F401

"""The part of a dataset that one of several processes has."""

from tern._C import DistributedSampler

_native_init = DistributedSampler.__init__


def _init(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
    """By default the part of this process in the group that init_process_group() has made."""
    if num_replicas is None or rank is None:
        from tern import distributed
        num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        rank = distributed.get_rank() if rank is None else rank
    _native_init(self, dataset, num_replicas, rank, shuffle, seed, drop_last)


def _set_epoch(self, epoch):
    """The next pass of the DataLoader has this epoch's order."""
    self.epoch = epoch


DistributedSampler.__init__ = _init
DistributedSampler.set_epoch = _set_epoch

"""The part of a dataset that one of several processes has."""

from tern._C import DistributedSampler


def _set_epoch(self, epoch):
    """The next pass of the DataLoader has this epoch's order."""
    self.epoch = epoch


DistributedSampler.set_epoch = _set_epoch

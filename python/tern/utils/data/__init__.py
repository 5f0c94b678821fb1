"""Datasets, samplers and the DataLoader. Workers are threads: datasets of Tern's own are read without Python's lock. Sets of
pictures are in tern.datasets."""

from tern._C import TensorDataset, WeightedRandomSampler
from tern.utils.data.collate import default_collate, default_convert
from tern.utils.data.dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, random_split)
from tern.utils.data.distributed import DistributedSampler
from tern.utils.data.loader import DataLoader, get_worker_info
from tern.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler",
    "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
    "default_collate", "default_convert", "get_worker_info", "random_split"]

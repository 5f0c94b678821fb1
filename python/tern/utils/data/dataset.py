"""Datasets: samples by index, or one after the other; and datasets made of others."""

import abc
import bisect
import itertools
import types

from tern import _C


class Dataset(abc.ABC):
    """Samples by index: write __len__ and __getitem__. A sample is a tensor, number, array or text, or a tuple, list or dict
    of such."""

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])

    def __class_getitem__(cls, _):
        return cls


class IterableDataset(Dataset):
    """Samples one after the other: write __iter__. Workers read one stream, of which each sample comes once."""

    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other):
        return ChainDataset([self, other])


def is_extension(dataset):
    """Whether the extension can read a dataset without Python."""
    if type(dataset) is Subset:
        return is_extension(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return all(map(is_extension, dataset.datasets))
    if not isinstance(dataset, _C._Dataset):
        return False
    return getattr(dataset, "_gives_the_same", not isinstance(type(dataset).__getitem__, types.FunctionType))


def as_extension(dataset):
    """Such a dataset as one of the extension."""
    if isinstance(dataset, _C._Dataset):
        return dataset
    if type(dataset) is Subset:
        size = len(dataset.dataset)
        return _C._Subset(as_extension(dataset.dataset), [i + size if i < 0 else i for i in map(int, dataset.indices)])
    return _C._ConcatDataset(list(map(as_extension, dataset.datasets)))


Dataset.register(_C._Dataset)  # those of the extension
_C._Dataset.__add__ = Dataset.__add__


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self):
        return sum(map(len, self.datasets))


class Subset(Dataset):
    """Some samples of a dataset."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: datasets should not be an empty iterable")
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} samples")
        index %= len(self)
        place = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[place][index - (self.cumulative_sizes[place - 1] if place else 0)]


class StackDataset(Dataset):
    """The samples of several datasets side by side: as a tuple, or by names as a dict."""

    def __init__(self, *datasets, **named):
        if bool(datasets) == bool(named):
            raise ValueError("StackDataset: give datasets, or datasets with names")
        self.datasets = datasets or named
        if len({len(dataset) for dataset in (datasets or named.values())}) != 1:
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self):
        return len(next(iter(self.datasets.values())) if isinstance(self.datasets, dict) else self.datasets[0])


def random_split(dataset, lengths, generator=None):
    """Parts that do not overlap, of these numbers of samples, or of these fractions that add up to 1."""
    size = len(dataset)
    if abs(sum(lengths) - 1) < 1e-9 and all(0 <= part <= 1 for part in lengths):
        lengths = [int(size * part) for part in lengths]
        for place in range(size - sum(lengths)):
            lengths[place % len(lengths)] += 1
    if sum(lengths) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset! "
                         f"(the lengths add up to {sum(lengths)}, the dataset has {size} samples)")
    order = _C.randperm(size, generator=generator).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length:end]) for end, length in zip(ends, lengths)]

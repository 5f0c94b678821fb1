"""Samplers: the order of an epoch."""

from tern import _C


def own_generator(generator):
    """With PyTorch's numbers an order is drawn as there: by a generator of its own, whose seed the default one draws."""
    if generator is None and _C._draws_as_torch():
        return _C.Generator().manual_seed(_C.empty((), dtype=_C.int64).random_().item())
    return generator


class Sampler:
    """Indices of an epoch: write __iter__ and __len__."""

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError("a Sampler needs __iter__")

    def __class_getitem__(cls, _):
        return cls


class SequentialSampler(Sampler):
    """All indices in order."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """All indices in a new order in each epoch, or the first `num_samples` of it; with `replacement` they may repeat."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        size, wanted = len(self.data_source), self.num_samples
        generator = own_generator(self.generator)
        if self.replacement:  # a few at a time: there may be more of them than memory holds
            for begin in range(0, wanted, 32):
                yield from _C.randint(0, size, (min(32, wanted - begin),), generator=generator).tolist()
            return
        while wanted > 0:
            order = _C.randperm(size, generator=generator).tolist()[:wanted]
            yield from order
            wanted -= len(order)
            if not order:
                return

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """These indices in a new order in each epoch."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        return (self.indices[i] for i in _C.randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self):
        return len(self.indices)


class BatchSampler(Sampler):
    """The indices of a sampler in groups."""

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        return (len(self.sampler) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

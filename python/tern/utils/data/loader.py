"""The DataLoader. Datasets of the extension are read by its own threads, all others by threads of Python."""

import collections
import concurrent.futures
import itertools
import threading

from tern import _C
from tern.autograd import set_grad_enabled
from tern.utils.data.collate import default_collate, default_convert, each_tensor
from tern.utils.data.dataset import IterableDataset, as_extension, is_extension
from tern.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

_worker = threading.local()
WorkerInfo = collections.namedtuple("WorkerInfo", "id num_workers seed dataset")


def get_worker_info():
    """In a worker that reads samples by index: its number and its dataset; elsewhere None. Of a stream there is one reader."""
    return getattr(_worker, "info", None)


class DataLoader:
    """Batches of a dataset: `for x, y in DataLoader(dataset, batch_size=64, shuffle=True)`.

    As PyTorch's, and besides: `device` moves batches there, while those before them are computed; with `seed` the order of an
    epoch is the same in every run, whatever the number of workers.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
                 generator=None, *, prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True,
                 device=None, seed=None):
        if num_workers < 0:
            raise ValueError(f"num_workers should not be negative, got {num_workers}")
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(f"prefetch_factor should be at least 1, got {prefetch_factor}")
        self._streams = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
        if self._streams:
            if not hasattr(dataset, "__iter__"):
                raise TypeError(f"a dataset has __len__ and __getitem__, or __iter__; '{type(dataset).__name__}' has neither")
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ValueError("DataLoader: shuffle, sampler and batch_sampler need a dataset with __getitem__ and __len__")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        elif batch_size is not None and batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.dataset, self.batch_size, self.num_workers, self.drop_last = dataset, batch_size, num_workers, drop_last
        self.generator, self.prefetch_factor, self.pin_memory = generator, prefetch_factor or 2, pin_memory
        self.timeout, self.worker_init_fn, self.persistent_workers = timeout, worker_init_fn, persistent_workers
        self.device, self.seed, self._epoch, self._engine, self._native = device, seed, 0, None, False
        if (not self._streams and is_extension(dataset) and batch_sampler is None and collate_fn is None and batch_size is not None
                and (sampler is None or isinstance(sampler, _C._Sampler))):
            self._engine = _C._DataLoader(as_extension(dataset), batch_size, bool(shuffle), sampler, num_workers, pin_memory, drop_last,
                                          generator, self.prefetch_factor, device, seed)
        if seed is not None:
            generator = self._order = _C.Generator()
        if sampler is None and not self._streams:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_size is not None and not self._streams:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self._batches = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if self._batches else default_convert)

    def __len__(self):
        if self._streams:
            size = len(self.dataset)
            if self.batch_size is None:
                return size
            return (size + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size
        return len(self.batch_sampler if self._batches else self.sampler)

    def _own_batches(self):
        """Datasets of the extension make batches themselves."""
        return (self._batches and self.collate_fn is default_collate and isinstance(self.dataset, _C._Dataset)
                and is_extension(self.dataset))

    def set_epoch(self, epoch):
        """The next pass is this epoch's."""
        self._epoch = epoch
        if self._engine:
            self._engine.set_epoch(epoch)

    def __iter__(self):
        epoch = getattr(self.sampler, "epoch", None)
        if isinstance(self.sampler, _C._Sampler) and epoch is not None:
            self.set_epoch(epoch)
        epoch, self._epoch = self._epoch, self._epoch + 1
        self._base_seed = None
        if self.seed is None and _C._draws_as_torch():  # one number at the beginning of each pass, as PyTorch
            self._base_seed = _C.empty((), dtype=_C.int64).random_(generator=self.generator).item()
        own_order = self._base_seed is not None and isinstance(self.sampler, RandomSampler)
        if self._engine and is_extension(self.dataset) and not own_order:  # whose transform may have changed
            return iter(self._engine)
        if self.seed is not None:
            self._order.manual_seed(self.seed * 1_000_003 + epoch)
        return self._read(self._stream_tasks() if self._streams else self._index_tasks(epoch), epoch)

    # What is called for each batch, with its samples' indices or without; a stream's last one returns _END.

    def _index_tasks(self, epoch):
        sampler = self.batch_sampler if self._batches else self.sampler
        self._native = self._own_batches()
        self._random = (self._seed_of_pass() if self.seed is None else self.seed, epoch) if self._native else None
        for index in sampler._indices(epoch) if isinstance(sampler, _C._Sampler) else sampler:
            yield (lambda index=index: self._fetch(index))

    def _seed_of_pass(self, generator=None):
        return _C.randint(0, 2**62, (), generator=generator).item() if self._base_seed is None else self._base_seed

    def _fetch(self, index):
        if not self._batches:
            return self._sample(index)
        if self._native:
            return self.dataset._get_batch(list(index), *self._random)
        if hasattr(self.dataset, "__getitems__"):
            return list(self.dataset.__getitems__(list(index)))
        return [self._sample(i) for i in index]

    def _sample(self, index):
        try:
            return self.dataset[index]
        except Exception as error:
            _note(error, f"the sample is number {index}")
            raise

    def _stream_tasks(self):
        samples = iter(self.dataset)

        def batch():
            if self.batch_size is None:
                return next(samples, _END)
            read = list(itertools.islice(samples, self.batch_size))
            return read if len(read) == self.batch_size or (read and not self.drop_last) else _END

        return itertools.repeat(batch)

    def _finish(self, read):
        """A batch of what a task has read, where it is wanted."""
        if read is _END:
            return _END
        batch = read if self._native else self.collate_fn(read)
        if self.pin_memory and _C.cuda_is_available():
            batch = each_tensor(batch, lambda tensor: tensor.pin_memory())
        if self.device is not None:
            batch = each_tensor(batch, lambda tensor: tensor.to(self.device, non_blocking=True))
        return batch

    def _read(self, tasks, epoch):
        """The batches of an epoch, in the order of their tasks."""
        if self.num_workers == 0:
            for number, task in enumerate(tasks):
                batch = self._run(task, epoch, number)
                if batch is _END:
                    return
                yield batch
            return
        mode, numbers = _C.is_grad_enabled(), itertools.count()
        seed = self._seed_of_pass(self.generator) if self.seed is None else self.seed * 1_000_003 + epoch

        def start():
            worker = next(numbers)
            if not self._streams:
                _worker.info = WorkerInfo(worker, self.num_workers, seed + worker, self.dataset)
            _worker.generator = _C._OwnGenerator(seed + worker)
            set_grad_enabled(mode)
            if self.worker_init_fn:
                self.worker_init_fn(worker)

        def run(task, number):
            if not self._streams:
                _C.manual_seed((seed + (number + 1) * 0x9E3779B97F4A7C15) % 2**64)  # whichever worker reads the batch
            return self._run(task, epoch, number)

        workers = 1 if self._streams else self.num_workers
        pool = concurrent.futures.ThreadPoolExecutor(workers, "DataLoader", start)
        calls = (pool.submit(run, task, number) for number, task in enumerate(tasks))
        ahead = collections.deque()
        try:
            ahead.extend(itertools.islice(calls, self.num_workers * self.prefetch_factor))
            while ahead:
                batch = ahead.popleft().result(self.timeout or None)
                if batch is _END:
                    return
                ahead.extend(itertools.islice(calls, 1))
                yield batch
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, task, epoch, number):
        try:
            return self._finish(task())
        except Exception as error:
            _note(error, f"DataLoader: epoch {epoch}, batch {number}")
            raise


_END = object()


def _note(error, text):
    if hasattr(error, "add_note"):
        error.add_note(text)

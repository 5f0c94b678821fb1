"""Datasets, samplers and the DataLoader: samples of every form, orders, workers, and errors from inside."""

import collections
import os
import signal
import threading
import time
import unittest

import tern as torch
from tern.utils.data import (
    BatchSampler, ChainDataset, ConcatDataset, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler,
    SequentialSampler, StackDataset, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler, get_worker_info,
    random_split)

Pair = collections.namedtuple("Pair", "a b")


class Squares(Dataset):
    def __init__(self, size, failing=None):
        self.size, self.failing = size, failing

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index == self.failing:
            raise KeyError("boom")
        return {"x": torch.full((2,), float(index)), "y": index * index}


class Numbers(IterableDataset):
    def __init__(self, *range_):
        self.range = range(*range_)

    def __iter__(self):
        assert get_worker_info() is None
        return iter(self.range)


def ys(loader):
    return [batch["y"].tolist() for batch in loader]


class Forms(unittest.TestCase):
    def one(self, samples, **options):
        return next(iter(DataLoader(samples, batch_size=len(samples), **options)))

    def test_what_default_collate_makes(self):
        self.assertEqual(self.one([1, 2]).dtype, torch.int64)
        self.assertEqual(self.one([0.5, 1.5]).dtype, torch.float64)
        self.assertEqual(self.one([True, False]).dtype, torch.bool)
        self.assertEqual(self.one(["a", "b"]), ["a", "b"])
        x, (y, z) = self.one([(torch.ones(3), (1, "p")), (torch.zeros(3), (2, "q"))])
        self.assertEqual((x.shape, y.tolist(), list(z)), ((2, 3), [1, 2], ["p", "q"]))
        self.assertEqual(self.one([Pair(1, 2), Pair(3, 4)]).b.tolist(), [2, 4])
        self.assertEqual(self.one([{"a": 1}, {"a": 2}])["a"].tolist(), [1, 2])
        with self.assertRaisesRegex(TypeError, "NoneType"):
            self.one([None, None])
        with self.assertRaisesRegex(RuntimeError, "equal size"):
            self.one([torch.ones(2), torch.ones(3)])

    def test_collate_fn_may_return_anything(self):
        def pad(batch):
            sequences, labels = zip(*batch)
            return torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True), list(labels), {"n": len(batch)}

        loader = DataLoader([(torch.arange(n + 1), str(n)) for n in range(5)], batch_size=3, collate_fn=pad)
        x, labels, more = next(iter(loader))
        self.assertEqual((x.tolist(), labels, more), ([[0, 0, 0], [0, 1, 0], [0, 1, 2]], ["0", "1", "2"], {"n": 3}))

    def test_without_batches(self):
        x = next(iter(DataLoader(TensorDataset(torch.arange(3), torch.arange(3)), batch_size=None)))
        self.assertEqual([part.shape for part in x], [(), ()])

    def test_native_datasets(self):
        data = TensorDataset(torch.arange(10), torch.arange(10) * 2)
        self.assertIsInstance(data, Dataset)
        self.assertEqual([part.item() for part in data[-1]], [9, 18])
        self.assertEqual(data[2:4][1].tolist(), [4, 6])
        self.assertRaises(IndexError, lambda: data[10])
        (x,) = next(iter(DataLoader(TensorDataset(torch.arange(4)), batch_size=4)))
        self.assertEqual(x.tolist(), [0, 1, 2, 3])


class Orders(unittest.TestCase):
    def test_samplers(self):
        data = TensorDataset(torch.arange(10))
        self.assertEqual(list(BatchSampler(SequentialSampler(data), 4, False)), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.assertEqual(len(BatchSampler(RandomSampler(data), 4, True)), 2)
        self.assertEqual(sorted(RandomSampler(data)), list(range(10)))
        self.assertEqual(len(list(RandomSampler(data, replacement=True, num_samples=25))), 25)
        self.assertEqual(sorted(SubsetRandomSampler([5, 7])), [5, 7])
        self.assertEqual(list(WeightedRandomSampler([0, 0, 1.0], 4)), [2, 2, 2, 2])

        class Own(Sampler):
            def __iter__(self):
                return iter([3, 1])

        self.assertEqual([x.tolist() for (x,) in DataLoader(data, sampler=Own(), batch_size=2)], [[3, 1]])
        self.assertEqual([x.tolist() for (x,) in DataLoader(data, batch_sampler=[[0, 1], [2]])], [[0, 1], [2]])

    def test_shuffling(self):
        torch.manual_seed(5)
        first, second = ys(DataLoader(Squares(20), 5, shuffle=True)), ys(DataLoader(Squares(20), 5, shuffle=True))
        torch.manual_seed(5)
        self.assertEqual(ys(DataLoader(Squares(20), 5, shuffle=True)), first)
        self.assertNotEqual(first, second)
        a, b = (DataLoader(Squares(20), 5, shuffle=True, seed=1, num_workers=workers) for workers in (0, 3))
        for _ in range(2):
            self.assertEqual(ys(a), ys(b))

    def test_parts(self):
        data = TensorDataset(torch.arange(10))
        self.assertEqual([len(part) for part in random_split(data, [0.5, 0.3, 0.2])], [5, 3, 2])
        a, b = random_split(data, [7, 3], generator=torch.Generator().manual_seed(1))
        self.assertEqual(sorted(a.indices + b.indices), list(range(10)))
        self.assertRaises(ValueError, random_split, data, [5, 3])
        joined = data + Subset(data, [1, 3])
        self.assertIsInstance(joined, ConcatDataset)
        self.assertEqual((len(joined), joined[-1][0].item(), joined[10][0].item()), (12, 3, 1))
        self.assertEqual(StackDataset(data, data)[2][1][0].item(), 2)

    def test_arguments(self):
        data = TensorDataset(torch.arange(4))
        for wrong in (dict(sampler=[0], shuffle=True), dict(batch_sampler=[[0]], batch_size=2), dict(num_workers=-1),
                      dict(batch_size=0), dict(prefetch_factor=0), dict(batch_size=None, drop_last=True)):
            with self.assertRaises(ValueError, msg=wrong):
                DataLoader(data, **wrong)
        self.assertRaises(TypeError, DataLoader, data, batchsize=2)
        self.assertRaises(TypeError, DataLoader, 3)
        self.assertRaises(ValueError, DataLoader, Numbers(3), shuffle=True)


class Workers(unittest.TestCase):
    def test_order_and_length(self):
        loader = DataLoader(Squares(11), batch_size=2, num_workers=3, drop_last=True)
        self.assertEqual(len(loader), 5)
        self.assertEqual(ys(loader), [[0, 1], [4, 9], [16, 25], [36, 49], [64, 81]])

    def test_streams(self):
        for workers in (0, 2):
            self.assertEqual([b.tolist() for b in DataLoader(Numbers(3, 8), batch_size=2, num_workers=workers)],
                             [[3, 4], [5, 6], [7]])
        self.assertEqual([int(x) for x in DataLoader(ChainDataset([Numbers(2), Numbers(5, 6)]))], [0, 1, 5])
        self.assertRaises(TypeError, len, DataLoader(Numbers(3)))

    def test_exceptions_come_at_their_turn(self):
        for workers in (0, 2):
            loader, seen = DataLoader(Squares(8, failing=5), batch_size=2, num_workers=workers), []
            with self.assertRaises(KeyError) as raised:
                seen.extend(loader)
            self.assertEqual(len(seen), 2)
            if hasattr(raised.exception, "__notes__"):
                self.assertEqual(raised.exception.__notes__, ["the sample is number 5", "DataLoader: epoch 0, batch 2"])
            self.assertEqual(next(iter(loader))["y"].tolist(), [0, 1])

    def test_leaving_early(self):
        loader, threads = DataLoader(Squares(100), batch_size=2, num_workers=2), threading.active_count()
        for _ in range(20):
            for _ in loader:
                break
        self.assertLessEqual(threading.active_count(), threads + 2)

    def test_interrupt(self):
        class Slow(Squares):
            def __getitem__(self, index):
                time.sleep(0.005)
                return super().__getitem__(index)

        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in DataLoader(Slow(10000), batch_size=4, num_workers=2):
                pass

    def test_info_and_start(self):
        started = []

        class Telling(Squares):
            def __getitem__(self, index):
                return get_worker_info().num_workers

        loader = DataLoader(Telling(8), batch_size=4, num_workers=2, worker_init_fn=started.append)
        self.assertEqual([batch.tolist() for batch in loader], [[2] * 4] * 2)
        self.assertIn(0, started)


if __name__ == "__main__":
    unittest.main()

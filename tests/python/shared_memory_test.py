"""Tensors and networks in memory that processes share."""

import gc
import os
import pickle
import unittest

import tern
import tern.multiprocessing as multiprocessing
from tern import nn


def fill(network, counts, value):
    """What another process does."""
    assert all(parameter.is_shared() for parameter in network.parameters())
    with tern.no_grad():
        for parameter in network.parameters():
            parameter.fill_(value)
    counts[1:] += 5


def receive(queue, answer):
    tensor = queue.get()
    tensor += 1
    answer.put((tensor.is_shared(), tensor.tolist()))


class SharedMemory(unittest.TestCase):
    def test_processes_see_what_others_write(self):
        for method in ("spawn", "fork"):
            network, counts = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), tern.zeros(4, dtype=tern.int64)
            weight = network[0].weight
            self.assertIs(network.share_memory(), network)
            self.assertIs(counts.share_memory_(), counts)
            self.assertTrue(counts.is_shared() and network[1].running_mean.is_shared())
            process = multiprocessing.get_context(method).Process(target=fill, args=(network, counts, 3.0))
            process.start()
            process.join()
            self.assertEqual(process.exitcode, 0)
            self.assertIs(network[0].weight, weight)
            self.assertEqual(weight.tolist(), [[3, 3]] * 3)
            self.assertEqual(counts.tolist(), [0, 5, 5, 5])
            network(tern.ones(4, 2)).sum().backward()
            self.assertIsNotNone(weight.grad)

    def test_through_a_queue(self):
        context = multiprocessing.get_context("spawn")
        queue, answer = context.Queue(), context.Queue()
        process = context.Process(target=receive, args=(queue, answer))
        process.start()
        shared, copied = tern.zeros(2, 3).share_memory_(), tern.zeros(2)
        queue.put(shared[1])
        self.assertEqual(answer.get(timeout=60), (True, [1, 1, 1]))
        process.join()
        self.assertEqual(shared.tolist(), [[0, 0, 0], [1, 1, 1]])
        self.assertFalse(copied.is_shared())

    def test_memory_goes_with_the_last_tensor(self):
        before = len(os.listdir("/proc/self/fd"))
        tensor = tern.ones(1000).share_memory_()
        view, again = tensor[:10], tensor.share_memory_()
        self.assertGreater(len(os.listdir("/proc/self/fd")), before)
        del tensor, again
        gc.collect()
        self.assertEqual(view.sum().item(), 10)
        del view
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_pickle_in_a_file_has_the_numbers(self):
        tensor = tern.arange(3.0).share_memory_()
        self.assertEqual(pickle.loads(pickle.dumps(tensor)).tolist(), [0, 1, 2])
        self.assertFalse(pickle.loads(pickle.dumps(tensor)).is_shared())

    def test_what_is_gone_says_so(self):
        with self.assertRaisesRegex(tern.DataError, "the process that sent it has ended"):
            tern.shared_memory._open(2**30, 3, 1, 64, 0, tern.float32, (2,), False, False)

    def test_empty_and_tied(self):
        network = nn.Linear(0, 2, bias=False)
        self.assertEqual(network.share_memory().weight.shape, (2, 0))
        first, second = nn.Linear(3, 3), nn.Linear(3, 3)
        second.weight = first.weight
        both = nn.Sequential(first, second).share_memory()
        self.assertIs(both[0].weight, both[1].weight)


if __name__ == "__main__":
    unittest.main()

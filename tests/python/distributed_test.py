"""Several processes: operations of groups, in threads that take their parts; scripts and functions that are started as processes;
and that a network trained by all is the one that PyTorch's processes train."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

import tern as torch
from tern import distributed as dist, nn

SIZE = 3


def on_each(function):
    return dist.simulate(SIZE, function, timeout=60)


class Operations(unittest.TestCase):
    def test_every_operation(self):
        def run():
            rank, others = dist.get_rank(), [[float(r)] * 2 for r in range(SIZE)]
            self.assertEqual((dist.get_world_size(), dist.group.WORLD.size()), (SIZE, SIZE))
            own = torch.full((2,), float(rank))

            for op, expected in ((dist.ReduceOp.SUM, 3), (dist.ReduceOp.AVG, 1), (dist.ReduceOp.MAX, 2),
                                 (dist.ReduceOp.MIN, 0), (dist.ReduceOp.PRODUCT, 0)):
                x = own.clone()
                self.assertIsNone(dist.all_reduce(x, op))
                self.assertEqual(x.tolist(), [expected] * 2)
            x = torch.zeros(2, 2).t()
            x[0] = float(rank)  # not dense
            work = dist.all_reduce(x.t()[0:1], async_op=True)
            self.assertTrue(work.wait())
            self.assertTrue(work.is_completed())
            self.assertEqual(x.tolist(), [[3, rank], [0, 0]])

            x = own.clone()
            dist.broadcast(x, src=2)
            self.assertEqual(x.tolist(), [2, 2])
            x = own.clone()
            dist.reduce(x, dst=1)
            self.assertEqual(x.tolist(), [3, 3] if rank == 1 else [rank] * 2)
            gathered = [torch.empty(2) for _ in range(SIZE)]
            dist.all_gather(gathered, own)
            self.assertEqual([t.tolist() for t in gathered], others)
            joined = torch.empty(SIZE * 2)
            dist.all_gather_into_tensor(joined, own)
            self.assertEqual(joined.tolist(), sum(others, []))
            gathered = [torch.empty(2) for _ in range(SIZE)]
            dist.gather(own, gathered if rank == 1 else None, dst=1)
            self.assertEqual([t.tolist() for t in gathered] if rank == 1 else others, others)
            x = torch.empty(2)
            dist.scatter(x, [torch.tensor(t) for t in others] if rank == 0 else None, src=0)
            self.assertEqual(x.tolist(), others[rank])
            table = [torch.full((2,), 10.0 * rank + i) for i in range(SIZE)]
            dist.reduce_scatter(x, table)
            self.assertEqual(x.tolist(), [30.0 + 3 * rank] * 2)
            out = torch.empty(2)
            dist.reduce_scatter_tensor(out, torch.cat(table))
            self.assertEqual(out.tolist(), x.tolist())
            places = [torch.empty(2) for _ in range(SIZE)]
            dist.all_to_all(places, table)
            self.assertEqual([t[0].item() for t in places], [10.0 * r + rank for r in range(SIZE)])
            out = torch.empty(SIZE)
            dist.all_to_all_single(out, torch.arange(SIZE) + 10.0 * rank)
            self.assertEqual(out.tolist(), [10.0 * r + rank for r in range(SIZE)])
            dist.barrier()
            return rank

        self.assertEqual(on_each(run), list(range(SIZE)))

    def test_messages_and_groups_of_some(self):
        def run():
            rank = dist.get_rank()
            x = torch.empty(2)
            work = dist.irecv(x, src=(rank - 1) % SIZE)
            dist.send(torch.full((2,), float(rank)), dst=(rank + 1) % SIZE)
            work.wait()
            self.assertEqual(x.tolist(), [(rank - 1) % SIZE] * 2)

            x, mine = torch.empty(2), torch.full((2,), 10.0 + rank)
            works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, (rank - 1) % SIZE),
                                            dist.P2POp(dist.isend, mine, (rank + 1) % SIZE)])
            self.assertTrue(all(work.wait() for work in works))
            self.assertEqual(x.tolist(), [10.0 + (rank - 1) % SIZE] * 2)
            with self.assertRaises(RuntimeError):
                dist.P2POp(dist.broadcast, x, 0)

            some = dist.new_group([2, 0])
            self.assertEqual((dist.get_rank(some), dist.get_world_size(some)), ((-1, -1) if rank == 1 else (rank // 2, 2)))
            x = torch.tensor([1.0 + rank])
            dist.all_reduce(x, group=some)
            self.assertEqual(x.item(), 2 if rank == 1 else 4)
            dist.broadcast(x, src=2, group=some)  # a rank among all
            if rank != 1:
                self.assertEqual((dist.get_global_rank(some, 1), dist.get_group_rank(some, 2)), (2, 1))
                with self.assertRaisesRegex(ValueError, "rank 1 is not in"):
                    dist.broadcast(x, src=1, group=some)

        on_each(run)

    def test_objects_are_values_and_run_nothing(self):
        def run():
            rank = dist.get_rank()
            mine = {"rank": rank, "x": torch.full((rank,), 1.0), "names": ["a"] * rank}
            objects = [None] * SIZE
            dist.all_gather_object(objects, mine)
            self.assertEqual([o["rank"] for o in objects], list(range(SIZE)))
            self.assertEqual([o["x"].numel() for o in objects], list(range(SIZE)))
            values = [rank, "text"]
            dist.broadcast_object_list(values, src=1)
            self.assertEqual(values, [1, "text"])
            out = [None]
            dist.scatter_object_list(out, [{"for": r} for r in range(SIZE)] if rank == 0 else None)
            self.assertEqual(out, [{"for": rank}])
            gathered = [None] * SIZE
            dist.gather_object(rank * 2, gathered if rank == 0 else None)
            self.assertEqual(gathered, [0, 2, 4] if rank == 0 else [None] * SIZE)
            if rank == 0:
                dist.send_object_list([mine, "text"], dst=2)
            elif rank == 2:
                received = [None, None]
                self.assertEqual(dist.recv_object_list(received, src=0), 0)
                self.assertEqual((received[0]["rank"], received[1]), (0, "text"))

        on_each(run)
        with self.assertRaises(TypeError):
            on_each(lambda: dist.all_gather_object([None] * SIZE, subprocess.Popen))

    def test_sums_have_gradients(self):
        def run():
            x = torch.tensor([1.0 + dist.get_rank()], requires_grad=True)
            (dist.nn.functional.all_reduce(x) * (1 + dist.get_rank())).backward()
            return x.grad.item()

        self.assertEqual(on_each(run), [6, 6, 6])

    def test_mistakes_are_told(self):
        with self.assertRaisesRegex(ValueError, "Default process group has not been initialized"):
            dist.barrier()
        with self.assertRaisesRegex(ValueError, "'fast' is no backend"):
            dist.init_process_group("fast")
        with self.assertRaisesRegex(torch.DistributedError, "rank 0 calls barrier, rank 1 all_reduce"):
            on_each(lambda: dist.barrier() if dist.get_rank() == 0 else dist.all_reduce(torch.ones(2)))
        with self.assertRaisesRegex(KeyError, "mine"):  # and not what the others say of its end
            def fail():
                if dist.get_rank() == 1:
                    raise KeyError("mine")
                dist.barrier()
            on_each(fail)
        with self.assertRaisesRegex(ValueError, "expected a list of 3 tensors"):
            on_each(lambda: dist.all_gather([torch.ones(1)], torch.ones(1)))

    def test_alone(self):
        dist.init_process_group("gloo")
        try:
            self.assertTrue(dist.is_initialized())
            self.assertEqual((dist.get_rank(), dist.get_world_size(), dist.get_backend()), (0, 1, "gloo"))
            with self.assertRaisesRegex(RuntimeError, "twice"):
                dist.init_process_group()
            x = torch.ones(2)
            dist.all_reduce(x)
            self.assertEqual(x.tolist(), [1, 1])
        finally:
            dist.destroy_process_group()
        self.assertFalse(dist.is_initialized())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(8, 2)
        self.spare = nn.Linear(8, 2)

    def forward(self, x, use_spare=False):
        h = torch.relu(self.norm(self.hidden(x)))
        return self.spare(h) if use_spare else self.out(h)


class Data(unittest.TestCase):
    def test_parallel_training_is_that_of_the_whole_batch(self):
        torch.manual_seed(1)
        alone = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()
        start = {name: value.clone() for name, value in alone.state_dict().items()}
        x, y = torch.randn(6, 4).double(), torch.randint(0, 2, (6,))

        def train(net, x, y):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            for _ in range(3):
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(x), y).backward()
                optimizer.step()

        train(alone, x, y)

        def run():
            rank = dist.get_rank()
            net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()
            if rank == 0:
                net.load_state_dict(start)
            model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.0001)
            self.assertEqual(list(model.state_dict()), ["module." + name for name in start])
            train(model, x[2 * rank:2 * rank + 2], y[2 * rank:2 * rank + 2])
            return net.state_dict()

        for state in on_each(run):
            for name, value in alone.state_dict().items():
                self.assertLess((state[name] - value).abs().max().item(), 1e-12)

    def test_modules_of_python_accumulate_and_leave_parts_out(self):
        def run():
            net = Net()
            model = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
            x = torch.full((5, 4), 1.0 + dist.get_rank()) + torch.randn(5, 4)
            with model.no_sync():
                model(x).sum().backward()
            own = net.out.bias.grad.clone()
            self.assertIsNone(net.spare.weight.grad)
            model(x, use_spare=dist.get_rank() == 0).sum().backward()
            self.assertIsNotNone(net.spare.weight.grad)  # one of the others has used it
            both = [None] * SIZE
            dist.all_gather_object(both, net.out.bias.grad.tolist())
            self.assertEqual(both, [both[0]] * SIZE)
            self.assertEqual(own.tolist(), [5, 5])
            return net.norm.running_mean.tolist()

        on_each(run)

    def test_batch_norm_over_all(self):
        torch.manual_seed(2)
        x = torch.randn(6, 3)
        whole = nn.BatchNorm1d(3)(x)

        def run():
            net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3)))
            rank = dist.get_rank()
            part = nn.parallel.DistributedDataParallel(net)(x[2 * rank:2 * rank + 2])
            return (part - whole[2 * rank:2 * rank + 2]).abs().max().item()

        self.assertLess(max(on_each(run)), 1e-5)

    def test_sampler_has_the_part_of_this_process(self):
        data = torch.utils.data.TensorDataset(torch.arange(9.0))

        def run():
            sampler = torch.utils.data.DistributedSampler(data, shuffle=False)
            return [int(i) for i in sampler]

        self.assertEqual(on_each(run), [[0, 3, 6], [1, 4, 7], [2, 5, 8]])


def start(*command, **environment):
    own = {**os.environ, **environment}
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        own.pop(name, None)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=own)


# What runs in PyTorch too, by gloo, started in the same way.
TRAINING = """
    import os, sys
    import {package} as torch
    import {package}.distributed as dist
    from {package} import nn
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    net.load_state_dict(torch.load(sys.argv[1], weights_only=True))
    model = nn.parallel.DistributedDataParallel(net)
    data = torch.load(sys.argv[2], weights_only=True)
    sampler = torch.utils.data.distributed.DistributedSampler(range(len(data)), shuffle=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for first in range(0, len(data) // size, 2):
            index = list(sampler)[first:first + 2]
            optimizer.zero_grad()
            x = torch.stack([data[i] for i in index])
            model(x).pow(2).mean().backward()
            optimizer.step()
    total = torch.ones(1) * (rank + 1)
    dist.all_reduce(total)
    assert total.item() == size * (size + 1) / 2
    if rank == 0:
        torch.save(model.state_dict(), sys.argv[3])
    dist.destroy_process_group()
"""


SPAWNED = """
    import sys
    import tern as torch
    import tern.distributed as dist
    import tern.multiprocessing as mp

    def run(rank, size, address, fails):
        dist.init_process_group("gloo", init_method=address, rank=rank, world_size=size)
        x = torch.tensor([float(rank)])
        dist.all_reduce(x)
        sys.stdout.write(f"{x.item()}\\n")  # in one piece
        sys.stdout.flush()
        if fails and rank == 1:
            raise KeyError("of rank one")
        dist.barrier()
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(run, args=(2, sys.argv[1], len(sys.argv) > 2), nprocs=2)
"""


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def script(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(textwrap.dedent(text))
        return self.path(name)

    def test_a_script_trains_as_by_pytorch(self):
        torch.manual_seed(0)
        torch.save(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).state_dict(), self.path("start.pt"))
        torch.save(torch.randn(8, 4), self.path("data.pt"))
        results = []
        for package in ("tern", "torch"):
            script = self.script(f"train_{package}.py", TRAINING.format(package=package))
            done = start(sys.executable, "-m", "tern.distributed.run", "--nproc_per_node=2", script, self.path("start.pt"), self.path("data.pt"), self.path(package + ".pt"), OMP_NUM_THREADS="1")
            self.assertEqual(done.returncode, 0, done.stderr)
            results.append(torch.load(self.path(package + ".pt")))
        ours, theirs = results
        self.assertEqual(list(ours), list(theirs))
        for name in ours:
            self.assertLess((ours[name] - theirs[name]).abs().max().item(), 1e-6)

    def test_one_that_fails_ends_the_others(self):
        script = self.script("fail.py", """
            import tern.distributed as dist
            dist.init_process_group()
            print("rank", dist.get_rank(), flush=True)
            if dist.get_rank() == 1:
                raise ValueError("of rank one")
            dist.barrier()
        """)
        done = start(sys.executable, "-m", "tern.distributed.run", "--nproc-per-node", "2", "--tag-output", script)
        self.assertEqual(done.returncode, 1)
        self.assertIn("[0] rank 0\n", done.stdout)
        self.assertIn("[1] ValueError: of rank one", done.stderr)
        self.assertIn("[0] tern.DistributedError: rank 1 has ended", done.stderr)
        self.assertRegex(done.stderr, "tern.distributed.run: rank [01] ended with exit code 1")

    def test_spawn(self):
        script = self.script("spawned.py", SPAWNED)
        with reserved_port() as port:
            for address in f"tcp://localhost:{port}", "file://" + self.path("meeting"):
                done = start(sys.executable, script, address)
                self.assertEqual((done.returncode, done.stdout), (0, "1.0\n1.0\n"), done.stderr)
            done = start(sys.executable, script, f"tcp://localhost:{port}", "fails")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "(?s)ProcessRaisedException: .*Process 1 terminated.*KeyError: 'of rank one'")


@contextlib.contextmanager
def reserved_port():
    """A port at which a group may meet, and which nobody else is given meanwhile."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("", 0))
        yield kept.getsockname()[1]


if __name__ == "__main__":
    unittest.main()

"""Networks that are divided over processes: fully_shard, FullyShardedDataParallel, their whole states, and the functions that
must see all pieces. Threads take the parts of processes."""

import functools
import io
import tempfile
import threading
import unittest

import tern as torch
from tern import distributed as dist, nn
from tern.distributed import fsdp
from tern.distributed import checkpoint as dcp
from tern.distributed.checkpoint import state_dict as states
from tern.distributed.device_mesh import init_device_mesh

SIZE = 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(6, 13), nn.Linear(13, 6)
        self.scale = nn.Parameter(torch.ones(6))
        self.shapes = []

    def forward(self, x):
        self.shapes.append(tuple(self.scale.shape) + tuple(self.wide.weight.shape))
        return x + self.scale * self.narrow(torch.relu(self.wide(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 7)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def features(self, x):
        return self.embedding(x)


lock = threading.Lock()  # the threads share one generator


def make():
    with lock:
        torch.manual_seed(5)
        return Net()


def divide(net, **options):
    for block in net.blocks:
        fsdp.fully_shard(block, **options)
    return fsdp.fully_shard(net, **options)


INDICES = torch.arange(40, device="cpu").reshape(8, 5) * 3 % 7  # as all that the threads make


def train(model, optimizer, steps=3, clip=None):
    for step in range(steps):
        optimizer.zero_grad()
        row = dist.get_rank() + step
        nn.functional.cross_entropy(model(INDICES[row]), INDICES[row + 1]).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()


def by_ddp(**options):
    """What DistributedDataParallel makes of the network."""
    def run():
        net = make()
        model = nn.parallel.DistributedDataParallel(net, broadcast_buffers=False)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        train(model, optimizer, **options)
        return net.state_dict(), optimizer.state_dict()

    return dist.simulate(SIZE, run, timeout=60)[0]


class FullyShard(unittest.TestCase):
    def same(self, got, expected):
        self.assertEqual(list(got), list(expected))
        for name, value in expected.items():
            if "running" not in name and "num_batches" not in name:  # of each process' own batches
                self.assertTrue(torch.equal(got[name], value), name)

    def test_trains_as_whole_networks_do(self):
        for clip in (None, 0.1):
            expected, expected_optimizer = by_ddp(clip=clip)

            def run():
                net = divide(make())
                self.assertIsInstance(net, fsdp.FSDPModule)
                self.assertIsInstance(net, Net)
                self.assertEqual(type(net).__name__, "FSDPNet")
                self.assertIsInstance(net.blocks[0], fsdp.FSDPModule)
                optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
                train(net, optimizer, clip=clip)
                self.assertEqual(net.blocks[0].shapes, [(6, 13, 6)] * 3)
                self.assertEqual(net.blocks[0].wide.weight.dim(), 1)
                full = states.StateDictOptions(full_state_dict=True)
                return (net, sum(p.numel() for p in net.parameters()), *states.get_state_dict(net, optimizer, options=full))

            results = dist.simulate(SIZE, run, timeout=60)
            numel = sum(value.numel() for name, value in expected.items() if not name.startswith("norm.r"))
            self.assertLess(max(own for _, own, _, _ in results), numel / SIZE + 100)
            for _, _, model, optimizer in results:
                if clip is None:
                    self.same(model, expected)
                else:
                    for name in expected:
                        if name.endswith("weight"):
                            self.assertLess((model[name] - expected[name]).abs().max().item(), 1e-6)
                names = [name for name, _ in Net().named_parameters()]
                self.assertEqual(optimizer["param_groups"][0]["params"], names)
                for number, name in enumerate(names):
                    self.assertEqual(optimizer["state"][name]["exp_avg"].shape, expected_optimizer["state"][number]["exp_avg"].shape)

    def test_states_go_to_files_and_other_numbers_of_processes(self):
        def save():
            net = divide(make())
            optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
            train(net, optimizer)
            options = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
            model, optimizer_state = states.get_state_dict(net, optimizer, options=options)
            self.assertEqual((bool(model), bool(optimizer_state)), (dist.get_rank() == 0,) * 2)
            if dist.get_rank() == 0:
                torch.save({"model": model, "optimizer": optimizer_state}, file)
            train(net, optimizer)
            return states.get_model_state_dict(net, options=states.StateDictOptions(full_state_dict=True))

        file = io.BytesIO()
        after = dist.simulate(SIZE, save, timeout=60)[0]

        def load(on_first):
            file.seek(0)
            net = divide(Net())
            optimizer = torch.optim.Adam(net.parameters(), lr=0.5)
            saved = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
            options = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=on_first)
            has_it = not on_first or dist.get_rank() == 0
            keys = states.set_model_state_dict(net, saved["model"] if has_it else {}, options=options)
            self.assertEqual(str(keys), "<All keys matched successfully>")
            states.set_optimizer_state_dict(net, optimizer, saved["optimizer"] if has_it else {}, options=options)
            train(net, optimizer)
            return states.get_model_state_dict(net, options=states.StateDictOptions(full_state_dict=True))

        for on_first in (False, True):
            for result in dist.simulate(SIZE, functools.partial(load, on_first), timeout=60):
                self.same(result, after)

        alone = Net()  # without any processes
        alone.load_state_dict(torch.load(io.BytesIO(file.getvalue()))["model"])

        def fails():
            net = divide(Net())
            states.set_model_state_dict(net, {}, options=states.StateDictOptions(True, broadcast_from_rank0=True))

        with self.assertRaisesRegex(torch.CheckpointError, "Missing key"):
            dist.simulate(SIZE, fails, timeout=60)

    def test_checkpoints_that_all_write(self):
        def save():
            net = divide(make())
            optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
            train(net, optimizer)
            model, optimizer_state = states.get_state_dict(net, optimizer)
            dcp.save({"model": model, "optimizer": optimizer_state, "step": 3}, checkpoint_id=folder)
            dcp.save({"net": net, "optimizer": optimizer}, storage_writer=dcp.FileSystemWriter(folder + "/plain"))
            whole = states.get_model_state_dict(net, options=states.StateDictOptions(full_state_dict=True))
            train(net, optimizer)
            return whole, states.get_model_state_dict(net, options=states.StateDictOptions(full_state_dict=True))

        with tempfile.TemporaryDirectory() as folder:
            whole, after = dist.simulate(SIZE, save, timeout=60)[0]
            self.same(torch.load(folder)["model"], whole)

            def load():
                net = divide(Net())
                optimizer = torch.optim.Adam(net.parameters(), lr=0.5)
                train(net, optimizer, 1)  # the state has entries now
                model, optimizer_state = states.get_state_dict(net, optimizer)
                state = {"model": model, "optimizer": optimizer_state, "step": 0}
                dcp.load(state, checkpoint_id=folder)
                states.set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
                self.assertEqual(state["step"], 3)
                if dist.get_world_size() == SIZE:
                    train(net, optimizer)
                full = states.StateDictOptions(full_state_dict=True)
                result = states.get_model_state_dict(net, options=full)
                other = {"net": net, "optimizer": optimizer}
                dcp.load(other, checkpoint_id=folder + "/plain")
                return result, states.get_model_state_dict(net, options=full)

            for size, expected in ((SIZE, after), (2, whole)):
                for result, plain in dist.simulate(size, load, timeout=60):
                    self.same(result, expected)
                    self.same(plain, whole)

            alone = Net().cpu()  # no processes at all
            state = {"model": alone.state_dict()}
            dcp.load(state, checkpoint_id=folder)
            self.same(alone.state_dict(), whole)
            with self.assertRaisesRegex(torch.CheckpointError, "shape"):
                dcp.load({"model": {"head.bias": torch.ones(9)}}, checkpoint_id=folder)
            with self.assertRaises(ValueError):
                dcp.save({})

    def test_mixed_precision_and_gradients_of_several_backwards(self):
        def run():
            mesh = init_device_mesh("cpu", (SIZE,))
            net = fsdp.fully_shard(nn.Sequential(nn.Linear(4, 3)), mesh=mesh, mp_policy=fsdp.MixedPrecisionPolicy(
                param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32))
            seen = []
            net[0].register_forward_hook(lambda layer, args, output: seen.append((layer.weight.dtype, args[0].dtype, output.dtype)))
            x = torch.ones(2, 4) * (dist.get_rank() + 1)
            net.set_requires_gradient_sync(False)
            self.assertEqual(net(x).dtype, torch.float32)
            net(x).sum().backward()
            self.assertIsNone(net[0].weight.grad)
            net.set_requires_gradient_sync(True)
            net(x).sum().backward()
            self.assertEqual(seen, [(torch.bfloat16,) * 3] * 3)
            for grad in (net[0].weight.grad, net[0].bias.grad):
                self.assertEqual(grad.dtype, torch.float32)
            return net[0].weight.grad.tolist()

        # Two backwards of two rows of ones, twos and threes: their mean.
        self.assertEqual(sum(dist.simulate(SIZE, run, timeout=60), []), [8.0] * 12)

    def test_the_scaler_asks_all(self):
        def run():
            net = fsdp.fully_shard(nn.Linear(5, 5, bias=False))
            optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            scaler.scale(net(torch.ones(1, 5)).sum()).backward()
            if dist.get_rank() == 1:
                net.weight.grad[0] = float("inf")
            before = net.weight.detach().clone()
            scaler.step(optimizer)
            scaler.update()
            return torch.equal(before, net.weight), scaler.get_scale()

        self.assertEqual(dist.simulate(SIZE, run, timeout=60), [(True, 2.0)] * SIZE)

    def test_methods_and_mistakes(self):
        def run():
            net, text = make(), repr(Net())
            divide(net)
            self.assertEqual(repr(net).replace("FSDP", ""), text)
            self.assertEqual((net.head.in_features, net.head.out_features, net.embedding.num_embeddings), (6, 7, 7))
            with self.assertRaises(Exception):
                net.features(INDICES)
            fsdp.register_fsdp_forward_method(net, "features")
            self.assertEqual(net.features(INDICES).shape, (8, 5, 6))
            with self.assertRaisesRegex(ValueError, "divided already"):
                fsdp.fully_shard(net)
            with self.assertRaises(NotImplementedError):
                fsdp.fully_shard(nn.Linear(2, 2), ignored_params={1})
            with self.assertRaises(NotImplementedError):
                init_device_mesh("cpu", (3, 1))

            class Replaces(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.weight = nn.Parameter(torch.ones(7))

                def forward(self, x):
                    self.weight = nn.Parameter(torch.ones(7))
                    return x * self.weight

            replaces = fsdp.fully_shard(Replaces())
            replaces(torch.ones(7))
            with self.assertRaisesRegex(ValueError, "parameters were replaced"):
                replaces(torch.ones(7))

        dist.simulate(SIZE, run, timeout=60)


class Wrapper(unittest.TestCase):
    def test_trains_and_saves_as_whole_networks_do(self):
        expected, _ = by_ddp()
        policies = (None, fsdp.wrap.ModuleWrapPolicy({Block}),
                    functools.partial(fsdp.wrap.size_based_auto_wrap_policy, min_num_params=100),
                    functools.partial(fsdp.wrap.transformer_auto_wrap_policy, transformer_layer_cls={Block}))

        def run(policy):
            FSDP = fsdp.FullyShardedDataParallel
            model = FSDP(make(), auto_wrap_policy=policy)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            train(model, optimizer)
            state = model.state_dict()
            config = fsdp.FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
            with FSDP.state_dict_type(model, fsdp.StateDictType.FULL_STATE_DICT, config):
                self.assertEqual(bool(model.state_dict()), dist.get_rank() == 0)
            saved = FSDP.optim_state_dict(model, optimizer)
            other = FSDP(Net(), auto_wrap_policy=policy)
            other.load_state_dict(state)
            other_optimizer = torch.optim.Adam(other.parameters(), lr=0.01)
            other_optimizer.load_state_dict(FSDP.optim_state_dict_to_load(other, other_optimizer, saved))
            with other.no_sync():
                pass
            train(model, optimizer, 1)
            train(other, other_optimizer, 1)
            with FSDP.summon_full_params(other):
                self.assertTrue(torch.equal(model.state_dict()["head.weight"], other.module.head.weight))
                with torch.no_grad():
                    other.module.head.bias.fill_(2.0)
            self.assertEqual(other.state_dict()["head.bias"].tolist(), [2.0] * 7)
            return state, len([m for m in model.modules() if torch._C._is_fully_sharded(m)])

        for policy, units in zip(policies, (1, 3, 3, 3)):
            for state, number in dist.simulate(SIZE, functools.partial(run, policy), timeout=60):
                self.assertEqual(number, units)
                self.assertEqual(list(state), list(expected))
                for name in expected:
                    if not name.startswith(("norm.r", "norm.num")):
                        self.assertTrue(torch.equal(state[name], expected[name]), name)


if __name__ == "__main__":
    unittest.main()

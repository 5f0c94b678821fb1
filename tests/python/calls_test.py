"""How calls are read: numbers that are tensors, layers in place, hooks of layers with several results, wrong arguments; and what looks
at a program from outside: gradcheck, the profiler, seeds."""

import copy
import math
import os
import pickle
import tempfile
import unittest

import torch as pytorch

import tern
from tern import nn
from tern.utils.data import DataLoader, Dataset, get_worker_info


class Numbers(unittest.TestCase):
    def test_as_pytorch(self):
        rows = {
            "index": lambda t: list(range(5))[t.tensor(3)], "range": lambda t: list(range(t.tensor(3))),
            "item": lambda t: t.arange(4)[t.tensor(1)].item(), "slice": lambda t: t.arange(6)[t.tensor(1):t.tensor(4)].tolist(),
            "full": lambda t: t.full((2,), t.tensor(1.5)).tolist(), "zeros": lambda t: list(t.zeros(t.tensor(3), t.tensor(2)).shape),
            "one size": lambda t: list(t.zeros(t.tensor(3)).shape), "sqrt": lambda t: math.sqrt(t.tensor(4.0)),
            "format": lambda t: f"{t.tensor(1.23456):.3f} {t.tensor(7):>4d} {t.tensor(0.5)}",
            "alpha": lambda t: t.add(t.ones(2), t.ones(2), alpha=t.tensor(2.0)).tolist(),
            "clamp": lambda t: t.arange(5).clamp(min=t.tensor(1), max=t.tensor(3)).tolist(),
            "reshape": lambda t: list(t.arange(6).reshape(t.tensor(2), -1).shape),
                "view": lambda t: list(t.arange(6).view((t.tensor(3), 2)).shape),
            "split": lambda t: [list(part.shape) for part in t.arange(6).split(t.tensor(4))],
                "topk": lambda t: t.arange(6).topk(t.tensor(2))[0].tolist(),
            "fill": lambda t: t.zeros(2).fill_(t.tensor(3.0)).tolist(), "arange": lambda t: t.arange(t.tensor(3)).tolist(),
            "linear": lambda t: t.nn.Linear(int(t.tensor(2)), t.tensor(3)).weight.shape[0],
                "pow": lambda t: (t.ones(2) * 2).pow(t.tensor(2)).tolist(),
            "slope": lambda t: t.nn.functional.leaky_relu(-t.ones(1), t.tensor(0.5)).tolist(), "bool": lambda t: bool(t.tensor(0)),
        }
        for name, row in rows.items():
            with self.subTest(name):
                self.assertEqual(row(tern), row(pytorch))
        optimizer = tern.optim.SGD([nn.Parameter(tern.ones(1))], lr=tern.tensor(0.5))
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.5)
        self.assertEqual(tern.ones(2, 3).sum(dim=tern.tensor(1)).tolist(), [3, 3])

    def test_copies(self):
        for torch in (tern, pytorch):
            for x in (torch.ones(2), torch.nn.Parameter(torch.ones(2), requires_grad=False), torch.nn.Parameter(torch.ones(2))):
                shared, own = copy.copy(x), pickle.loads(pickle.dumps(x))
                with torch.no_grad():
                    x.fill_(3)
                self.assertEqual((shared.tolist(), own.tolist()), ([3, 3], [1, 1]))
                self.assertTrue(type(shared) is type(own) is type(x))
                self.assertTrue(shared.requires_grad == own.requires_grad == x.requires_grad)

    def test_no_numbers(self):
        for wrong in (lambda: tern.zeros(tern.tensor(1.5)), lambda: tern.zeros(tern.ones(2)), lambda: tern.full((2,), tern.ones(2)),
                      lambda: range(tern.tensor(1.5)), lambda: tern.ones(2).sum(dim=tern.tensor(0.5))):
            self.assertRaises(TypeError, wrong)


class InPlace(unittest.TestCase):
    def test_layers(self):
        rows = [("ReLU", ()), ("ReLU6", ()), ("SiLU", ()), ("Mish", ()), ("SELU", ()), ("Hardswish", ()), ("Hardsigmoid", ()),
            ("LeakyReLU", (0.2,)),
                ("ELU", (0.7,)), ("CELU", (0.7,)), ("Threshold", (0.1, 3.0)), ("Hardtanh", (-0.5, 0.5)), ("Dropout", (0.0,))]
        for name, arguments in rows:
            with self.subTest(name):
                results = []
                for torch in (tern, pytorch):
                    layer = getattr(torch.nn, name)(*arguments, inplace=True)
                    x = (torch.arange(-3, 4, dtype=torch.float32) * 0.9).requires_grad_()
                    mid = x * 1
                    out = layer(mid)
                    self.assertIs(out, mid)
                    (out * torch.arange(7)).sum().backward()
                    results.append((mid.detach(), x.grad))
                for ours, theirs in zip(*results):
                    pytorch.testing.assert_close(pytorch.tensor(ours.tolist()), theirs, rtol=1e-5, atol=1e-6)
        x = tern.ones(2)
        self.assertIs(nn.Dropout(0.5, inplace=True).eval()(x), x)
        self.assertIs(nn.Sequential(nn.ReLU(inplace=True))(x), x)
        with self.assertRaisesRegex(RuntimeError, "leaf"):
            nn.ReLU(inplace=True)(tern.ones(2, requires_grad=True))


class Hooks(unittest.TestCase):
    def test_several_results(self):
        def seen_by(torch):
            seen = []

            def kinds(value):
                return [kinds(part) for part in value] if isinstance(value, (tuple,
                    list)) else None if value is None else list(value.shape)

            for layer, arguments in ((torch.nn.LSTM(2, 3), 1), (torch.nn.GRU(2, 3), 1), (torch.nn.LSTMCell(2, 3), 1),
                (torch.nn.MultiheadAttention(2, 1), 3)):
                x = torch.ones(4, 2) if isinstance(layer, torch.nn.LSTMCell) else torch.ones(5, 4, 2)
                layer.register_forward_pre_hook(lambda module, given: seen.append((type(module).__name__, kinds(given))))
                layer.register_forward_hook(lambda module, given, output: seen.append((kinds(given), kinds(output))))
                layer(*[x] * arguments)
            layer = torch.nn.LSTM(2, 3)
            layer.register_forward_hook(lambda module, given, output: output[0] * 0)
            seen.append(layer(torch.ones(5, 4, 2)).sum().item())
            return seen

        self.assertEqual(seen_by(tern), seen_by(pytorch))

    def test_derived_and_removed(self):
        layer = type("Own", (nn.Linear,), {})(2, 2)
        seen = []
        handle = layer.register_forward_hook(lambda *given: seen.append(given))
        layer(tern.ones(1, 2))
        handle.remove()
        layer(tern.ones(1, 2))
        self.assertEqual(len(seen), 1)
        self.assertIs(seen[0][0], layer)


class WrongArguments(unittest.TestCase):
    def test_keywords(self):
        x = tern.ones(2)
        rows = [(lambda: nn.functional.linear(x, x, foo=1), r"linear\(\) got an unexpected keyword argument 'foo'"),
                (lambda: nn.Linear(2, 3, biass=False), r"Linear.__init__\(\) got an unexpected keyword argument 'biass'"),
                (lambda: x.sum(dims=0), r"sum\(\) got an unexpected keyword argument 'dims'"),
                (lambda: tern.optim.SGD([x], learning_rate=1), r"SGD.__init__\(\) got an unexpected keyword argument 'learning_rate'"),
                (lambda: nn.Linear(2, 3)(x, scale=1), r"__call__\(\) got an unexpected keyword argument 'scale'"),
                (lambda: tern.relu("text"), r"It was given \(str\)$"), (lambda: tern.cat([x], dim="a"),
                    r"It was given \(list, dim=str\)$")]
        for call, text in rows:
            with self.assertRaisesRegex(TypeError, text) as caught:
                call()
            self.assertNotIn("Invoked with", str(caught.exception))


class Outside(unittest.TestCase):
    def test_gradcheck(self):
        from tern.autograd import gradcheck, gradgradcheck
        x = tern.tensor([0.3, 0.7], dtype=tern.float64, requires_grad=True)
        self.assertTrue(gradcheck(lambda a, b: (a.sin() * b, a.exp()), (x, 3.0)))
        self.assertTrue(gradgradcheck(lambda a: a.sin() * a, x))

        class Wrong(tern.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 3

        with self.assertRaisesRegex(RuntimeError, "element|input"):
            gradcheck(Wrong.apply, (x,))
        self.assertFalse(gradcheck(Wrong.apply, (x,), raise_exception=False))
        with self.assertRaisesRegex(ValueError, "requires_grad=True"):
            gradcheck(lambda a: a, (x.detach(),))

    def test_profiler(self):
        with tern.profiler.profile(activities=[tern.profiler.ProfilerActivity.CPU]) as profile:
            nn.Linear(4, 4)(tern.ones(2, 4)).relu()
        self.assertIn("relu", {event.name for event in profile.events()})
        self.assertIn("relu", profile.key_averages().table(sort_by="cpu_time_total", row_limit=10))
        small, large = tern.ones(2), tern.ones(512, 512)
        with tern.profiler.profile() as profile:
            small.exp(), small.exp(), large.mm(large)
        for key, first in {"count": "exp", "flops": "matmul", "cpu_time": "matmul"}.items():
            self.assertRegex(profile.key_averages().table(sort_by=key, row_limit=1).splitlines()[1], first)
        with self.assertRaisesRegex(ValueError, "known are"):
            profile.key_averages().table(sort_by="cpu_memory_usage")
        self.assertTrue(all(row.count > 0 for row in profile.key_averages()))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profile.export_chrome_trace(path)
            self.assertGreater(os.path.getsize(path), 100)


class Noise(Dataset):
    def __init__(self):
        self.seeds = {}

    def __len__(self):
        return 24

    def __getitem__(self, index):
        info = get_worker_info()
        if info is not None:
            self.seeds[info.id] = info.seed
        return tern.rand(2)


class Seeds(unittest.TestCase):
    def test_the_same_numbers(self):
        def epoch(workers, seed=3, **options):
            tern.manual_seed(seed)
            return [batch.tolist() for batch in DataLoader(Noise(), batch_size=2, shuffle=True, num_workers=workers, **options)]

        expected = epoch(4)
        for workers in (1, 2, 4):
            self.assertEqual(epoch(workers), expected)
        self.assertNotEqual(epoch(4, seed=4), expected)
        self.assertEqual(len({tuple(sample) for batch in expected for sample in batch}), 24)
        self.assertEqual(epoch(2, seed=1, generator=tern.Generator().manual_seed(5)), epoch(3, seed=1,
            generator=tern.Generator().manual_seed(5)))

    def test_seeds_of_workers(self):
        tern.manual_seed(11)
        self.assertEqual(tern.initial_seed(), 11)
        given, dataset = {}, Noise()

        def start(worker):
            given[worker] = (get_worker_info().seed, tern.initial_seed())

        list(DataLoader(dataset, batch_size=1, num_workers=2, worker_init_fn=start))
        self.assertEqual(tern.initial_seed(), 11)
        for worker, (seed, initial) in given.items():
            self.assertEqual(seed, initial)
            self.assertEqual(dataset.seeds.get(worker, seed), seed)
        self.assertEqual(given[1][0] - given[0][0], 1)


if __name__ == "__main__":
    unittest.main()

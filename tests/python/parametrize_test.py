"""Parametrized tensors (torch.nn.utils.parametrize), and orthogonal weights, beside PyTorch's."""

import copy
import gc
import importlib
import pickle
import tempfile
import unittest

import torch as pytorch

import tern
import tern as torch
from tern import nn
from tern.nn.utils import parametrizations
from tern.nn.utils import parametrize as P


def modules_of(torch):
    nn = torch.nn

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    class Scaled(nn.Module):
        def __init__(self, start=2.0):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(start))

        def forward(self, x):
            return x * self.scale

    class Shifted(nn.Module):
        def forward(self, x):
            return x + 0.5

    class Product(nn.Module):
        """Of two thin matrices."""

        def forward(self, a, b):
            return a @ b

        def right_inverse(self, x):
            return x[:, :1] * 1.0, torch.ones(1, x.shape[1])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(3, 3))
            self.register_buffer("shift", torch.arange(3.0))
            self.inner = nn.Linear(3, 3)

        def forward(self, x):
            return self.inner(x @ self.gain) + self.shift

    return Symmetric, Scaled, Shifted, Product, Net


Symmetric, Scaled, Shifted, Product, Net = modules_of(tern)


def fill(net):
    for number, parameter in enumerate(net.parameters()):
        library, count = pytorch if isinstance(parameter, pytorch.Tensor) else tern, parameter.numel()
        parameter.data.copy_(library.arange(count, dtype=library.float32).reshape(tuple(parameter.shape)) / count - 0.1 * number)
    return net


def build(t, case):
    """A module of Tern's or PyTorch's with the parametrizations of a case."""
    symmetric, scaled, shifted, product, net = modules_of(t)
    register = (P if t is tern else importlib.import_module("torch.nn.utils.parametrize")).register_parametrization
    module = {"linear": lambda: t.nn.Linear(3, 3), "conv": lambda: t.nn.Conv2d(3, 2, 3), "net": net,
              "norm": lambda: t.nn.BatchNorm1d(3), "embedding": lambda: t.nn.Embedding(4, 3)}[case[0]]()
    fill(module)
    for path, name, made in case[1]:
        made = {"symmetric": symmetric, "scaled": scaled, "shifted": shifted, "product": product}[made]
        register(module.get_submodule(path), name, made())
    return module


CASES = [
    ("linear", [("", "weight", "symmetric")]), ("linear", [("", "weight", "symmetric"), ("", "weight", "scaled"), ("", "bias", "scaled")]),
    ("linear", [("", "weight", "product")]), ("conv", [("", "weight", "scaled")]),
    ("net", [("", "gain", "symmetric"), ("", "shift", "scaled"), ("inner", "weight", "scaled")]), ("net", [("", "gain", "product")]),
    ("norm", [("", "weight", "scaled"), ("", "running_mean", "shifted")]), ("embedding", [("", "weight", "scaled")]),
]


def inputs(t, case):
    if case[0] == "conv":
        return t.arange(108, dtype=t.float32).reshape(2, 3, 3, 6) / 108
    if case[0] == "embedding":
        return t.tensor([0, 3, 1])
    return t.arange(12, dtype=t.float32).reshape(4, 3) / 12


class Parametrized(unittest.TestCase):
    def close(self, ours, theirs, message=None):
        pytorch.testing.assert_close(pytorch.tensor(ours.tolist()), theirs.detach() if isinstance(theirs, pytorch.Tensor) else
                                     pytorch.tensor(theirs.tolist()), rtol=1e-3, atol=1e-4, msg=message)

    def test_names_values_gradients_and_training(self):
        for case in CASES:
            with self.subTest(case):
                ours, theirs = build(tern, case), build(pytorch, case)
                self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
                for method in ("named_parameters", "named_buffers", "named_modules"):
                    self.assertEqual([name for name, _ in getattr(ours, method)()], [name for name, _ in getattr(theirs, method)()], method)
                self.assertEqual(repr(ours).replace(", bias=True, track", ", track"), repr(theirs).replace(", bias=True, track", ", track"))
                steps = []
                for t, module in ((tern, ours), (pytorch, theirs)):
                    optimizer = t.optim.SGD(module.parameters(), lr=0.05)
                    for _ in range(3):
                        optimizer.zero_grad()
                        y = module(inputs(t, case))
                        y.square().mean().backward()
                        optimizer.step()
                    with t.no_grad():
                        steps.append((y, module.eval()(inputs(t, case))))
                for one, other in zip(*steps):
                    self.close(one, other)
                for (name, tensor), other in zip(ours.state_dict().items(), theirs.state_dict().values()):
                    self.close(tensor, other, name)

    def test_files_both_ways(self):
        for case in CASES:
            with self.subTest(case), tempfile.TemporaryDirectory() as folder:
                ours, theirs = build(tern, case), build(pytorch, case)
                pytorch.save(theirs.state_dict(), f"{folder}/theirs.pt")
                tern.save(ours.state_dict(), f"{folder}/ours.pt")
                fresh, other = build(tern, case), build(pytorch, case)
                for module in (fresh, other):
                    for parameter in module.parameters():
                        parameter.data.zero_()
                fresh.load_state_dict(tern.load(f"{folder}/theirs.pt"))
                other.load_state_dict(pytorch.load(f"{folder}/ours.pt", map_location="cpu"))
                with torch.no_grad(), pytorch.no_grad():
                    self.close(fresh.eval()(inputs(tern, case)), other.eval()(inputs(pytorch, case)))

    def test_copies(self):
        for case in CASES:
            with self.subTest(case):
                net = build(tern, case).eval()
                x = inputs(tern, case)
                expected = net(x).tolist()
                for copied in (copy.deepcopy(net), copy.copy(net)):
                    self.assertEqual(copied(x).tolist(), expected)
                    self.assertIs(type(copied), type(net))
                separate = copy.deepcopy(net)
                for parameter in separate.parameters():
                    parameter.data.zero_()
                self.assertEqual(net(x).tolist(), expected)
                del net
                gc.collect()
                self.assertEqual(separate(x).shape, copied(x).shape)

    def test_attributes(self):
        for case, name in (CASES[0], "weight"), (CASES[5], "gain"):
            module = fill(nn.Linear(3, 3)) if name == "weight" else fill(Net())
            cls, before = type(module), getattr(module, name)
            P.register_parametrization(module, name, Symmetric())
            self.assertIs(module.parametrizations[name].original, before)
            self.assertEqual((type(module).__name__, P.type_before_parametrizations(module)), (f"Parametrized{cls.__name__}", cls))
            self.assertIsInstance(module, cls)
            self.assertTrue(P.is_parametrized(module) and P.is_parametrized(module, name) and not P.is_parametrized(module, "bias"))
            value = getattr(module, name)
            self.assertEqual(value.tolist(), value.t().tolist())
            self.assertNotIsInstance(value, nn.Parameter)
            with P.cached():
                self.assertIs(getattr(module, name), getattr(module, name))
            self.assertIsNot(getattr(module, name), getattr(module, name))
            self.assertEqual(len(module.parametrizations[name]), 1)
            assigned = torch.tensor([[1., 2, 3], [2, 4, 5], [3, 5, 6]])
            setattr(module, name, assigned)
            self.assertEqual(getattr(module, name).tolist(), assigned.tolist())
            self.assertEqual(module.parametrizations[name].original.tolist(), assigned.triu().tolist())
            with self.assertRaisesRegex(ValueError, "shape"):
                setattr(module, name, torch.ones(2, 2))
            P.register_parametrization(module, name, Scaled())
            self.assertEqual(getattr(module, name).tolist(), (2 * assigned).tolist())
            with self.assertRaisesRegex(RuntimeError, "Scaled does not implement right_inverse"):
                setattr(module, name, assigned)

    def test_removed(self):
        for make in (lambda: fill(nn.Linear(3, 3)), lambda: fill(Net())):
            for leave in (True, False):
                module = make()
                name = "weight" if isinstance(module, nn.Linear) else "gain"
                names, before, cls = list(module.state_dict()), getattr(module, name), type(module)
                numbers = before.tolist()
                P.register_parametrization(module, name, Scaled())
                P.register_parametrization(module, name, Scaled(3.0))
                P.remove_parametrizations(module, name, leave_parametrized=leave)
                self.assertIs(type(module), cls)
                self.assertEqual(sorted(module.state_dict()), sorted(names))
                self.assertIs(getattr(module, name), before)
                self.assertEqual(before.tolist(), (torch.tensor(numbers) * 6).tolist() if leave else numbers)
                self.assertFalse(P.is_parametrized(module))
                module(torch.ones(2, 3)).sum().backward()
                self.assertEqual(getattr(module, name).grad.shape, (3, 3))
        module = fill(nn.Linear(3, 3))
        P.register_parametrization(module, "weight", Product())
        P.register_parametrization(module, "bias", Scaled())
        with self.assertRaisesRegex(ValueError, "sequence of tensors"):
            P.remove_parametrizations(module, "weight", leave_parametrized=False)
        value = module.weight.tolist()
        P.remove_parametrizations(module, "weight")
        self.assertEqual(module.weight.tolist(), value)
        self.assertIsInstance(module.weight, nn.Parameter)
        self.assertTrue(P.is_parametrized(module, "bias"))
        self.assertEqual(module(torch.zeros(1, 3)).tolist(), [(module.parametrizations.bias.original * 2).tolist()])
        with self.assertRaisesRegex(ValueError, "does not have a parametrization on weight"):
            P.remove_parametrizations(module, "weight")

    def test_moves_and_modes(self):
        module = P.register_parametrization(fill(nn.Linear(3, 3)), "weight", Scaled()).double().eval()
        self.assertEqual((module.weight.dtype, module(torch.ones(1, 3, dtype=torch.float64)).dtype), (torch.float64, torch.float64))
        self.assertFalse(module.parametrizations.weight[0].training)
        if torch.cuda.device_count() < 2:
            torch.cuda.simulate_gpus(2)
        module = module.float().to("cuda:0")
        x = torch.ones(4, 3, device="cuda:0")
        self.assertEqual(module(x).device, torch.device("cuda:0"))
        parallel = nn.DataParallel(nn.Sequential(module, P.register_parametrization(Net().to("cuda:0"), "gain", Symmetric().to("cuda:0"))))
        output = parallel(x)
        self.assertTrue(torch.allclose(output, parallel.module(x)))
        output.sum().backward()
        self.assertEqual(module.parametrizations.weight.original.grad.shape, (3, 3))
        self.assertIsNotNone(module.parametrizations.weight[0].scale.grad)

    def test_recurrent_layers(self):  # those of PyTorch 1 do not look at the parametrized tensor
        lstm = nn.LSTM(3, 3)
        twice = copy.deepcopy(lstm)
        twice.weight_hh_l0.data.mul_(2)
        P.register_parametrization(lstm, "weight_hh_l0", Scaled())
        x = torch.ones(4, 1, 3)
        self.assertTrue(torch.allclose(lstm(x)[0], twice(x)[0]))
        lstm(x)[0].sum().backward()
        twice(x)[0].sum().backward()
        self.assertTrue(torch.allclose(lstm.parametrizations.weight_hh_l0.original.grad, twice.weight_hh_l0.grad * 2, atol=1e-6))

    def test_inside_layers_of_cpp(self):
        layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0)
        x = torch.arange(24, dtype=torch.float32).reshape(3, 2, 4) / 24
        expected = layer(x).tolist()
        P.register_parametrization(layer.linear1, "weight", Scaled(1.0))
        gc.collect()
        self.assertTrue(P.is_parametrized(layer.linear1, "weight"))
        self.assertIn("linear1.parametrizations.weight.original", layer.state_dict())
        self.assertTrue(torch.allclose(layer(x), torch.tensor(expected), atol=1e-6))
        layer.linear1.parametrizations.weight[0].scale.data.fill_(2)
        self.assertFalse(torch.allclose(layer(x), torch.tensor(expected), atol=1e-3))
        layer(x).sum().backward()
        self.assertIsNotNone(layer.linear1.parametrizations.weight[0].scale.grad)

    def test_refused(self):
        class Wider(nn.Module):
            def forward(self, x):
                return torch.cat([x, x])

        class Halved(nn.Module):
            def forward(self, x):
                return x.half()

        class Listless(nn.Module):
            def forward(self, x):
                return x

            def right_inverse(self, x):
                return 3

        rows = [
            ("register(linear(), 'weigth', Scaled())", ValueError, "not have a parameter, a buffer, or a parametrized"),
            ("register(linear(bias=False), 'bias', Scaled())", ValueError, "does not have a parameter"),
            ("register(linear(), 'weight', Wider())", ValueError, "shape of the tensor: it is \\(3, 3\\), got \\(6, 3"),
            ("register(linear(), 'weight', Halved())", ValueError, "dtype .* unsafe=True"),
            ("register(linear(), 'weight', Listless())", ValueError, "must return a Tensor or a Sequence"),
            ("register(linear(), 'weight', lambda x: x)", TypeError, "expected an nn.Module"),
            ("register(register(linear(), 'weight', Scaled()), 'weight', Wider())", ValueError, "shape"),
            ("register(nn.LazyLinear(2), 'weight', Scaled())", ValueError, "waits for its size"),
            ("P.ParametrizationList([], torch.ones(2))", ValueError, "one or more modules"),
            ("register(parametrizations.weight_norm(linear()), 'weight', Scaled())", ValueError, "weight_norm"),
            ("pickle.dumps(register(linear(), 'weight', Scaled()))", RuntimeError, "only supported through state_dict"),
            ("tern.save(register(linear(), 'weight', Scaled()), '/nowhere')", RuntimeError, "state_dict\\(\\)"),
            ("parametrizations.orthogonal(linear(), 'bias')", ValueError, "at least 2 dimensions"),
            ("parametrizations.orthogonal(linear(), orthogonal_map='qr')", ValueError, "has to be one of"),
        ]
        names = {**globals(), "Wider": Wider, "Halved": Halved, "Listless": Listless, "register": P.register_parametrization,
                 "linear": lambda **options: nn.Linear(3, 3, **options)}
        for text, error, words in rows:
            with self.subTest(text), self.assertRaisesRegex(error, words):
                eval(text, names)
        wide = P.register_parametrization(nn.Linear(3, 3, bias=False), "weight", Wider(), unsafe=True)
        self.assertEqual((wide.weight.shape, wide(torch.ones(1, 3)).shape), ((6, 3), (1, 6)))

    def test_norms_of_cpp(self):
        for norm, hook in ((parametrizations.weight_norm, nn.utils.weight_norm), (parametrizations.spectral_norm, nn.utils.spectral_norm)):
            layer = norm(nn.Linear(3, 2)).eval()
            self.assertTrue(P.is_parametrized(layer) and P.is_parametrized(layer, "weight") and not P.is_parametrized(layer, "bias"))
            self.assertFalse(P.is_parametrized(hook(nn.Linear(3, 2))))
            expected = layer(torch.ones(1, 3))
            P.register_parametrization(layer, "bias", Scaled(1.0))
            self.assertTrue(torch.allclose(layer(torch.ones(1, 3)), expected))
            P.remove_parametrizations(layer, "weight")
            self.assertTrue(torch.allclose(layer(torch.ones(1, 3)), expected, atol=1e-6))
            self.assertEqual(sorted(layer.state_dict()), ["parametrizations.bias.0.scale", "parametrizations.bias.original", "weight"])

    def test_orthogonal(self):
        from torch.nn.utils import parametrizations as theirs_of
        for map_name in ("matrix_exp", "cayley", "householder"):
            for shape in ((4, 4), (5, 3), (3, 5)):
                for trivial in (True, False):
                    with self.subTest(map_name=map_name, shape=shape, trivial=trivial):
                        ours = parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=map_name, use_trivialization=trivial)
                        theirs = theirs_of.orthogonal(pytorch.nn.Linear(*shape), orthogonal_map=map_name, use_trivialization=trivial)
                        self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
                        self.assertEqual(repr(ours), repr(theirs))
                        with torch.no_grad():
                            learned = ours.parametrizations.weight.original
                            learned.add_(torch.randn(learned.shape).mul(0.3).tril(-1) if map_name == "householder" else
                                         torch.randn(learned.shape) * 0.3)
                        theirs.load_state_dict({name: pytorch.tensor(x.tolist()) for name, x in ours.state_dict().items()})
                        self.close(ours.weight, theirs.weight)
                        tall = ours.weight if ours.weight.shape[0] >= ours.weight.shape[1] else ours.weight.t()
                        self.close(tall.t() @ tall, pytorch.eye(tall.shape[1]))
                        for t, layer in ((tern, ours), (pytorch, theirs)):
                            layer(t.ones(2, shape[0])).square().mul(t.arange(float(shape[1]))).sum().backward()
                        pytorch.testing.assert_close(pytorch.tensor(learned.grad.tolist()), theirs.parametrizations.weight.original.grad,
                                                     rtol=1e-3, atol=1e-4)
        layer = parametrizations.orthogonal(nn.Linear(4, 4))
        wanted = tern.linalg.qr(torch.randn(4, 4))[0]
        layer.weight = wanted
        self.assertTrue(torch.allclose(layer.weight, wanted, atol=1e-5))
        layer = parametrizations.orthogonal(nn.Linear(3, 5), use_trivialization=False)
        wanted = tern.linalg.qr(torch.randn(5, 3))[0]
        layer.weight = wanted
        self.assertTrue(torch.allclose(layer.weight, wanted, atol=1e-5))


if __name__ == "__main__":
    unittest.main()

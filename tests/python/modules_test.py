"""nn.Module as it is used from Python: fields, text, copies, hooks, what is forgotten, and what must not leak or crash."""

import collections
import copy
import gc
import pickle
import unittest
import weakref

import torch as pytorch

import tern as torch
from tern import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = self.first
        self.tied = self.first.weight
        self.hidden = [nn.Linear(1, 1)]
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.first(x)


class Fields(unittest.TestCase):
    def test_lists(self):
        net = Net()
        self.assertEqual([name for name, _ in net.named_parameters()], ["tied", "first.bias"])
        self.assertEqual([name for name, _ in net.named_modules()], ["", "first"])
        self.assertEqual(len(list(net.children())), 1)
        self.assertEqual([name for name, _ in net.named_buffers()], ["mean", "scratch"])
        self.assertEqual(list(net.state_dict()), ["tied", "mean", "first.weight", "first.bias", "second.weight", "second.bias"])
        self.assertIn("first", dir(net))
        self.assertIs(net.get_submodule("first"), net.first)
        self.assertIs(net.get_parameter("first.bias"), net.first.bias)
        self.assertRaises(AttributeError, net.get_submodule, "third")

    def test_assignment(self):
        m = nn.Module()
        m.w = nn.Parameter(torch.ones(2))
        m.w.tag = "kept"
        gc.collect()
        self.assertEqual(m.w.tag, "kept")
        m.sub = nn.ReLU()
        with self.assertRaisesRegex(TypeError, "parameter"):
            m.w = torch.ones(2)
        with self.assertRaisesRegex(TypeError, "module"):
            m.sub = "text"
        m.register_buffer("b", torch.ones(2), persistent=False)
        m.b = torch.zeros(3)
        self.assertEqual(list(m.state_dict()), ["w"])
        m.w = None
        self.assertEqual(list(m.parameters()), [])
        del m.w
        self.assertFalse(hasattr(m, "w"))
        m.x = 3
        for wrong in ("", "a.b", "x"):
            self.assertRaises(KeyError, m.register_parameter, wrong, None)
        self.assertRaises(TypeError, m.register_parameter, "y", torch.ones(1))
        self.assertRaises(ValueError, setattr, m, "above", m)

    def test_text(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
                self.none = nn.ReLU()
                self.none = None

            def extra_repr(self):
                return "a=1"

        self.assertEqual(repr(Named()), "Named(\n  a=1\n  (layers): ModuleList(\n    (0-1): 2 x Linear(in_features=1, "
                                        "out_features=1, bias=True)\n    (2): ReLU()\n  )\n  (none): None\n)")

        class Own(nn.Linear):
            def __repr__(self):
                return "mine"

        self.assertEqual(repr(nn.Sequential(Own(1, 1))), "Sequential(\n  (0): mine\n)")

    def test_containers(self):
        net = nn.Sequential(collections.OrderedDict(a=nn.Linear(2, 2), b=nn.ReLU()))
        self.assertEqual(list(net[0:1].state_dict()), ["a.weight", "a.bias"])
        self.assertEqual(len(net + nn.Sequential(nn.Tanh())), 3)
        self.assertIsInstance(net.pop(-1), nn.ReLU)
        modules = nn.ModuleList([nn.ReLU()])
        modules += [nn.Tanh()]
        self.assertEqual([type(m).__name__ for m in modules], ["ReLU", "Tanh"])
        values = nn.ParameterDict({"a": torch.ones(2)})
        self.assertIsNone(values.get("b"))
        self.assertEqual(values.pop("a").shape, (2,))

    def test_lazy_layers_become_ordinary(self):
        net = nn.Sequential(nn.LazyLinear(3))
        self.assertIs(type(net[0]), nn.LazyLinear)
        layer = net[0]
        net(torch.ones(1, 2))
        self.assertIs(type(layer), nn.Linear)
        self.assertIs(next(net.children()), layer)
        del layer
        self.assertIs(type(copy.deepcopy(net)[0]), nn.Linear)

    def test_modes(self):
        class Frozen(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(2)

            def train(self, mode=True):
                super().train(mode)
                self.norm.eval()
                return self

        net = nn.Sequential(Frozen(), nn.Dropout())
        net.train()
        self.assertEqual([m.training for m in net.modules()], [True, True, False, True])
        net.training = False
        self.assertTrue(net[1].training)

    def test_overriding(self):
        class More(nn.Module):
            def __call__(self, x):
                return super().__call__(x) + 1

            def forward(self, x):
                return x

        class Scaled(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 2

        self.assertEqual(More()(torch.ones(1)).item(), 2)
        layer = Scaled(2, 1)
        x = torch.ones(1, 2)
        self.assertTrue(torch.equal(nn.Sequential(layer)(x), nn.functional.linear(x, layer.weight, layer.bias) * 2))

    def test_forgotten_init(self):
        class Forgot(nn.Module):
            def __init__(self):
                self.layer = nn.Linear(1, 1)

        self.assertRaisesRegex(AttributeError, "__init__", Forgot)
        for cls in (nn.Module, nn.Linear, Net):
            unmade = cls.__new__(cls)
            for use in (repr, lambda m: m.training, lambda m: list(m.parameters()), lambda m: m(1), lambda m: m.state_dict(),
                        lambda m: m.register_forward_hook(print), copy.deepcopy, lambda m: m.x):
                self.assertRaises((AttributeError, TypeError), use, unmade)

    def test_state_dicts(self):
        net = nn.Linear(2, 2)
        missing, unexpected = net.load_state_dict({"weight": torch.ones(2, 2), "more": torch.ones(1)}, strict=False)
        self.assertEqual((missing, unexpected), (["bias"], ["more"]))
        self.assertIs(net.state_dict(keep_vars=True)["weight"], net.weight)
        self.assertEqual(list(net.state_dict(prefix="a.")), ["a.weight", "a.bias"])
        own = collections.OrderedDict()
        net.state_dict(destination=own)
        self.assertEqual(list(own), ["weight", "bias"])

    def test_copies(self):
        net = Net()
        deep, flat = copy.deepcopy(net), copy.copy(net)
        self.assertIs(deep.first, deep.second)
        self.assertIs(deep.tied, deep.first.weight)
        self.assertIsNot(deep.first, net.first)
        self.assertIsNot(deep.hidden[0], net.hidden[0])
        self.assertIs(flat.tied, net.tied)
        tensor = pickle.loads(pickle.dumps(nn.Parameter(torch.ones(2))))
        self.assertIsInstance(tensor, nn.Parameter)
        self.assertEqual(tensor.tolist(), [1, 1])


class Hooks(unittest.TestCase):
    def test_see_and_replace_everything(self):
        class Two(nn.Module):
            def forward(self, a, b, *, k=1):
                return a + b, a * b * k

        two, seen = Two(), []
        two.register_forward_pre_hook(lambda m, args: seen.append(len(args)))
        two.register_forward_pre_hook(lambda m, args, named: (args, {"k": 5}), with_kwargs=True)
        two.register_forward_hook(lambda m, args, out: out[1])
        first = two.register_forward_hook(lambda m, args, out: seen.append(type(out)), prepend=True)
        self.assertEqual(two(torch.ones(1), torch.ones(1)).item(), 5)
        self.assertEqual(seen, [2, tuple])
        first.remove()
        with two.register_forward_pre_hook(lambda m, args: (args[0] * 2, args[1])):
            self.assertEqual(two(torch.ones(1), torch.ones(1)).item(), 10)
        self.assertEqual(two(torch.ones(1), torch.ones(1)).item(), 5)

    def test_wrong_results_and_exceptions(self):
        layer, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
        with layer.register_forward_hook(lambda *_: 3):
            self.assertEqual(layer(x), 3)  # whatever it is, as in PyTorch
        for register in (layer.register_forward_hook, layer.register_forward_pre_hook, layer.register_full_backward_hook):
            with register(lambda *_: 1 / 0), self.assertRaises(ZeroDivisionError):
                layer(x).sum().backward()

    def test_backward_after_the_module_is_gone(self):
        seen = []
        for layer in (nn.Linear(2, 2), Net()):
            layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_output[0].shape[1]))
            y = layer(torch.ones(1, 3 if isinstance(layer, Net) else 2, requires_grad=True))
            del layer
            gc.collect()
            y.sum().backward()
        self.assertEqual(seen, [2, 4])

    def test_parts_of_layers_outlive_them(self):
        kept = []
        layer = nn.TransformerEncoderLayer(8, 2)
        layer.linear1.register_forward_hook(lambda m, i, o: kept.append(m))
        layer(torch.ones(1, 2, 8))
        kept.extend(nn.TransformerEncoder(layer, 2).modules())
        layer.apply(kept.append)
        del layer
        gc.collect()
        self.assertTrue(all(repr(module) for module in kept))
        self.assertEqual(kept[0].weight.shape, (2048, 8))


class Memory(unittest.TestCase):
    def assert_collected(self, make):
        gc.collect()
        objects = [weakref.ref(make()) for _ in range(3)]
        gc.collect()
        self.assertEqual([o() for o in objects], [None] * 3)

    def test_cycles(self):
        def hook_on_itself():
            net = Net()
            net.first.register_forward_hook(lambda *_: net and None)
            net.register_full_backward_hook(lambda *_: net and None)
            net(torch.ones(1, 3)).sum().backward()
            return net

        def child_knows_parent():
            net = Net()
            net.child = Net()
            net.child.parent = [net]
            return net


        def layer_in_its_hook():
            layer = nn.Linear(2, 2)
            layer.register_forward_pre_hook(lambda *_: layer)
            return layer

        for make in (Net, hook_on_itself, child_knows_parent, layer_in_its_hook):
            with self.subTest(make.__name__):
                self.assert_collected(make)

    def test_hooks_in_copies_survive_the_collection_of_the_first(self):
        layer, seen = nn.Linear(2, 2), []
        layer.register_forward_hook(lambda *_, of=layer: seen.append(of.in_features))
        copied = copy.deepcopy(layer)
        del layer
        gc.collect()
        copied(torch.ones(1, 2))
        self.assertEqual(seen, [2])

    def test_collection_at_any_time(self):
        thresholds = gc.get_threshold()
        gc.set_threshold(1)
        try:
            net = nn.Sequential(nn.Linear(2, 2))
            net.register_forward_hook(lambda m, i, o: o + 1)
            for _ in range(20):
                copy.deepcopy(net)(torch.ones(1, 2)).sum().backward()
        finally:
            gc.set_threshold(*thresholds)


class Utils(unittest.TestCase):
    def test_weight_norms_are_pytorchs(self):
        results = []
        for t in (pytorch, torch):
            layer = t.nn.Linear(3, 2)
            layer.load_state_dict({"weight": t.tensor([[1.0, 2, 3], [4, 5, 6]]), "bias": t.zeros(2)})
            t.nn.utils.weight_norm(layer)
            output = layer(t.ones(1, 3))
            output.sum().backward()
            results.append((sorted(layer.state_dict()), [[round(x, 4) for x in row] for row in output.tolist()],
                            [round(x, 4) for x in layer.weight_g.grad.flatten().tolist()]))
            t.nn.utils.remove_weight_norm(layer)
            self.assertEqual(sorted(layer.state_dict()), ["bias", "weight"])
        self.assertEqual(*results)
        named = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 2))
        self.assertIn("parametrizations.weight.original", named.state_dict())

    def test_batch_norm_goes_into_the_layer_before(self):
        conv, norm = torch.nn.Conv2d(2, 3, 1).eval(), torch.nn.BatchNorm2d(3)
        x = torch.randn(4, 2, 5, 5)
        norm(conv(x))
        norm.eval()
        fused = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
        self.assertTrue(torch.allclose(fused(x), norm(conv(x)), atol=1e-5))

    def test_remedies_are_pythons(self):
        layer, other = torch.nn.Linear(3, 2), torch.nn.Linear(4, 2)
        with self.assertRaisesRegex(torch.CheckpointError, 'on_mismatch="skip"'):
            layer.load_state_dict(other.state_dict())
        self.assertEqual(layer.load_state_dict(other.state_dict(), on_mismatch="skip").mismatched, ["weight"])
        wrapped = {"module." + name: tensor for name, tensor in layer.state_dict().items()}
        with self.assertRaisesRegex(torch.CheckpointError, r'[^.]prefix="auto"'):
            layer.load_state_dict(wrapped)
        layer.load_state_dict(wrapped, prefix="auto")


class CopiesOfHooks(unittest.TestCase):
    def test_a_method_becomes_one_of_the_copy(self):
        def facts(package):
            class Watched(package.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer, self.seen = package.nn.Linear(2, 2), []
                    self.layer.register_forward_pre_hook(self.before)
                    self.layer.register_forward_hook(self.after)
                    self.register_full_backward_hook(self.backward)

                def before(self, module, args):
                    self.seen.append(("before", module is self.layer))

                def after(self, module, args, output):
                    self.seen.append(("after", module is self.layer))

                def backward(self, module, grad_input, grad_output):
                    self.seen.append(("backward", module is self))

                def forward(self, x):
                    return self.layer(x)

            net = Watched()
            copied = copy.deepcopy(net)
            copied(package.ones(1, 2, requires_grad=True)).sum().backward()
            before = list(net.seen)
            net(package.ones(1, 2, requires_grad=True)).sum().backward()
            return before, net.seen, copied.seen

        self.assertEqual(facts(torch), facts(pytorch))


class ListsOfParameters(unittest.TestCase):
    def test_of_other_values_too(self):
        def facts(package):
            nn = package.nn
            values = nn.ParameterList([package.ones(2), nn.ParameterList([package.zeros(1), package.zeros(3)]), 5])
            values.append(package.ones(1, 2))
            values[2] = "seven"
            named = nn.ParameterDict({"a": package.ones(2), "b": nn.ParameterList([package.ones(1)])})
            copied = copy.deepcopy(values)
            return [str(values), len(values), [type(value).__name__ for value in copied], list(copied.state_dict()), copied[2], len(values[1:3]),
                    [name for name, _ in values.named_parameters()], list(named.state_dict()), list(named.keys()), named["b"][0].requires_grad]

        self.assertEqual(facts(torch), facts(pytorch))
        with self.assertRaisesRegex(TypeError, "'a' is a 'int'"):
            nn.ParameterDict({"a": 3})


if __name__ == "__main__":
    unittest.main()

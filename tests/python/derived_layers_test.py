"""Classes derived in Python from layers of C++: what they add and replace, copies, files, pickles; beside PyTorch's. This file is also
the program that saves and loads whole models: `derived_layers_test.py tern|torch save|load FILE`."""

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import tempfile
import types
import typing
import unittest
import weakref
from abc import ABC, abstractmethod

if len(sys.argv) > 1 and sys.argv[1] == "torch":
    import torch
    from torch import nn
else:
    import tern as torch
    from tern import nn

T = typing.TypeVar("T")
PLAIN_KEYS = ["weight", "bias", "lora_a", "lora_b", "steps", "gate.weight", "gate.bias"]


def make_class(torch):
    nn = torch.nn

    class LoRALinear(nn.Linear):
        """A linear layer with a product of two thin matrices beside its weight."""

        def __init__(self, in_features, out_features, rank=2):
            super().__init__(in_features, out_features)
            self.lora_a = nn.Parameter(torch.full((rank, in_features), 0.5))
            self.lora_b = nn.Parameter(torch.full((out_features, rank), 0.25))
            self.register_buffer("steps", torch.zeros(1))
            self.register_buffer("scratch", torch.zeros(1), persistent=False)
            self.gate = nn.Linear(out_features, out_features)
            self.rank, self.names = rank, ["a", "b"]
            self.weight.requires_grad_(False)

        def forward(self, x):
            self.steps += 1
            y = super().forward(x) + x @ self.lora_a.t() @ self.lora_b.t()
            return torch.sigmoid(self.gate(y)) * y

    return LoRALinear


LoRALinear = make_class(torch)
LoRALinear.__qualname__ = "LoRALinear"


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(5, 3)
        self.body = nn.Sequential(LoRALinear(3, 3), nn.ReLU())
        self.decoder = nn.Linear(3, 5, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, tokens):
        return self.decoder(self.body(self.encoder(tokens)))


def fill(net):
    with torch.no_grad():
        for number, parameter in enumerate(net.parameters()):
            count = parameter.numel()
            parameter.copy_(torch.arange(count, dtype=torch.float32).reshape(parameter.shape) / count - 0.1 * number)
    return net


def facts(net):
    lora = net.body[0]
    return {
        "names": sorted(net.state_dict()), "buffers": sorted(name for name, _ in net.named_buffers()),
        "parameters": [name for name, _ in net.named_parameters()], "tied": net.decoder.weight is net.encoder.weight,
        "attributes": [lora.rank, lora.names, lora.in_features, lora.weight.requires_grad, type(lora).__name__],
        "steps": lora.steps.tolist(), "training": [net.training, lora.training, lora.gate.training],
        "output": [round(number, 4) for number in net(torch.tensor([0, 3])).flatten().tolist()]}


def program(role, path):
    if role == "save":
        torch.save(fill(Tied()).eval(), path)
        return
    try:
        net = torch.load(path, weights_only=False)
    except TypeError:  # PyTorch 1
        net = torch.load(path)
    print(json.dumps(facts(net)))


class Derived(unittest.TestCase):
    def pair(self):
        """A layer of Tern's and one of PyTorch's with the same numbers."""
        import torch as pytorch
        ours, theirs = fill(LoRALinear(4, 3)), make_class(pytorch)(4, 3)
        theirs.load_state_dict({name: pytorch.tensor(tensor.tolist()) for name, tensor in ours.state_dict().items()})
        return ours, theirs, pytorch

    def test_lists_and_text(self):
        ours, theirs, _ = self.pair()
        self.assertEqual(list(ours.state_dict()), PLAIN_KEYS)
        for method in ("named_parameters", "named_buffers", "named_modules", "named_children"):
            self.assertEqual([name for name, _ in getattr(ours, method)()], [name for name, _ in getattr(theirs, method)()], method)
        self.assertEqual(repr(ours), repr(theirs))
        self.assertEqual(list(ours._parameters), list(theirs._parameters))
        self.assertEqual(list(ours._modules), list(theirs._modules))

    def test_forward_backward_and_optimizer(self):
        ours, theirs, pytorch = self.pair()
        results = []
        for library, net in ((torch, ours), (pytorch, theirs)):
            x = library.arange(8, dtype=library.float32).reshape(2, 4) / 8
            optimizer = library.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
            for _ in range(3):
                optimizer.zero_grad()
                net(x).square().sum().backward()
                optimizer.step()
            results.append({name: tensor.tolist() for name, tensor in net.state_dict().items()})
        for name, numbers in results[1].items():
            pytorch.testing.assert_close(pytorch.tensor(results[0][name]), pytorch.tensor(numbers), rtol=1e-4, atol=1e-5)
        self.assertEqual(results[0]["steps"], [3.0])

    def test_moves_and_modes(self):
        net = LoRALinear(4, 3).double().eval()
        self.assertEqual({tensor.dtype for tensor in net.state_dict().values()}, {torch.float64})
        self.assertFalse(net.gate.training)
        self.assertEqual(net.train().gate.training, True)

    def test_many_layers(self):
        rows = [(nn.Conv2d, (1, 2, 3)), (nn.LSTM, (3, 4)), (nn.BatchNorm2d, (3,)), (nn.TransformerEncoderLayer, (4, 2)),
            (nn.Embedding, (5, 3)),
                (nn.MultiheadAttention, (4, 2)), (nn.ReLU, ()), (nn.CrossEntropyLoss, ()), (nn.LayerNorm, (4,)), (nn.LSTMCell, (2,
                    3)), (nn.MaxPool2d, (2,))]
        for layer, arguments in rows:
            with self.subTest(layer.__name__):
                derived = type("Derived", (layer,), {})(*arguments)
                before = list(derived.state_dict())
                derived.extra = nn.Parameter(torch.ones(2))
                derived.below = nn.Linear(1, 1)
                derived.register_buffer("count", torch.zeros(1))
                self.assertEqual(len(list(derived.state_dict())), len(before) + 4)
                copied = copy.deepcopy(derived)
                with torch.no_grad():
                    copied.extra.fill_(7), copied.below.weight.fill_(7)
                self.assertEqual(derived.extra.tolist(), [1, 1])
                self.assertNotEqual(derived.below.weight.item(), 7)
                self.assertIs(type(copied), type(derived))
                derived.load_state_dict(copied.state_dict())
                self.assertEqual(derived.below.weight.item(), 7)

    def test_added_to_a_plain_layer(self):
        layer = nn.Linear(2, 2)
        layer.scale = nn.Parameter(torch.ones(1))
        layer.act = nn.ReLU()
        self.assertEqual(list(layer.state_dict()), ["weight", "bias", "scale"])
        self.assertIn("(act): ReLU()", repr(nn.Sequential(layer)))
        inner = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2)
        inner.layers[1].linear1.register_parameter("lora", nn.Parameter(torch.ones(1)))
        gc.collect()
        self.assertIn("layers.1.linear1.lora", dict(inner.named_parameters()))
        del layer.scale, layer.act
        self.assertEqual(list(layer.state_dict()), ["weight", "bias"])

    def test_parameters_replaced(self):
        layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
        layer.weight = other.weight
        self.assertIs(layer.weight, other.weight)
        layer.bias = None
        self.assertEqual([name for name, _ in layer.named_parameters()], ["weight"])
        layer.register_parameter("bias", nn.Parameter(torch.ones(2)))
        self.assertEqual(layer(torch.zeros(1, 2)).tolist(), [[1, 1]])
        with self.assertRaisesRegex(TypeError, "as parameter 'weight'"):
            layer.weight = torch.ones(2, 2)
        raw = layer.weight
        del layer.weight  # as weight norms do
        layer.register_parameter("weight_raw", raw)
        layer.weight = raw * 2
        self.assertEqual([name for name, _ in layer.named_parameters()], ["bias", "weight_raw"])
        layer(torch.ones(1, 2)).sum().backward()
        self.assertEqual(raw.grad.tolist(), [[2, 2], [2, 2]])
        lstm = nn.LSTM(2, 3)
        raw = lstm.weight_hh_l0
        del lstm.weight_hh_l0
        lstm.weight_hh_l0 = raw * 0
        self.assertNotIn("weight_hh_l0", dict(lstm.named_parameters()))
        self.assertEqual(lstm(torch.ones(1, 1, 2))[0].shape, (1, 1, 3))

    def test_attributes_of_parameters_stay(self):
        net = nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2))
        net[0].weight.tag = 1
        for name, parameter in net.named_parameters():
            parameter.path = name
        del parameter
        gc.collect()
        self.assertEqual((net[0].weight.tag, net[0].weight.path, net[1].weight_ih_l0.path), (1, "0.weight", "1.weight_ih_l0"))
        self.assertEqual(copy.deepcopy(net)[0].weight.tag, 1)

    def test_refused(self):
        class Loud(nn.Linear):
            def forward(self, x):
                return super().forward(x)

        layer = nn.TransformerEncoderLayer(4, 2)
        with self.assertRaisesRegex(TypeError, "linear1: .*Loud has a forward\\(\\) of its own"):
            layer.linear1 = Loud(4, 4)
        with self.assertRaisesRegex(TypeError, "nn.ModuleList"):
            nn.TransformerEncoder(type("Own", (nn.TransformerEncoderLayer,), {"forward": lambda self, x: x})(4, 2), 2)
        with self.assertRaisesRegex(ValueError, "below itself"):
            layer.me = nn.Sequential(layer)
        with self.assertRaisesRegex(KeyError, "already exists"):
            layer.register_buffer("forward", torch.ones(1))
        forgotten = type("Forgotten", (nn.Linear,), {"__init__": lambda self: setattr(self, "x", nn.Parameter(torch.ones(1)))})
        with self.assertRaisesRegex(AttributeError, "__init__"):
            forgotten()

    def test_collected(self):
        net = LoRALinear(2, 2)
        net.weight.owner = net
        seen = []
        import weakref
        weakref.finalize(net, seen.append, 1)
        del net
        gc.collect()
        self.assertEqual(seen, [1])

    def test_pickles(self):
        net = fill(Tied()).eval()
        expected = facts(net)
        for loaded in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
            steps = loaded.body[0].steps.tolist()
            self.assertEqual({**facts(loaded), "steps": 0}, {**expected, "steps": 0})
            self.assertEqual(steps, [1.0])
        shared = copy.copy(net.body[0])
        self.assertIs(shared.lora_a, net.body[0].lora_a)
        for layer in (nn.BatchNorm2d(2), nn.LSTM(2, 3, 2), nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2),
                      nn.CrossEntropyLoss(weight=torch.tensor([1., 2.])), nn.MultiheadAttention(4, 2), nn.Conv2d(1, 1, 3, bias=False)):
            loaded = pickle.loads(pickle.dumps(layer))
            self.assertEqual(repr(loaded), repr(layer))
            for (name, ours), (_, theirs) in zip(layer.state_dict().items(), loaded.state_dict().items()):
                self.assertEqual(ours.tolist(), theirs.tolist(), name)
        both = pickle.loads(pickle.dumps([net, list(net.parameters())]))
        self.assertIs(both[0].encoder.weight, both[1][0])

    def test_data_parallel(self):
        if torch.cuda.device_count() < 2:
            torch.cuda.simulate_gpus(2)
        net = fill(LoRALinear(3, 3)).eval()
        x = torch.arange(12, dtype=torch.float32).reshape(4, 3)
        expected = net(x)
        net.cuda()
        output = nn.DataParallel(net)(x.cuda())
        output.sum().backward()
        self.assertTrue(torch.allclose(output.cpu(), expected.cpu(), atol=1e-5))
        self.assertTrue(all(p.grad is not None for name, p in net.named_parameters() if name != "weight"))
        replicas = nn.parallel.replicate(net, [0, 1])
        self.assertEqual(replicas[1].lora_a.device, torch.device("cuda:1"))
        self.assertEqual(net.lora_a.device, torch.device("cuda:0"))
        self.assertEqual(net.gate.weight.device, torch.device("cuda:0"))

    def test_replicas_of_one_layer_under_two_names(self):
        if torch.cuda.device_count() < 2:
            torch.cuda.simulate_gpus(2)

        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.BatchNorm1d(3)
                self.second = self.first
                self.last = nn.Sequential(self.first)

            def forward(self, x):
                return self.last(self.second(self.first(x)))

        net, alone, x = Twice().cuda(), Twice(), torch.rand(4, 3)
        nn.DataParallel(net.eval())(x.cuda()).sum().backward()
        alone.eval()(x).sum().backward()
        self.assertTrue(torch.allclose(net.first.weight.grad.cpu(), alone.first.weight.grad))
        replica = nn.parallel.replicate(net, [0, 1])[1]
        self.assertIs(replica.second, replica.first)
        self.assertIs(replica.last[0], replica.first)

    def test_replicas_of_computed_weights(self):
        if torch.cuda.device_count() < 2:
            torch.cuda.simulate_gpus(2)
        x = torch.rand(2, 3, device="cuda:1")
        for norm in (nn.utils.weight_norm, nn.utils.spectral_norm, nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm):
            net = nn.Sequential(norm(nn.Linear(3, 3)), nn.ReLU()).cuda().eval()
            replicas = nn.parallel.replicate(net, [0, 1])
            replicas[1](x).sum().backward()
            self.assertTrue(torch.allclose(replicas[1](x).cpu(), net(x.to("cuda:0")).cpu(), atol=1e-6))
            self.assertTrue(all(p.grad is not None for p in net.parameters()))
            self.assertEqual([name for name, _ in replicas[1].named_parameters()], [name for name, _ in net.named_parameters()])

    def test_layers_without_attributes_of_their_own_are_collected(self):
        class Slots(nn.Linear):
            __slots__ = ()

        class Kept:
            pass

        layer, kept = Slots(2, 2), Kept()
        layer.itself, alive = [layer, kept], weakref.ref(kept)
        del layer, kept
        gc.collect()
        self.assertIsNone(alive())


class Classes(unittest.TestCase):
    def test_with_other_bases(self):
        class Meta(type):
            pass

        class Runs(typing.Protocol):
            def forward(self, x):
                ...

        for base in nn.Module, nn.Linear, nn.ModuleList, torch.optim.SGD, torch.optim.lr_scheduler.LRScheduler, torch.Tensor:
            for bases, more in ((ABC,), {}), ((typing.Generic[T],), {}), ((Runs,), {}), ((), {"metaclass": Meta}):
                made = types.new_class("Made", (base, *bases), more)
                self.assertTrue(issubclass(made, base))

        class Child(nn.Linear, ABC):
            train_again = nn.Module.train  # given to another class, it is a method there

            @abstractmethod
            def size(self):
                ...

        class Whole(Child):
            def size(self):
                return self.in_features

        with self.assertRaisesRegex(TypeError, "Can't instantiate abstract class Child with abstract method size"):
            Child(2, 3)
        child = Whole(2, 3)
        self.assertEqual((child.size(), child.train_again(False).training, child(torch.ones(2)).shape), (2, False, (3,)))
        self.assertEqual(copy.deepcopy(child).state_dict().keys(), child.state_dict().keys())

    def test_without_init(self):
        class Forgets(nn.Module):
            def __init__(self):
                pass

        class ForgetsToo(torch.optim.SGD):
            def __init__(self):
                pass

        for use in (lambda: Forgets()(torch.ones(1)), lambda: Forgets().state_dict(), lambda: Forgets().training, lambda: nn.Sequential(Forgets()),
                    lambda: repr(Forgets()), lambda: ForgetsToo().step(), lambda: ForgetsToo().param_groups):
            with self.assertRaisesRegex(TypeError, r"super\(\).__init__\(\) must be called before the object is used"):
                use()

    def test_containers_that_fill_themselves_later(self):
        for base in nn.ModuleDict, nn.ParameterDict:
            class Later(base):
                def __init__(self):
                    super().__init__()
                    self.ready = True
                    self.update({"a": nn.Linear(1, 1) if issubclass(base, nn.ModuleDict) else torch.ones(1)})

                def update(self, values):
                    assert self.ready
                    super().update(values)

            self.assertEqual(list(Later().keys()), ["a"])


class Keeps(nn.Module):
    """Says itself what a copy and a pickle have of it."""

    def __init__(self):
        super().__init__()
        self.inner, self.number = nn.Linear(2, 2), 3
        self.register_buffer("seen", torch.ones(1))
        self.me = lambda: self

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "me"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.me = lambda: self


class Older(nn.Linear):
    def __setstate__(self, state):
        state.setdefault("scale", 5)
        super().__setstate__(state)


class States(unittest.TestCase):
    def test_classes_with_states_of_their_own(self):
        module = Keeps().eval()
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), pickle.loads(pickle.dumps(nn.Sequential(module)))[0]):
            self.assertIs(other.me(), other)
            self.assertEqual((other.number, other.training, other.seen.item()), (3, False, 1))
            self.assertIsNot(other.inner.weight, module.inner.weight)
            self.assertTrue(torch.equal(other.inner.weight, module.inner.weight))
        layer = Older(2, 3)
        other = pickle.loads(pickle.dumps(layer))
        self.assertEqual(other.scale, 5)
        self.assertTrue(torch.equal(other.weight, layer.weight))


class Files(unittest.TestCase):
    def test_between_programs(self):
        def run(*arguments):
            environment = {**os.environ, "TERN_TEST_DEVICE": ""}
            done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        with tempfile.TemporaryDirectory() as folder:
            found = {}
            for writer in ("tern", "torch"):
                path = os.path.join(folder, writer)
                run(writer, "save", path)
                for reader in ("tern", "torch"):
                    found[writer, reader] = json.loads(run(reader, "load", path))
            for pair, facts in found.items():
                self.assertEqual(facts, found["torch", "torch"], pair)
            self.assertTrue(found["torch", "torch"]["tied"])


if __name__ == "__main__":
    if len(sys.argv) > 3:
        program(*sys.argv[2:])
    else:
        unittest.main()

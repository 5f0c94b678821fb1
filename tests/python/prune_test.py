"""Pruning (torch.nn.utils.prune) beside PyTorch's: its tutorial line by line, masks of the same random numbers, copies, refusals."""

import contextlib
import copy
import gc
import io
import pickle
import re
import tempfile
import unittest

import torch as pytorch

import tern
import tern as torch
from tern import nn
from tern.nn.utils import prune

# The official tutorial, in its order.
TUTORIAL = """
import torch
from torch import nn
import torch.nn.utils.prune as prune
import torch.nn.functional as F

device = torch.device("cpu")

class LeNet(nn.Module):
    def __init__(self):
        super(LeNet, self).__init__()
        # 1 input image channel, 6 output channels, 5x5 square conv kernel
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)  # 5x5 image dimension
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, int(x.nelement() / x.shape[0]))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return x

model = LeNet().to(device=device)
module = model.conv1
print(list(module.named_parameters()))
print(list(module.named_buffers()))
prune.random_unstructured(module, name="weight", amount=0.3)
print(list(module.named_parameters()))
print(list(module.named_buffers()))
print(module.weight)
print(module._forward_pre_hooks)
prune.l1_unstructured(module, name="bias", amount=3)
print(list(module.named_parameters()))
print(list(module.named_buffers()))
print(module.bias)
print(module._forward_pre_hooks)
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
# As we can verify, this will zero out all the connections corresponding to
# 50% (3 out of 6) of the channels, while preserving the action of the
# previous mask.
print(module.weight)
for hook in module._forward_pre_hooks.values():
    if hook._tensor_name == "weight":  # select out the correct hook
        break
print(list(hook))  # pruning history in the container
print(model.state_dict().keys())
print(list(module.named_parameters()))
print(list(module.named_buffers()))
print(module.weight)
prune.remove(module, 'weight')
print(list(module.named_parameters()))
print(list(module.named_buffers()))

new_model = LeNet()
for name, module in new_model.named_modules():
    # prune 20% of connections in all 2D-conv layers
    if isinstance(module, torch.nn.Conv2d):
        prune.l1_unstructured(module, name='weight', amount=0.2)
    # prune 40% of connections in all linear layers
    elif isinstance(module, torch.nn.Linear):
        prune.l1_unstructured(module, name='weight', amount=0.4)
print(dict(new_model.named_buffers()).keys())  # to verify that all masks exist

model = LeNet()
parameters_to_prune = (
    (model.conv1, 'weight'),
    (model.conv2, 'weight'),
    (model.fc1, 'weight'),
    (model.fc2, 'weight'),
    (model.fc3, 'weight'),
)
prune.global_unstructured(
    parameters_to_prune,
    pruning_method=prune.L1Unstructured,
    amount=0.2,
)
print(
    "Sparsity in conv1.weight: {:.2f}%".format(
        100. * float(torch.sum(model.conv1.weight == 0))
        / float(model.conv1.weight.nelement())
    )
)
print(
    "Global sparsity: {:.2f}%".format(
        100. * float(
            torch.sum(model.conv1.weight == 0)
            + torch.sum(model.conv2.weight == 0)
            + torch.sum(model.fc1.weight == 0)
            + torch.sum(model.fc2.weight == 0)
            + torch.sum(model.fc3.weight == 0)
        )
        / float(
            model.conv1.weight.nelement()
            + model.conv2.weight.nelement()
            + model.fc1.weight.nelement()
            + model.fc2.weight.nelement()
            + model.fc3.weight.nelement()
        )
    )
)

class FooBarPruningMethod(prune.BasePruningMethod):
    \"\"\"Prune every other entry in a tensor
    \"\"\"
    PRUNING_TYPE = 'unstructured'

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask

def foobar_unstructured(module, name):
    FooBarPruningMethod.apply(module, name)
    return module

model = LeNet()
foobar_unstructured(model.fc3, name='bias')

print(model.fc3.bias_mask)
"""

# A module, and what is pruned of it, one after the other.
CASES = [
    ("nn.Linear(6, 4)", ["l1_unstructured(m, 'weight', 0.3)", "l1_unstructured(m, 'weight', 0.5)", "identity(m, 'bias')"]),
    ("nn.Linear(6, 4)", ["random_unstructured(m, 'weight', 7)", "random_structured(m, 'weight', 2, dim=1)"]),
    ("nn.Conv2d(3, 8, 3)", ["ln_structured(m, 'weight', 0.25, n=1, dim=0)", "ln_structured(m, 'weight', 1, n=2, dim=1)",
                            "ln_structured(m, 'weight', 2, n=float('inf'), dim=0)"]),
    ("nn.Linear(6, 4)", ["custom_from_mask(m, 'weight', torch.arange(24).reshape(4, 6) % 3 > 0)", "l1_unstructured(m, 'weight', 3)"]),
    ("nn.Linear(6, 4)", ["l1_unstructured(m, 'weight', 6, importance_scores=torch.arange(24.).reshape(4, 6))"]),
    ("nn.LSTM(6, 4)", ["l1_unstructured(m, 'weight_hh_l0', 0.5)", "random_unstructured(m, 'bias_ih_l0', 0.5)"]),
    ("nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 4))", [
        "global_unstructured([(m[0], 'weight'), (m[1], 'bias')], L1Unstructured, amount=0.4)",
        "global_unstructured([(m[0], 'weight'), (m[1], 'weight')], RandomUnstructured, amount=9)"]),
]


def place(t):
    if t is tern:
        return {**vars(prune), "torch": tern, "nn": nn, "prune": prune}
    import torch.nn.utils.prune as theirs
    return {**vars(theirs), "torch": pytorch, "nn": pytorch.nn, "prune": theirs}


def seed(t):
    t.manual_seed(3, engine="torch") if t is tern else t.manual_seed(3)


class Prune(unittest.TestCase):
    def close(self, ours, theirs, message=None):
        pytorch.testing.assert_close(pytorch.tensor(ours.tolist()), theirs.detach(), rtol=1e-4, atol=1e-5, msg=message)

    def test_tutorial(self):
        texts = []
        for t in (tern, pytorch):
            seed(t)
            source = TUTORIAL.replace(  # a layer's own parameter comes back to its own place here, in PyTorch to the end
                "prune.remove(module, 'weight')\nprint(list(module.named_parameters()))",
                "prune.remove(module, 'weight')\nprint(sorted(module.named_parameters(), key=str))")
            if t is tern:
                source = source.replace("import torch\n", "import tern as torch\n").replace("from torch ", "from tern ").replace(
                    "import torch.", "import tern.")
            with contextlib.redirect_stdout(io.StringIO()) as output, tern.device("cpu"):
                exec(source, {"__name__": "tutorial"})
            text = re.sub(r"\((\d+)(?=, <)", "(number", output.getvalue())  # PyTorch counts the hooks of all modules
            texts.append(re.sub(r"0x[0-9a-f]+", "0x", text).replace("tern.", "torch."))
        self.assertEqual(*texts)

    def test_cases(self):
        for made, steps in CASES:
            with self.subTest(made, steps=steps), tern.device("cpu"):  # where the draws are PyTorch's
                modules = []
                for t in (tern, pytorch):
                    seed(t)
                    names = place(t)
                    names["m"] = eval(made, names)
                    for step in steps:
                        eval(step, names)
                    modules.append(names["m"])
                ours, theirs = modules
                self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
                for (name, tensor), other in zip(ours.state_dict().items(), theirs.state_dict().values()):
                    self.close(tensor, other, name)
                self.train(ours, theirs)
                with tempfile.TemporaryDirectory() as folder:
                    pytorch.save(theirs.state_dict(), f"{folder}/m.pt")
                    tern.save(ours.state_dict(), f"{folder}/o.pt")
                    ours.load_state_dict(torch.load(f"{folder}/m.pt"))
                    theirs.load_state_dict(pytorch.load(f"{folder}/o.pt"))
                for path, module in ours.named_modules():
                    for hook in list(module._forward_pre_hooks.values()):
                        prune.remove(module, hook._tensor_name)
                        place(pytorch)["prune"].remove(theirs.get_submodule(path), hook._tensor_name)
                self.assertFalse(prune.is_pruned(ours))
                self.assertEqual(sorted(ours.state_dict()), sorted(theirs.state_dict()))
                for name, tensor in ours.state_dict().items():
                    self.close(tensor, theirs.state_dict()[name], name)
                self.train(ours, theirs)

    def train(self, ours, theirs):
        """Both learn the same."""
        outputs = []
        for t, module in ((tern, ours), (pytorch, theirs)):
            shape = (2, 3, 5, 5) if isinstance(module, t.nn.Conv2d) else (2, 3, 6) if isinstance(module, t.nn.LSTM) else (3, 6)
            x = t.sin(t.arange(float(pytorch.Size(shape).numel()))).reshape(shape)
            optimizer = t.optim.SGD(module.parameters(), lr=0.1)
            for _ in range(2):
                optimizer.zero_grad()
                y = module(x)
                y = y[0] if isinstance(y, tuple) else y
                y.square().mean().backward()
                optimizer.step()
            outputs.append(y)
        self.close(*outputs)
        for name, tensor in theirs.named_parameters():
            self.close(ours.get_parameter(name), tensor, name)

    def test_attributes(self):
        for module in (nn.Linear(4, 3, bias=False), self.own_module()):
            before = module.weight
            prune.l1_unstructured(module, "weight", 0.5)
            self.assertIs(module.weight_orig, before)
            self.assertNotIsInstance(module.weight, nn.Parameter)
            self.assertNotIn("Parameter", repr(module.weight))
            self.assertTrue(prune.is_pruned(module) and prune.is_pruned(nn.Sequential(module)))
            self.assertEqual([type(hook) for hook in module._forward_pre_hooks.values()], [prune.L1Unstructured])
            with torch.no_grad():
                module.weight_orig.fill_(3)
            module(torch.ones(1, 4)).sum().backward()
            self.assertEqual(module.weight.tolist(), (module.weight_mask * 3).tolist())
            self.assertEqual(before.grad.tolist(), module.weight_mask.tolist())
            for copied in (copy.deepcopy(module), copy.copy(module)):
                self.assertEqual(copied(torch.ones(1, 4)).tolist(), module(torch.ones(1, 4)).tolist())
            copied = copy.deepcopy(module)
            with torch.no_grad():
                copied.weight_orig.fill_(5)
            self.assertTrue(torch.allclose(copied(torch.ones(1, 4)), module(torch.ones(1, 4)) * 5 / 3))
            self.assertEqual(module.weight_orig.max().item(), 3)
            prune.remove(copied, "weight")
            self.assertEqual(copied.weight.max().item(), 5)
            self.assertTrue(torch.allclose(copied(torch.ones(1, 4)), module(torch.ones(1, 4)) * 5 / 3))
            self.assertTrue(prune.is_pruned(module))
            prune.remove(module, "weight")
            self.assertIs(module.weight, before)
            self.assertEqual([name for name, _ in module.named_parameters() if name != "bias"], ["weight"])

    @staticmethod
    def own_module():
        class Own(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.arange(12.0).reshape(3, 4))

            def forward(self, x):
                return x @ self.weight.t()

        return Own()

    def test_inside_layers_of_cpp(self):
        layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0)
        for module in layer.modules():
            if isinstance(module, nn.Linear) and module.weight is not None:
                prune.l1_unstructured(module, "weight", 0.5)
        del module
        gc.collect()
        self.assertTrue(prune.is_pruned(layer.linear1))
        with torch.no_grad():
            layer.linear2.weight_orig.zero_()
        layer(torch.ones(3, 2, 4)).sum().backward()
        self.assertEqual(layer.linear2.weight.abs().sum().item(), 0)
        self.assertIsNotNone(layer.linear1.weight_orig.grad)
        prune.remove(layer.linear1, "weight")
        self.assertFalse(prune.is_pruned(layer.linear1))
        self.assertEqual((layer.linear1.weight == 0).sum().item(), 16)

    def test_data_parallel(self):
        if torch.cuda.device_count() < 2:
            torch.cuda.simulate_gpus(2)
        net = nn.Sequential(nn.Linear(4, 4), self.own_module()).cuda()
        for module in net:
            prune.random_unstructured(module, "weight", 0.5)
        x = torch.arange(16.0, device="cuda").reshape(4, 4)
        outputs = [nn.DataParallel(net)(x), net(x)]
        self.assertTrue(torch.allclose(*outputs))
        gradients = [torch.autograd.grad(output.sum(), list(net.parameters())) for output in outputs]
        for found, wanted in zip(*gradients):
            self.assertTrue(torch.allclose(found, wanted))

    def test_methods(self):
        t = torch.tensor([[1.0, -2, 3], [-4, 5, -6]])
        self.assertEqual(prune.L1Unstructured(2).prune(t).tolist(), [[0, 0, 3], [-4, 5, -6]])
        self.assertEqual(prune.LnStructured(1, n=2, dim=0).prune(t).tolist(), [[0, 0, 0], [-4, 5, -6]])
        self.assertEqual(prune.CustomFromMask(torch.tensor([[1, 0, 1], [1, 0, 0]])).prune(t).tolist(), [[1, 0, 3], [-4, 0, 0]])
        layer = nn.Linear(3, 3)
        prune.random_unstructured(layer, "weight", 1), prune.l1_unstructured(layer, "weight", 1)
        (container,) = layer._forward_pre_hooks.values()
        self.assertEqual((len(container), type(container[0]), type(container[-1])), (2, prune.RandomUnstructured, prune.L1Unstructured))
        self.assertEqual(int(layer.weight_mask.sum().item()), 7)

    def test_refused(self):
        rows = [
            ("prune.l1_unstructured(m, 'weight', 1.5)", ValueError, "should either be a float in the range"),
            ("prune.l1_unstructured(m, 'weight', -1)", ValueError, "non-negative integer"),
            ("prune.l1_unstructured(m, 'weight', 'all')", TypeError, "Must be int or float"),
            ("prune.l1_unstructured(m, 'weight', 13)", ValueError, "smaller than the number of parameters to prune=12"),
            ("prune.l1_unstructured(m, 'weigth', 1)", ValueError, "'weigth' is no parameter of Linear"),
            ("prune.l1_unstructured(nn.utils.weight_norm(m), 'weight', 1)", ValueError, "is no parameter of Linear: it is computed"),
            ("prune.l1_unstructured(nn.LazyLinear(2), 'weight', 0.5)", ValueError, "waits for its size"),
            ("prune.l1_unstructured(3, 'weight', 1)", TypeError, "expected an nn.Module"),
            ("prune.l1_unstructured(m, 'weight', 1, importance_scores=torch.ones(3))", ValueError, "same shape as parameter weight"),
            ("prune.ln_structured(m, 'bias', 1, n=2, dim=0)", ValueError, "only be applied to multidimensional"),
            ("prune.ln_structured(m, 'weight', 1, n=2, dim=2)", IndexError, "Invalid index 2"),
            ("prune.custom_from_mask(m, 'weight', torch.ones(3))", ValueError, "must have the parameter's shape"),
            ("prune.remove(m, 'weight')", ValueError, "has to be pruned before pruning can be removed"),
            ("prune.global_unstructured(3, prune.L1Unstructured, amount=1)", TypeError, "not an Iterable"),
            ("prune.global_unstructured([(m, 'weight')], prune.LnStructured, amount=1, n=2)", TypeError, "Only \"unstructured\""),
            ("tern.save(pruned(m), '/nowhere')", RuntimeError, "'weight' is pruned: save its state_dict\\(\\)"),
            ("pickle.dumps(nn.Sequential(pruned(m)))", RuntimeError, "'weight' is pruned"),
            ("prune.PruningContainer().add_pruning_method(3)", TypeError, "not a BasePruningMethod"),
        ]
        for text, error, words in rows:
            m = nn.Linear(4, 3)
            with self.subTest(text), self.assertRaisesRegex(error, words):
                eval(text, {**globals(), "m": m, "pruned": lambda module: prune.l1_unstructured(module, "weight", 0.5)})
            if "weight_norm" not in text and "pruned" not in text:
                self.assertEqual(list(m.state_dict()), ["weight", "bias"])


if __name__ == "__main__":
    unittest.main()

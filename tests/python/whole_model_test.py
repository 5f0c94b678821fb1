# Whole models of classes that the program has written, saved by Tern and by PyTorch, opened by both. This file is also the program: as
# `whole_model_test.py tern|torch save|load FILE` it has the classes in its __main__.
import json
import os
import subprocess
import sys
import tempfile
import unittest

if len(sys.argv) > 1 and sys.argv[1] == "tern":
    import tern as torch
    from tern import nn
else:
    import torch
    from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.scale, self.names = 2.5, ["a", "b"]
        self.register_buffer("count", torch.ones(2))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.weight = nn.Parameter(torch.full((size,), 2.0))
        self.register_parameter("none", None)

    def forward(self, x):
        return self.fc(x) * self.weight * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(3), Block(3)])
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
        self.tied = self.blocks[0].fc
        self.offsets = nn.ParameterList([nn.Parameter(torch.ones(2))])
        self.named = nn.ParameterDict({"bias": nn.Parameter(torch.zeros(1))})

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.tied(x)) + self.offsets[0] + self.named["bias"]


def facts(net):
    block = net.blocks[0]
    return {
        "names": list(net.state_dict()), "buffers": sorted(name for name, _ in net.named_buffers()),
        "parameters": len(list(net.parameters())), "training": [net.training, net.blocks[1].training],
        "attributes": [block.scale, block.names, block.none], "tied": net.tied is block.fc,
        "are parameters": isinstance(block.weight, nn.Parameter) and isinstance(block.fc.weight, nn.Parameter),
        "output": [round(number, 4) for number in net(torch.ones(1, 3)).flatten().tolist()],
    }


def program(role, path):
    if role == "save":
        net = Net().eval()
        net.blocks[1].train()
        torch.save(net, path)
        torch.save(nn.DataParallel(net), path + ".parallel")
        return facts(net)
    parallel = torch.load(path + ".parallel", weights_only=False)
    result = facts(torch.load(path, weights_only=False))
    assert facts(parallel.module) == result and type(parallel) is nn.DataParallel
    return result


class WholeModelTest(unittest.TestCase):
    def run_as(self, library, role, path):
        out = subprocess.run([sys.executable, __file__, library, role, path], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        return json.loads(out.stdout)

    def test_every_way(self):
        with tempfile.TemporaryDirectory() as folder:
            for saver in ("tern", "torch"):
                path = os.path.join(folder, saver)
                saved = self.run_as(saver, "save", path)
                self.assertEqual(saved["parameters"], 10)
                for loader in ("tern", "torch"):
                    with self.subTest(saver=saver, loader=loader):
                        self.assertEqual(self.run_as(loader, "load", path), saved)

    def test_only_modules_are_made(self):
        import tern

        class Local(tern.nn.Module):
            pass

        with self.assertRaisesRegex(TypeError, "Local is defined in a function"):
            tern.save(Local(), os.devnull)
        for module, name in (("os", "system"), ("subprocess", "Popen"), ("builtins", "eval"), ("tern.nn", "Linear"),
                             ("unittest", "TestCase"), ("nowhere", "Net"), ("tern", "nn.Module"), ("", "")):
            self.assertIsNone(tern.serialization._module_class(module, name))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[2] in ("save", "load"):
        if not hasattr(torch, "simulate_gpus") and torch.__version__ < "2":  # which has no weights_only
            load = torch.load
            torch.load = lambda path, weights_only: load(path)
        print(json.dumps(program(*sys.argv[2:])))
    else:
        unittest.main()

# What the programs 1, 2 and 7 of examples/ save opens in PyTorch with weights_only=True and holds what was saved. The programs
# lie beside the one that TERN_PROGRAM names, in examples/; 77 means skipped.

import os
import pathlib
import subprocess
import sys
import tempfile

import torch

PROGRAMS = pathlib.Path(os.environ["TERN_PROGRAM"]).parent.parent / "examples"
if not (PROGRAMS / "1_save_and_load").exists():
    print("SKIP: the examples are not built (TERN_BUILD_EXAMPLES)")
    sys.exit(77)


# Before 2.0, weights_only=True refused plain numbers.
OPTIONS = {"weights_only": True} if int(torch.__version__.split(".")[0]) >= 2 else {}


def load(path):
    return torch.load(path, map_location="cpu", **OPTIONS)


class MLP(torch.nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.hidden = torch.nn.Linear(inputs, hidden)
        self.output = torch.nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.output(torch.relu(self.hidden(x)))


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    environment = {**os.environ, "TERN_SIM_GPUS": "2", "TERN_NUM_THREADS": "1"}
    for program in ("1_save_and_load", "2_mlp_parameters", "7_train_on_many"):
        subprocess.run([PROGRAMS / program, folder], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    x, y = torch.arange(4), torch.zeros(4)
    assert torch.equal(load(folder / "x-file"), x)
    x2, y2 = load(folder / "x-files")
    assert torch.equal(x2, x) and torch.equal(y2, y)
    mydict = load(folder / "mydict")
    assert list(mydict) == ["x", "y"] and torch.equal(mydict["x"], x) and torch.equal(mydict["y"], y)
    checkpoint = load(folder / "checkpoint")
    assert checkpoint["epoch"] == 3 and checkpoint["lr"] == 0.1 and checkpoint["classes"] == ["cat", "dog"]
    assert torch.equal(checkpoint["x"], x)

    net = MLP(20, 256, 10)
    net.load_state_dict(load(folder / "mlp.params"))
    assert torch.isfinite(net(torch.randn(2, 20))).all()

    plain = MLP(2, 64, 2)
    plain.load_state_dict(load(folder / "net.pt"))
    wrapped = torch.nn.DataParallel(MLP(2, 64, 2))
    wrapped.load_state_dict(load(folder / "parallel.pt"))
    points = torch.rand(1000, 2) * 2 - 1
    assert torch.equal(plain(points), wrapped.module(points))
    right = plain(points).argmax(1) == (points.square().sum(1) < 0.6)
    assert right.float().mean() > 0.9, right.float().mean()

print("PyTorch opens what the examples save")

# What `tern convert` makes of PyTorch's files, opened by PyTorch again. TERN_PROGRAM names the program; 77 means skipped.

import collections
import os
import subprocess
import sys
import tempfile

import torch

PROGRAM = os.environ.get("TERN_PROGRAM")
if not PROGRAM or not os.path.exists(PROGRAM):
    print("SKIP: TERN_PROGRAM does not name the program")
    sys.exit(77)
MODERN = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 0)

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


def convert(*arguments):
    return subprocess.run([PROGRAM, "convert", *arguments], capture_output=True, text=True)


def converted(value, *options, legacy=False):
    torch.save(value, "in.pt")
    result = convert("in.pt", "out.pt", *options, *(["--to", "legacy"] if legacy else []))
    assert result.returncode == 0, result.stderr
    return torch.load("out.pt", **({"weights_only": True} if MODERN else {}))


def refused(text, value, *arguments):
    torch.save(value, "in.pt")
    result = convert("in.pt", *arguments)
    assert result.returncode == 1 and text in result.stderr, (result.returncode, result.stderr)


def describe(value):
    """Structure, order, and the numbers of tensors."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.requires_grad, value.tolist()
    if isinstance(value, dict):
        return type(value), [(describe(key), describe(entry)) for key, entry in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [describe(item) for item in value]
    return value


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        self.head = torch.nn.Linear(2, 2)
        self.register_buffer("seen", torch.ones(3), persistent=False)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def whole_models():
    net = Net()
    state = net.state_dict()
    for legacy in (False, True):
        for found in (
            converted(net, legacy=legacy),
            converted({"epoch": 3, "model": net}, legacy=legacy)["model"],
            converted([net, 1], legacy=legacy)[0],
            converted({"model": {"net": net}}, "--key", "model.net", legacy=legacy)["model"]["net"],
        ):
            assert describe(found) == describe(state)
            assert found._metadata == state._metadata, found._metadata
            Net().load_state_dict(found)
    changed = converted({"epoch": 3, "model": net, "best": 0.5}, "--add-prefix", "net.", "--dtype", "fp16")
    assert list(changed) == ["epoch", "model", "best"]
    assert list(changed["model"]) == ["net." + name for name in state]
    assert changed["model"]._metadata["net.body.1"] == {"version": 2}
    assert changed["model"]["net.head.weight"].dtype == torch.float16
    torch.save(net, "in.pt")
    for out in ("out.pt", "out.npz"):
        assert "left out: 1 tensor of a whole model that no state dict has" in convert("in.pt", out).stdout
    refused("may be the model: 'a', 'b'", {"a": net, "b": net}, "out.safetensors")


def frozen_program():
    torch.jit.freeze(torch.jit.script(Net()).eval()).save("frozen.pt")
    for out in ("frozen.safetensors", "frozen.npz", "copy.pt"):
        result = convert("frozen.pt", out)
        assert result.returncode == 1 and "'tern convert --key .' takes all" in result.stderr, result.stderr
        assert not os.path.exists(out)
    assert convert("frozen.pt", "frozen.npz", "--key", ".").returncode == 0


def structures():
    t, i = torch.tensor([0.5, -2.0]), torch.tensor([1, 2])
    half = t.half()
    ordered = collections.OrderedDict(b=t, a=3)
    for value, expected in (
        ([t, t], [half, half]),
        (t, half),
        ((t, [i, (t, "x")]), (half, [i, (half, "x")])),
        ({1: t, 2: t}, {1: half, 2: half}),
        ({"a": {"b": {"c": {"w": t}}}}, {"a": {"b": {"c": {"w": half}}}}),
        ({"epoch": 1, "w": t, "z": None, "b": t}, {"epoch": 1, "w": half, "z": None, "b": half}),
        (ordered, collections.OrderedDict(b=half, a=3)),
        ({"state_dict": {"": t, "b.c": t}, "ema": {"b.c": t + 0}}, {"state_dict": {"": half, "b.c": half}, "ema": {"b.c": t}}),
        ({"encoder": {"l1": {"w": t}, "b": t}, "top": t}, {"encoder": {"l1": {"w": half}, "b": half}, "top": half}),
        ({"epoch": i, "layers": [{"w": t}, {"w": t}]}, {"epoch": i, "layers": [{"w": half}, {"w": half}]}),
        ({"w": torch.nn.Parameter(t)}, {"w": torch.nn.Parameter(half)}),
    ):
        assert describe(converted(value)) == describe(value)
        assert describe(converted(value, "--dtype", "fp16")) == describe(expected), value
    pair = converted([t, t, t.view(1, 2)], "--dtype", "fp16")
    assert pair[0] is pair[1] or pair[0].data_ptr() == pair[1].data_ptr()


def legacy_refuses():
    for name, make in (
        ("torch._utils._rebuild_nested_tensor", lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])),
        ("torch._C.Generator", torch.Generator),
    ):
        try:
            torch.save([make()], "in.pt")
        except Exception:  # not in every PyTorch
            continue
        refused("does not read " + name, [make()], "legacy.pt", "--to", "legacy")
        assert convert("in.pt", "zip.pt").returncode == 0


for check in (whole_models, frozen_program, structures, legacy_refuses):
    check()
print(f"PyTorch {torch.__version__}: all as it must be")

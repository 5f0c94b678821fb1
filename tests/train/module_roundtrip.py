# Whole models go from Tern to PyTorch and back: what save_module writes must open as PyTorch's own modules with the same text,
# state and outputs, and what torch.save writes must come back as Tern's. The helper (module_tool.cpp) is named by
# TERN_MODULE_TOOL; 77 means skipped.

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
TOOL = os.environ.get("TERN_MODULE_TOOL")
if not TOOL or not os.path.exists(TOOL):
    print("SKIP: TERN_MODULE_TOOL does not name the helper program")
    sys.exit(77)

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.output = nn.Linear(8, 6, bias=False)
        self.more = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])
        self.more[1].weight = self.more[0].weight

    def forward(self, x):
        y = self.output(torch.relu(self.norm(self.hidden(x))))
        for layer in self.more:
            y = layer(y)
        return y


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(6, 4), torch.randn(4)])
        self.scales = nn.ParameterDict({"left": torch.randn(4), "right": torch.randn(1)})
        self.pool, self.unpool = nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)

    def forward(self, x):
        y = x @ self.weights[0] + self.weights[1]
        return (self.unpool(*self.pool(y)) + y) * self.scales["left"] * self.scales["right"]


for kind in (MLP, Mixture):
    setattr(sys.modules["__main__"], kind.__name__, kind)
    kind.__module__ = "__main__"


def run(*arguments):
    result = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip())


def load(path):
    return torch.load(path, map_location="cpu", **({"weights_only": False} if VERSION >= (2, 0) else {}))


def same_state(a, b):
    assert list(a) == list(b), (list(a), list(b))
    for key in a:
        assert a[key].dtype == b[key].dtype and torch.equal(a[key], b[key]), key


def same_text(ours, net):
    if VERSION < (2, 15):
        ours = re.sub(r"(Norm(?:1d|2d|3d)?\(.*), bias=(?:True|False)", r"\1", ours)  # newer versions print it
        ours = re.sub(r"((?:Upsampl\w+|EmbeddingBag)\(.*mode=)'([a-z-]*)'", r"\1\2", ours) if VERSION < (2, 0) else ours
    assert ours == repr(net), f"{ours}\n{net!r}"


def from_tern(folder, mode):
    run(mode, folder / "model.pt", folder / "data.pt")
    net, data = load(folder / "model.pt"), load(folder / "data.pt")
    assert not any(module.training for module in net.modules())
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in net.parameters())
    if mode == "make":  # a std::vector of layers is a ModuleList in PyTorch
        same_text(data["text"], net)
        assert net.state_dict()._metadata == data["state"]._metadata
    same_state(data["state"], net.state_dict())
    with torch.no_grad():
        assert torch.allclose(net(data["x"]), data["y"], rtol=1e-4, atol=1e-5), mode
    net.train()  # it must be possible to go on
    net(data["x"]).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    return net


def first(result):
    """Recurrent layers give their states too."""
    return result[0] if isinstance(result, tuple) else result


def to_tern(folder, name, net, x):
    net.eval()
    torch.save(net, folder / "model.pt")
    torch.save({"x": x}, folder / "data.pt")
    run("run", folder / "model.pt", folder / "data.pt", folder / "out.pt")
    out = load(folder / "out.pt")
    same_state(net.state_dict(), out["state"])
    if name != "own":  # a std::vector of layers has no line of its own
        same_text(out["text"], net)
    with torch.no_grad():
        assert torch.allclose(first(net(x)), out["y"], rtol=1e-4, atol=1e-5), name
    again = load(folder / "out.pt.pt")
    assert type(again) is type(net)
    same_state(net.state_dict(), again.state_dict())
    assert repr(again) == repr(net), f"{again}\n{net}"
    assert [(n, type(m), m.training) for n, m in again.named_modules()] == [(n, type(m), m.training) for n, m in net.named_modules()]
    with torch.no_grad():
        assert torch.allclose(first(net(x)), first(again(x))), name
    return again


def losses_through_tern(folder):
    """Losses take more than one input: they are read, written and compared with what they were, but not run."""
    w = torch.tensor([1.0, 2.0, 3.0])
    given = [nn.CrossEntropyLoss(weight=w, ignore_index=2, label_smoothing=0.1), nn.CrossEntropyLoss(), nn.NLLLoss(w, reduction="sum"), nn.MSELoss(reduction="none"),
             nn.L1Loss(), nn.SmoothL1Loss(beta=0.5), nn.HuberLoss(delta=0.5), nn.BCELoss(w), nn.BCEWithLogitsLoss(pos_weight=w), nn.KLDivLoss(reduction="batchmean", log_target=True),
             nn.PoissonNLLLoss(log_input=False, full=True, eps=1e-5), nn.GaussianNLLLoss(full=True, eps=1e-4), nn.CTCLoss(2, "sum", True), nn.MarginRankingLoss(0.5),
             nn.HingeEmbeddingLoss(0.5), nn.CosineEmbeddingLoss(0.5), nn.TripletMarginLoss(2.0, 3.0, 1e-4, True), nn.MultiMarginLoss(2, 0.5, w), nn.MultiLabelMarginLoss(),
             nn.MultiLabelSoftMarginLoss(w, reduction="sum"), nn.SoftMarginLoss(reduction="none")]
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(*given))
    torch.save(net, folder / "losses.pt")
    run("copy", folder / "losses.pt", folder / "copy.pt")
    copy = load(folder / "copy.pt")
    assert repr(copy) == repr(net), f"{copy}\n{net}"
    same_state(net.state_dict(), copy.state_dict())
    for loss, again in zip(given, copy[1]):
        settings = {key: value for key, value in vars(loss).items() if not key.startswith("_")}
        assert {key: getattr(again, key) for key in settings} == settings, (loss, vars(again))


def classes_through_tern(folder):
    """Tern's log probabilities are compared; its loss is in tests/nn/adaptive_softmax_test.cpp."""
    net, x = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10, 15], div_value=2.0, head_bias=True), torch.randn(5, 8)
    torch.save(net, folder / "classes.pt")
    torch.save({"x": x}, folder / "data.pt")
    run("run", folder / "classes.pt", folder / "data.pt", folder / "out.pt")
    out, again = load(folder / "out.pt"), load(folder / "out.pt.pt")
    same_state(net.state_dict(), out["state"])
    same_text(out["text"], net)
    assert torch.allclose(net.log_prob(x), out["y"], rtol=1e-4, atol=1e-5)
    assert again(x, torch.arange(5)).loss == net(x, torch.arange(5)).loss and repr(again) == repr(net)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(prefix="tern-modules-") as name:
        folder = pathlib.Path(name)
        net = from_tern(folder, "make")
        to_tern(folder, "every layer", net, torch.randn(4, 3, 9, 14))
        own = from_tern(folder, "own")
        assert own.more[0].weight is own.more[1].weight
        again = to_tern(folder, "own", MLP(), torch.randn(5, 6))
        assert again.more[0].weight is again.more[1].weight
        mixture = from_tern(folder, "mixture")
        mixture.weights.append(torch.ones(1))  # such containers must be as good as PyTorch's own
        assert len(mixture.weights) == 3 and list(mixture.scales.keys()) == ["left", "right"]
        to_tern(folder, "mixture", Mixture(), torch.randn(5, 6))
        small = nn.Sequential(nn.Conv2d(1, 2, 3, padding="valid"), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((None, 2)), nn.Flatten(),
                              nn.Linear(12, 4), nn.BatchNorm1d(4, track_running_stats=False, momentum=None), nn.ELU(0.5, inplace=True),
                              nn.LeakyReLU(0.3, True), nn.SiLU(inplace=True), nn.Dropout(0.1, inplace=True), nn.Unflatten(1, (2, 2)),
                              nn.Conv1d(2, 2, 2, padding="same"), nn.Conv1d(2, 2, 2, padding="valid"))
        to_tern(folder, "small", small, torch.randn(3, 1, 5, 7))
        images = nn.Sequential(nn.ConstantPad2d((1, 2, 0, 1), 1.5), nn.ZeroPad2d(1), nn.ReflectionPad2d((2, 1, 0, 3)), nn.ReplicationPad2d((1, -1, 2, 1)),
                               nn.InstanceNorm2d(4, affine=True, track_running_stats=True), nn.PixelShuffle(2), nn.Dropout2d(0.2), nn.PixelUnshuffle(2), nn.ChannelShuffle(2),
                               nn.Upsample((9, 8), mode="bicubic"), nn.UpsamplingNearest2d(scale_factor=2), nn.UpsamplingBilinear2d((6, 7)),
                               nn.Upsample(scale_factor=(1.2, 1.4), recompute_scale_factor=True), nn.Unfold((2, 1), stride=2), nn.Fold((7, 9), (2, 1), stride=2),
                               nn.InstanceNorm2d(4, eps=1e-3), nn.Flatten(2), nn.ConstantPad1d(1, 2), nn.ReflectionPad1d((1, 2)), nn.ReplicationPad1d(2),
                               nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2), nn.InstanceNorm1d(6, momentum=0.3), nn.Dropout1d(0.1, True),
                               nn.ConvTranspose1d(6, 3, 2, bias=False, dilation=2), nn.Upsample(scale_factor=1.5, mode="linear", align_corners=True), nn.AdaptiveAvgPool1d(7), nn.AdaptiveMaxPool1d(5))
        if hasattr(nn, "CircularPad1d"):  # since PyTorch 2.1
            images = nn.Sequential(nn.CircularPad2d((1, 2, 0, 1)), images, nn.ZeroPad1d((1, 0)), nn.CircularPad1d(1))
        to_tern(folder, "images", images, torch.randn(3, 4, 5, 7))
        volumes = nn.Sequential(nn.Conv3d(2, 4, (2, 3, 2), (2, 1, 1), (1, 0, 1), (1, 2, 1), groups=2), nn.BatchNorm3d(4), nn.Conv3d(4, 4, 3, padding="same", bias=False),
                                nn.MaxPool3d((1, 2, 2), 1), nn.ConvTranspose3d(4, 3, 2, (1, 2, 1), 0, (0, 1, 0)), nn.InstanceNorm3d(3, affine=True), nn.Dropout3d(0.2),
                                nn.AvgPool3d(2, (1, 2, 1), divisor_override=3), nn.AdaptiveAvgPool3d((2, None, 3)), nn.AdaptiveMaxPool3d((2, 1, 2)), nn.AlphaDropout(0.3, True), nn.FeatureAlphaDropout(), nn.ConstantPad3d((1, 0, 2, 1, 0, 1), 1.5), nn.ReflectionPad3d(1), nn.ReplicationPad3d((1, 0, 2, 1, 0, 1)))
        if hasattr(nn, "CircularPad3d"):  # since PyTorch 2.1
            volumes = nn.Sequential(volumes, nn.CircularPad3d(1), nn.ZeroPad3d((1, 0, 2, 1, 0, 1)))
        if hasattr(nn, "LPPool3d"):  # since PyTorch 2.3
            volumes = nn.Sequential(volumes, nn.Sigmoid(), nn.LPPool3d(3, 2, stride=(1, 2, 2)))
        to_tern(folder, "volumes", volumes, torch.randn(2, 2, 6, 9, 5))
        to_tern(folder, "projected", nn.LSTM(4, 5, 2, bidirectional=True, proj_size=3), torch.randn(5, 2, 4))
        words = nn.Sequential(nn.Embedding(10, 4, padding_idx=1), nn.LayerNorm(4, elementwise_affine=False))
        to_tern(folder, "words", words, torch.randint(0, 10, (2, 3)))
        normed = nn.Sequential(nn.Embedding(10, 4, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True), nn.RReLU(0.25, 0.5), nn.RReLU(inplace=True))
        normed(torch.arange(10))  # the rows have their norms by now
        to_tern(folder, "normed words", normed, torch.randint(0, 10, (2, 3)))
        to_tern(folder, "bags", nn.Sequential(nn.EmbeddingBag(10, 4, max_norm=100.0, mode="sum", padding_idx=2), nn.ReLU()), torch.randint(0, 10, (2, 3)))
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", batch_first=True, norm_first=True), 2, nn.LayerNorm(8))
        encoder.layers[1].norm2.eps = 1e-3
        to_tern(folder, "transformer", encoder, torch.randn(3, 5, 8))
        to_tern(folder, "encoder layer", nn.TransformerEncoderLayer(8, 4, 12, 0.2), torch.randn(5, 3, 8))
        for name, kind in (("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN)):
            to_tern(folder, name, kind(4, 3), torch.randn(5, 2, 4))
            wide = {"bias": False} if name == "gru" else {"nonlinearity": "relu"} if name == "rnn" else {}
            again = to_tern(folder, name, kind(4, 3, 2, batch_first=True, dropout=0.5, bidirectional=True, **wide), torch.randn(5, 2, 4))
            again(torch.randn(5, 2, 4))[0].sum().backward()  # the lists of its weights hold the parameters themselves
            assert all(p.grad is not None for p in again.parameters())
        for name, cell in (("lstm cell", nn.LSTMCell(4, 3)), ("gru cell", nn.GRUCell(4, 3, bias=False)), ("rnn cell", nn.RNNCell(4, 3, nonlinearity="relu"))):
            to_tern(folder, name, cell, torch.randn(2, 4))
        losses_through_tern(folder)
        classes_through_tern(folder)
        torch.save(nn.FractionalMaxPool2d(2, 2), folder / "fractional.pt")
        try:
            run("run", folder / "fractional.pt", folder / "data.pt", folder / "out.pt")
            raise AssertionError("a FractionalMaxPool2d was read")
        except RuntimeError as error:
            assert "torch.nn.modules.pooling.FractionalMaxPool2d, which Tern does not have" in str(error), error
    print(f"PyTorch {torch.__version__}: whole models agree")


main()

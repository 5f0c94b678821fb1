# What `tern train` writes, opened with real PyTorch: the weights of LeNet give the same logits on every test picture of
# MNIST, and the checkpoint's optimizer goes on in PyTorch. Without the real MNIST, random pictures in its format.

import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

program = os.environ["TERN_PROGRAM"]
names = {"train": "train", "test": "t10k"}


class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(6, 16, 5)
        self.fc1 = torch.nn.Linear(400, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


def write_random_mnist(folder):
    generator = np.random.default_rng(0)
    for part, count in (("train", 2000), ("test", 500)):
        images = generator.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = generator.integers(0, 10, count, dtype=np.uint8)
        with open(f"{folder}/{names[part]}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">IIII", 0x803, count, 28, 28) + images.tobytes())
        with open(f"{folder}/{names[part]}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + labels.tobytes())


def read_test_part(folder):
    def read(path, header):
        if os.path.exists(path + ".gz"):
            with gzip.open(path + ".gz") as file:
                return np.frombuffer(file.read(), np.uint8, offset=header)
        return np.fromfile(path, np.uint8, offset=header)

    images = read(f"{folder}/t10k-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    labels = read(f"{folder}/t10k-labels-idx1-ubyte", 8)
    x = (torch.tensor(images).float() / 255 - 0.1307) / 0.3081
    return x, torch.tensor(labels).long()


def run(*arguments):
    environment = {"TERN_NUM_THREADS": "1", **os.environ}
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def load(path, **options):
    # torch 1.13 refuses every float with weights_only, which a learning rate is.
    if torch.__version__.startswith("1."):
        return torch.load(path, **options)
    return torch.load(path, weights_only=True, **options)


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(os.environ.get("TERN_SHARED_DIR", "/nonexistent"), "data", "mnist")
        if not os.path.isdir(data):
            data = folder
            write_random_mnist(folder)
        out = f"{folder}/run"
        run("train", "--data", f"mnist:{data}", "--limit", "6000", "--epochs", "1", "--seed", "3", "--out", out)
        result = json.loads(run("eval", "--checkpoint", f"{out}/lenet.pt", "--data", f"mnist:{data}", "--json",
                                "--save-outputs", f"{folder}/outputs.pt"))

        weights = torch.load(f"{out}/lenet.pt", weights_only=True)
        net = LeNet().eval()
        print(net.load_state_dict(weights))
        x, y = read_test_part(data)
        with torch.no_grad():
            theirs = torch.cat([net(part) for part in x.split(500)])
        ours = load(f"{folder}/outputs.pt")
        assert torch.equal(ours["targets"], y)
        difference = (ours["outputs"] - theirs).abs().max().item()
        print(f"{len(y)} pictures: largest difference of a logit {difference:.2e} (largest logit {theirs.abs().max():.1f})")
        assert ours["outputs"].shape == theirs.shape and difference < 1e-4, difference
        assert abs(result["loss"] - F.cross_entropy(theirs, y).item()) < 1e-5, result["loss"]
        accuracy = (theirs.argmax(1) == y).double().mean().item()
        print(f"accuracy {result['accuracy']:.4f} and {accuracy:.4f}")
        assert abs(result["accuracy"] - accuracy) < 2.5 / len(y)

        checkpoint = load(f"{out}/checkpoint.pt")
        assert checkpoint["epoch"] == 1 and checkpoint["model"].keys() == weights.keys()
        assert all(torch.equal(checkpoint["model"][name], weights[name]) for name in weights)
        optimizer = torch.optim.Adam(net.parameters())
        optimizer.load_state_dict(checkpoint["optimizer"])
        F.cross_entropy(net(x[:10]), y[:10]).backward()
        optimizer.step()
        state = optimizer.state[net.fc3.bias]
        assert state["step"] == checkpoint["step"] + 1, (state["step"], checkpoint["step"])
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1, total_steps=checkpoint["step"])
        schedule.load_state_dict(checkpoint["scheduler"])
        assert schedule.last_epoch == checkpoint["step"]
    print("ok")


if __name__ == "__main__":
    sys.exit(main())

# A LeNet that the program trained opens in real PyTorch with weights_only=True, and gives the same logits there within
# 1e-4 on every test picture: of MNIST where TERN_SHARED_DIR has it, else of the built-in digits.
import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

PROGRAM, TOOL = os.environ["TERN_PROGRAM"], os.environ["TERN_LOGITS_TOOL"]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


def main():
    mnist = os.path.join(os.environ.get("TERN_SHARED_DIR", ""), "data", "mnist")
    source = mnist if os.path.isdir(mnist) else "digits"
    data = f"mnist:{mnist}" if source == mnist else "digits"
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        limit = ["--limit", "2000"] if os.environ.get("TERN_SANITIZE") else []
        subprocess.run([PROGRAM, "train", "--model", "lenet", "--data", data, "--epochs", "1", "--out", run, *limit], check=True)
        weights = os.path.join(run, "lenet.pt")
        results = os.path.join(folder, "logits.pt")
        subprocess.run([TOOL, weights, source, results], check=True)
        net = LeNet().eval()
        net.load_state_dict(torch.load(weights, weights_only=True))
        ours = torch.load(results, weights_only=True)
        with torch.no_grad():
            theirs = net(ours["pictures"])
        if source == mnist:
            assert ours["pictures"].shape == (10000, 1, 28, 28), ours["pictures"].shape
        difference = (theirs - ours["logits"]).abs().max().item()
        assert difference < 1e-4, f"logits differ by {difference}"
        assert theirs.abs().max() > 1, "the logits say nothing"
        print(f"{len(theirs)} pictures of {source if source == 'digits' else 'MNIST'}: logits differ by at most {difference:.2g}")


if __name__ == "__main__":
    sys.exit(main())

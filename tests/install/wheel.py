"""Trains a step with the package in the folder sys.argv[1], which must be the one that is found, and take the library from there."""

import pathlib
import sys

import tern

folder = pathlib.Path(sys.argv[1]).resolve()
assert pathlib.Path(tern.__file__).resolve().parent == folder, tern.__file__
libraries = {line.split()[-1] for line in open("/proc/self/maps") if "/libtern.so" in line}
assert [pathlib.Path(library).parent for library in libraries] == [folder], libraries
assert not [path for path in folder.rglob("*") if path.is_symlink()]

net = tern.nn.Linear(2, 1)
optimizer = tern.optim.SGD(net.parameters(), lr=0.1)
x = tern.tensor([[1.0, 2.0], [3.0, 4.0]])
losses = []
for _ in range(2):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[1] != losses[0], losses
print("a training step")

# A run that PyTorch began goes on in Tern with the same losses, and back: model, optimizer and schedule, on the CPU and in
# DataParallel over 2 and 4 GPUs (simulated ones or, with TERN_TEST_DEVICE, parts of the real one); on the CPU also the random state,
# so that dropout drops the same.
import os
import subprocess
import sys
import tempfile
from inspect import signature

import torch
from torch import nn

TOOL = os.environ["TERN_RESUME_TOOL"]
SHARE = 6
GPUS = "TERN_LOGICAL_GPUS" if "TERN_TEST_DEVICE" in os.environ and "TERN_SIM_GPUS" not in os.environ else "TERN_SIM_GPUS"
SCHEDULES = torch.optim.lr_scheduler


class Net(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.hidden, self.output, self.p = nn.Linear(8, 16), nn.Linear(16, 3), p

    def forward(self, x):
        return self.output(nn.functional.dropout(torch.tanh(self.hidden(x)), self.p, self.training))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.99), weight_decay=0.01),
    "AMSGrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
}
# Older versions of PyTorch do not have it.
DECOUPLED = {"decoupled_weight_decay": True} if "decoupled_weight_decay" in signature(torch.optim.NAdam).parameters else {}
MORE_OPTIMIZERS = {
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.1, **DECOUPLED),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.05, betas=(0.9, 0.95), weight_decay=0.1),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.01, betas=(0.8, 0.99)),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=3.0, rho=0.8),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.1),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.5, lambd=0.01, t0=4),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.002, etas=(0.4, 1.3), step_sizes=(1e-5, 0.01)),
    # With a line search, which jumps where rounding decides, no two runs would agree for long.
    "LBFGS": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3, history_size=4),
}
MAKE_SCHEDULE = {
    "StepLR": lambda o: SCHEDULES.StepLR(o, 4, gamma=0.5),
    "CosineAnnealingLR": lambda o: SCHEDULES.CosineAnnealingLR(o, 20, eta_min=1e-4),
    "LambdaLR": lambda o: SCHEDULES.LambdaLR(o, lambda epoch: 1 / (1 + 0.1 * epoch)),
    "SequentialLR": lambda o: SCHEDULES.SequentialLR(
        o, [SCHEDULES.LinearLR(o, 0.5, total_iters=3), SCHEDULES.MultiStepLR(o, [2, 5, 5, 9], gamma=0.5)], [4]),
    "OneCycleLR": lambda o: SCHEDULES.OneCycleLR(o, 0.1, total_steps=40),
}
MORE_SCHEDULES = {
    "PolynomialLR": lambda o: SCHEDULES.PolynomialLR(o, total_iters=30, power=1.5),
    "MultiplicativeLR": lambda o: SCHEDULES.MultiplicativeLR(o, lambda epoch: 1 - 0.5 / epoch),
    "CosineAnnealingWarmRestarts": lambda o: SCHEDULES.CosineAnnealingWarmRestarts(o, 4, T_mult=2),
    "CyclicLR": lambda o: SCHEDULES.CyclicLR(o, 0.001, 0.1, step_size_up=4, mode="triangular2"),
    "ChainedScheduler": lambda o: SCHEDULES.ChainedScheduler(
        [SCHEDULES.ConstantLR(o, factor=0.1, total_iters=8), SCHEDULES.ExponentialLR(o, 0.9)]),
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.001),
}


class Run:
    def __init__(self, optimizer, schedule, dropout=0.0):
        torch.manual_seed(0)
        self.net = Net(dropout)
        self.optimizer = (OPTIMIZERS | MORE_OPTIMIZERS)[optimizer](self.net.parameters())
        self.schedule = (MAKE_SCHEDULE | MORE_SCHEDULES)[schedule](self.optimizer)
        self.inputs, self.targets = torch.randn(16, 8), torch.randint(0, 3, (16,))

    def loss(self):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(self.inputs), self.targets)
        loss.backward()
        return loss

    def steps(self, count):
        losses = []
        for _ in range(count):
            losses.append(self.optimizer.step(self.loss).item())
            self.schedule.step()
        return losses

    def state(self):
        return {"model": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "scheduler": self.schedule.state_dict(),
                "inputs": self.inputs, "targets": self.targets, "dropout": self.net.p, "random": torch.get_rng_state()}

    def load(self, state):
        model = {name[len("module."):] if name.startswith("module.") else name: t for name, t in state["model"].items()}
        self.net.load_state_dict(model)
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["random"])


def go_on(optimizer, schedule, steps, devices, source, target):
    environment = dict(os.environ, **{GPUS: str(devices)}) if devices else dict(os.environ)
    subprocess.run([TOOL, optimizer, schedule, str(steps), str(devices), source, target], check=True, env=environment)
    return torch.load(target, map_location="cpu")


def worst_difference(losses, expected):
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(losses, expected, strict=True))


def check(optimizer, schedule, devices, folder, dropout=0.0):
    expected = Run(optimizer, schedule, dropout).steps(3 * SHARE)
    source, target = os.path.join(folder, "torch.pt"), os.path.join(folder, "tern.pt")
    run = Run(optimizer, schedule, dropout)
    losses = run.steps(SHARE)
    torch.save(run.state(), source)
    state = go_on(optimizer, schedule, SHARE, devices, source, target)
    losses += state["losses"]
    other = Run(optimizer, schedule, dropout)
    other.load(state)
    losses += other.steps(SHARE)
    worst = worst_difference(losses, expected)
    print(f"{optimizer:8} {schedule:27} {devices} GPUs, dropout {dropout}: losses differ by {worst:.1e} at most")
    return worst < 2e-4


def check_chain(folder):
    """PyTorch, then Tern on two devices, four, the CPU and one: each goes on from what the one before it saved."""
    run = Run("Adam", "CosineAnnealingLR")
    losses = run.steps(3)
    path = os.path.join(folder, "0.pt")
    torch.save(run.state(), path)
    for i, devices in enumerate((2, 4, 0, 1)):
        path, source = os.path.join(folder, f"{i + 1}.pt"), path
        losses += go_on("Adam", "CosineAnnealingLR", 3, devices, source, path)["losses"]
    worst = worst_difference(losses, Run("Adam", "CosineAnnealingLR").steps(15))
    print(f"across 2, 4, no and 1 GPUs: losses differ by {worst:.1e} at most")
    return worst < 2e-4


def main():
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for optimizer in OPTIMIZERS:
            for schedule in MAKE_SCHEDULE:
                good &= check(optimizer, schedule, 0, folder)
            good &= check(optimizer, "StepLR", 0, folder, dropout=0.25)
        for optimizer in MORE_OPTIMIZERS:
            good &= check(optimizer, "StepLR", 0, folder)
        for schedule in MORE_SCHEDULES:
            # Older versions of PyTorch cycle no betas, and can not save such a schedule.
            if schedule != "CyclicLR" or DECOUPLED:
                good &= check("Adam", schedule, 0, folder)
        good &= check("LBFGS", "StepLR", 1, folder)
        for devices in (1, 2, 4):
            good &= check("Adam", "OneCycleLR", devices, folder)
        good &= check_chain(folder)
    sys.exit(0 if good else "the losses differ")


main()

"""Optimizers that are written in Python, and those derived from C++'s; the same classes with PyTorch."""

import collections
import copy
import io
import pickle
import unittest

import torch as pytorch

import tern


def classes(torch):
    class Momentum(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1, momentum=0.9, betas=None):
            if lr < 0:
                raise ValueError("lr")
            super().__init__(params, dict(lr=lr, momentum=momentum) if betas is None else dict(lr=lr, betas=betas))

        @torch.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = torch.tensor(0.0)
                        state["buffer"] = torch.zeros_like(p)
                    state["step"] += 1
                    state["buffer"].mul_(group.get("momentum", 0.5)).add_(p.grad)
                    p.add_(state["buffer"], alpha=-group["lr"])
            return loss

    class Counting(torch.optim.SGD):
        def __init__(self, params, lr):
            super().__init__(params, lr=lr, momentum=0.5)
            self.count = 0

        def step(self, closure=None):
            self.count += 1
            return super().step(closure)

    return Momentum, Counting


OURS = classes(tern)
Momentum, Counting = OURS  # where pickle finds them
Momentum.__qualname__, Counting.__qualname__ = "Momentum", "Counting"


def make(torch, which=0, groups=False, **options):
    params = [torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]) + phase) for phase in (0.0, 0.5)]
    given = [{"params": params[:1], "lr": 0.02}, {"params": params[1:]}] if groups else params
    return params, (OURS if torch is tern else classes(torch))[which](given, **options)


def run(params, optimizer, steps=4, schedule=None):
    for _ in range(steps):
        optimizer.zero_grad()
        sum((p ** 2).sum() + p.sin().sum() for p in params).backward()
        optimizer.step()
        if schedule:
            schedule.step()
    return [p.detach().tolist() for p in params]


class Written(unittest.TestCase):
    def close(self, ours, theirs):
        for a, b in zip(ours, theirs):
            pytorch.testing.assert_close(pytorch.tensor(a), pytorch.tensor(b), rtol=1e-5, atol=1e-6)

    def test_steps(self):
        for options in ({}, {"groups": True}, {"which": 1, "lr": 0.1}):
            self.close(*(run(*make(torch, **options)) for torch in (tern, pytorch)))
        params, optimizer = make(tern, 1, lr=0.1)
        run(params, optimizer)
        self.assertEqual(optimizer.count, 4)

    def test_schedules(self):
        rows = [("StepLR", dict(step_size=2, gamma=0.5)), ("CosineAnnealingLR", dict(T_max=4)), ("LambdaLR",
            dict(lr_lambda=lambda e: 0.9 ** e)),
                ("OneCycleLR", dict(max_lr=0.5, total_steps=6)), ("CyclicLR", dict(base_lr=0.01, max_lr=0.1, step_size_up=2)),
                ("ExponentialLR", dict(gamma=0.7))]
        for name, options in rows:
            for kind in ({"momentum": 0.8}, {"betas": (0.8, 0.9)}):
                if name == "CyclicLR" and "betas" in kind:
                    continue  # PyTorch 1.13 has no cycles of betas
                with self.subTest(name, **kind):
                    seen = []
                    for torch in (tern, pytorch):
                        params, optimizer = make(torch, groups=True, **kind)
                        schedule = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
                        run(params, optimizer, 3, schedule)
                        group = optimizer.param_groups[1]
                        seen.append([group["lr"], group["initial_lr"], group.get("momentum", 0), *group.get("betas", ())])
                    self.close(seen[:1], seen[1:])

    def test_groups(self):
        params, optimizer = make(tern)
        self.assertIsInstance(optimizer.param_groups[0], dict)
        self.assertIs(optimizer.param_groups[0]["params"][0], params[0])
        self.assertIsInstance(optimizer.state, collections.defaultdict)
        optimizer.add_param_group({"params": tern.nn.Parameter(tern.ones(1)), "lr": 3.0})
        self.assertEqual([(len(group["params"]), group["lr"], group["momentum"]) for group in optimizer.param_groups], [(2, 0.1,
            0.9), (1, 3.0, 0.9)])
        theirs = make(pytorch)[1]
        theirs.add_param_group({"params": pytorch.nn.Parameter(pytorch.ones(1)), "lr": 3.0})
        self.assertEqual(repr(optimizer).replace("foreach", ""), repr(theirs))
        self.assertEqual(optimizer.defaults, theirs.defaults)
        self.assertIsInstance(optimizer, tern.optim.Optimizer)

    def test_states(self):
        for which in (0, 1):
            options = {"lr": 0.1} if which else {}
            pairs = [make(torch, which, **options) for torch in (tern, pytorch)]
            for params, optimizer in pairs:
                run(params, optimizer, 2)
            for saver, loader in ((tern, pytorch), (pytorch, tern)):
                file = io.BytesIO()
                saver.save(pairs[saver is pytorch][1].state_dict(), file)
                file.seek(0)
                params, optimizer = make(loader, which, **options)
                with loader.no_grad():
                    for p, other in zip(params, pairs[loader is pytorch][0]):
                        p.copy_(other)
                optimizer.load_state_dict(loader.load(file, map_location="cpu"))
                twin = make(loader, which, **options)
                run(*twin, 2)
                self.close(run(params, optimizer, 2), run(*twin, 2))
        params, optimizer = make(tern)
        run(params, optimizer, 1)
        with self.assertRaisesRegex(ValueError, "different number of parameter groups"):
            optimizer.load_state_dict({"state": {}, "param_groups": []})
        with self.assertRaisesRegex(ValueError, "doesn't match the size"):
            optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0], "lr": 1}]})

    def test_closures_and_scalers(self):
        params, optimizer = make(tern)
        loss = (params[0] ** 2).sum()
        loss.backward()
        self.assertEqual(optimizer.step(lambda: loss).item(), 14)
        for which in (0, 1):
            params, optimizer = make(tern, which, lr=0.1)
            before = params[0].tolist()
            scaler = tern.amp.GradScaler("cpu", init_scale=4.0)
            for bad in (True, False):
                optimizer.zero_grad()
                scaler.scale((params[0] * (float("inf") if bad else 1.0)).sum()).backward()
                scaler.step(optimizer)
                scaler.update()
                if bad:
                    self.assertEqual(params[0].tolist(), before)
            self.close([params[0].tolist()], [[number - 0.1 for number in before]])
            self.assertEqual(scaler.get_scale(), 2.0)
            if which:
                self.assertEqual(optimizer.count, 1)

    def test_pickles(self):
        for which in (0, 1):
            params, optimizer = make(tern, which, lr=0.1)
            run(params, optimizer, 2)
            params, twin = pickle.loads(pickle.dumps((params, optimizer)))
            self.assertIs(twin.param_groups[0]["params"][0], params[0])
            self.assertEqual(repr(twin), repr(optimizer))
            expected = make(tern, which, lr=0.1)
            self.close(run(params, twin, 2), run(*expected, 4))
        for name in ("Adam", "RMSprop", "LBFGS"):
            optimizer = getattr(tern.optim, name)([tern.nn.Parameter(tern.ones(2))], lr=0.5)
            self.assertEqual(copy.deepcopy(optimizer).state_dict(), optimizer.state_dict())

    def test_errors(self):
        parameter = tern.nn.Parameter(tern.ones(1))
        for params, error, text in (([], ValueError, "empty parameter list"), (parameter, TypeError, "put it into a list"),
                                    ([3], TypeError, ""), ([{"params": {parameter}}], TypeError, "sets"), ([{}], KeyError, "params")):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                Momentum(params)
        with self.assertRaises(ValueError):
            Momentum([parameter, parameter]) and Momentum([{"params": [parameter]}, {"params": [parameter]}])
        with self.assertRaisesRegex(NotImplementedError, "step"):
            tern.optim.Optimizer([parameter], {}).step()
        with self.assertRaisesRegex(ValueError, "no 'lr'"):
            tern.optim.lr_scheduler.StepLR(tern.optim.Optimizer([parameter], {}), 1)


if __name__ == "__main__":
    unittest.main()

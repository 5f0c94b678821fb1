"""tern.optim: steps, parameter groups, schedules, clipping, scaling and averages, beside PyTorch's."""

import gc
import io
import math
import unittest
import warnings

import torch

import tern
from tern.optim import lr_scheduler, swa_utils


def numbers(library, *shape, phase=0.0):
    """The same tensor of either library."""
    count = math.prod(shape)
    data = library.tensor([math.sin(1.7 * i + phase) for i in range(count)], dtype=library.float32)
    return data.reshape(shape)


def make_params(library):
    return [numbers(library, 3, 2, phase=p).requires_grad_() for p in (0.1, 0.9)]


def run(library, name, steps=6, groups=False, **options):
    """Parameters after some steps of an optimizer, and the optimizer."""
    params = make_params(library)
    given = [{"params": params[:1], "lr": 0.02}, {"params": [params[1]]}] if groups else params
    optimizer = getattr(library.optim, name)(given, **options)
    for step in range(steps):
        optimizer.zero_grad()
        loss = sum(((p - 0.1 * (step + 1)) ** 2).sum() + p.sin().sum() for p in params)
        loss.backward()
        optimizer.step()
    return params, optimizer


def close(a, b, tolerance=2e-5):
    flat = [x.detach().flatten().tolist() for x in (a, b)]
    return len(flat[0]) == len(flat[1]) and all(
        x == y or abs(x - y) <= tolerance * (1 + abs(y)) for x, y in zip(*flat))


OPTIMIZERS = [
    ("SGD", dict(lr=0.1)), ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    ("Adam", dict()), ("Adam", dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1, amsgrad=True)),
    ("AdamW", dict(lr=0.1)), ("RMSprop", dict(lr=0.01, momentum=0.5, centered=True)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.1)), ("Adadelta", dict()), ("Adamax", dict()), ("ASGD", dict(t0=2)),
    ("NAdam", dict(lr=0.1)), ("RAdam", dict(lr=0.1)), ("Rprop", dict()),
]


class Steps(unittest.TestCase):
    def test_muon(self):
        def run(library):
            parameter = library.nn.Parameter(library.arange(12.0).reshape(3, 4) / 10)
            optimizer = library.optim.Muon([parameter], lr=0.1, adjust_lr_fn="match_rms_adamw")
            for step in range(3):
                parameter.grad = library.sin(library.arange(12.0).reshape(3, 4) * 1.3 + step)
                optimizer.step()
            return parameter, optimizer.state_dict()

        ours, state = run(tern)
        self.assertEqual(list(state["state"][0]), ["momentum_buffer"])
        self.assertEqual(state["param_groups"][0]["ns_coefficients"], (3.4445, -4.775, 2.0315))
        with self.assertRaisesRegex(ValueError, "only supports 2D parameters"):
            tern.optim.Muon([tern.nn.Parameter(tern.ones(3))])
        if not hasattr(torch.optim, "Muon"):
            return
        theirs, expected = run(torch)
        self.assertLess((ours.detach().cpu() - tern.from_numpy(theirs.detach().numpy())).abs().max().item(), 3e-3)
        self.assertEqual(set(state["param_groups"][0]), set(expected["param_groups"][0]))

    def test_optimizers_compute_what_pytorch_computes(self):
        for name, options in OPTIMIZERS:
            if name == "NAdam" and torch.__version__ < "2":
                continue  # its products of momenta were rounded then
            for groups in (False, True):
                with self.subTest(name=name, options=options, groups=groups):
                    ours, optimizer = run(tern, name, groups=groups, **options)
                    theirs, reference = run(torch, name, groups=groups, **options)
                    for a, b in zip(ours, theirs):
                        self.assertTrue(close(a, b), (a, b))
                    state, expected = optimizer.state_dict(), reference.state_dict()
                    self.assertEqual([g["params"] for g in state["param_groups"]],
                                     [g["params"] for g in expected["param_groups"]])
                    # Newer PyTorch has more options, and another default of one that makes no difference.
                    for group, wanted in zip(state["param_groups"], expected["param_groups"]):
                        for option in set(wanted) - {"fused"}:
                            self.assertEqual(group[option], wanted[option], option)

    def test_a_state_goes_through_a_file_to_pytorch_and_back(self):
        for name in ("SGD", "Adam", "RMSprop"):
            with self.subTest(name=name):
                options = {"momentum": 0.9} if name == "SGD" else {}
                _, theirs = run(torch, name, lr=0.1, **options)
                file = io.BytesIO()
                torch.save(theirs.state_dict(), file)
                file.seek(0)
                _, ours = run(tern, name, steps=1, lr=0.5, **options)
                ours.load_state_dict(tern.load(file))
                self.assertEqual(ours.param_groups[0]["lr"], 0.1)
                file = io.BytesIO()
                tern.save(ours.state_dict(), file)
                file.seek(0)
                loaded = torch.load(file, map_location="cpu")
                for number, state in theirs.state_dict()["state"].items():
                    for key, value in state.items():
                        if torch.is_tensor(value) and value.dim() > 0:
                            self.assertTrue(close(loaded["state"][number][key], value))
                theirs.load_state_dict(loaded)

    def test_closures(self):
        x = tern.tensor([2.0, -3.0], requires_grad=True)

        def loss():
            optimizer.zero_grad()
            value = ((x - 1) ** 2).sum()
            value.backward()
            return value

        optimizer = tern.optim.SGD([x], lr=0.25)
        self.assertEqual(optimizer.step(loss).item(), 17.0)
        self.assertEqual(optimizer.step(lambda: 3), 3)
        with self.assertRaises(ZeroDivisionError):
            optimizer.step(lambda: 1 / 0)
        optimizer = tern.optim.LBFGS([x], line_search_fn="strong_wolfe")
        for _ in range(3):
            optimizer.step(loss)
        self.assertTrue(close(x, tern.tensor([1.0, 1.0])))
        with self.assertRaisesRegex(ValueError, "closure"):
            optimizer.step()

    def test_wrong_parameters(self):
        x = tern.ones(2, requires_grad=True)
        for params, error, text in [
                (x, TypeError, "iterable of Tensors or dicts"), ([], ValueError, "empty parameter list"),
                ([3], TypeError, "int"), ([{"params": {x}}], TypeError, "ordered"),
                ([{"lr": 1}], ValueError, "params"), ([x, x], ValueError, "twice"),
                ([x * 2], ValueError, "non-leaf"), ([{"params": [x], "lr": "high"}], TypeError, "lr")]:
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                tern.optim.SGD(params, lr=0.1)
        with self.assertRaisesRegex(ValueError, "learning rate"):
            tern.optim.SGD([x], lr=-1)
        with self.assertRaisesRegex(ValueError, "per-parameter"):
            tern.optim.LBFGS([x]).add_param_group({"params": [tern.ones(1, requires_grad=True)]})


class Groups(unittest.TestCase):
    def setUp(self):
        self.params = make_params(tern)

    def test_groups_are_like_dicts(self):
        groups = [{"params": self.params[0], "name": "first"}, {"params": self.params[1:], "lr": 1}]
        optimizer = tern.optim.SGD(groups, lr=0.5, momentum=0.9)
        first, second = optimizer.param_groups
        self.assertIs(first["params"][0], self.params[0])
        self.assertEqual((first["lr"], first["name"]), (0.5, "first"))
        self.assertEqual((second["lr"], second["momentum"]), (1.0, 0.9))
        self.assertEqual(optimizer.defaults["lr"], 0.5)
        for group in optimizer.param_groups:
            group["lr"] *= 0.1
        self.assertAlmostEqual(first["lr"], 0.05)
        first["scale"] = 3
        self.assertEqual(first.setdefault("scale", 4), 3)
        self.assertIn("scale", optimizer.state_dict()["param_groups"][0])
        self.assertEqual({"lr", "params", "momentum"} - set(first), set())
        first["lr"] = tern.tensor(0.25)
        self.assertEqual(first["lr"], 0.25)
        self.assertEqual(tern.optim.SGD(self.params, lr=tern.tensor(0.5)).param_groups[0]["lr"], 0.5)
        with self.assertRaises(KeyError):
            first["nothing"]
        with self.assertRaises(TypeError):
            first["lr"] = "low"
        with self.assertRaises(TypeError):
            first["params"] = []

    def test_a_change_holds_from_the_next_step(self):
        x = tern.ones(1, requires_grad=True)
        optimizer = tern.optim.SGD([x], lr=1.0)
        x.grad = tern.ones(1)
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.25
        optimizer.step()
        self.assertEqual(x.tolist(), [-0.25])

    def test_add_param_group(self):
        optimizer = tern.optim.AdamW(self.params[:1], lr=0.3, weight_decay=0.2)
        optimizer.add_param_group({"params": self.params[1], "lr": 0.1})
        group = optimizer.param_groups[1]
        self.assertEqual((group["lr"], group["weight_decay"]), (0.1, 0.2))
        with self.assertRaisesRegex(ValueError, "more than one"):
            optimizer.add_param_group({"params": self.params[:1]})
        with self.assertRaises(ValueError):
            optimizer.add_param_group({"params": [tern.ones(1, requires_grad=True)], "lr": -1})
        self.assertEqual(len(optimizer.param_groups), 2)

    def test_names_and_iterators(self):
        net = tern.nn.Linear(2, 3)
        optimizer = tern.optim.Adam(net.named_parameters())
        self.assertEqual(optimizer.param_groups[0]["param_names"], ["weight", "bias"])
        self.assertEqual(len(tern.optim.Adam(net.parameters()).param_groups[0]["params"]), 2)

    def test_parameters_of_modules_stay_parameters(self):
        optimizer = tern.optim.SGD(tern.nn.Linear(2, 3).parameters())
        self.assertIsInstance(optimizer.param_groups[0]["params"][0], tern.nn.Parameter)

    def test_state_by_parameter(self):
        x = self.params[0]
        optimizer = tern.optim.Adam(self.params)
        self.assertEqual(optimizer.state, {})
        x.grad = tern.ones(3, 2)
        optimizer.step()
        self.assertEqual(list(optimizer.state), [x])
        self.assertEqual(set(optimizer.state[x]), {"step", "exp_avg", "exp_avg_sq"})
        optimizer.zero_grad()
        self.assertIsNone(x.grad)

    def test_repr(self):
        text = repr(tern.optim.SGD(self.params, lr=0.1))
        self.assertEqual(text.splitlines()[:3], ["SGD (", "Parameter Group 0", "    dampening: 0"])
        self.assertIn("\n    lr: 0.1\n", text)
        theirs = repr(torch.optim.Adadelta(make_params(torch))).splitlines()
        ours = repr(tern.optim.Adadelta(self.params)).splitlines()
        self.assertEqual([line for line in theirs if line not in ours], [])


def factor(epoch):
    return 0.9 ** epoch


SCHEDULES = [
    ("StepLR", dict(step_size=3)), ("StepLR", dict(step_size=2, gamma=0.5)),
    ("MultiStepLR", dict(milestones=[2, 5, 5])), ("ConstantLR", dict(factor=0.5)),
    ("LinearLR", dict(start_factor=0.1, total_iters=4)), ("ExponentialLR", dict(gamma=0.9)),
    ("CosineAnnealingLR", dict(T_max=5, eta_min=0.01)), ("PolynomialLR", dict(total_iters=6, power=2.0)),
    ("LambdaLR", dict(lr_lambda=factor)), ("LambdaLR", dict(lr_lambda=[factor, lambda epoch: 1])),
    ("MultiplicativeLR", dict(lr_lambda=factor)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=[0.1, 0.2], step_size_up=3)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.1, step_size_up=2, scale_fn=lambda x: 1 / x)),
    ("OneCycleLR", dict(max_lr=0.3, total_steps=20)),
    ("OneCycleLR", dict(max_lr=0.3, epochs=4, steps_per_epoch=5)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2)),
]


class Schedules(unittest.TestCase):
    @staticmethod
    def make(library, momentum=0.9):
        first, second = make_params(library)
        groups = [{"params": [first]}, {"params": [second], "lr": 0.4}]
        return library.optim.SGD(groups, lr=0.2, momentum=momentum)

    def test_schedules_give_what_pytorch_gives(self):
        warnings.simplefilter("ignore")
        for name, options in SCHEDULES:
            with self.subTest(name=name, options=options):
                ours = getattr(lr_scheduler, name)(self.make(tern), **options)
                theirs = getattr(torch.optim.lr_scheduler, name)(self.make(torch), **options)
                for _ in range(12):
                    self.assertEqual(ours.get_last_lr(), theirs.get_last_lr())
                    self.assertEqual(ours.last_epoch, theirs.last_epoch)
                    self.assertEqual([g["lr"] for g in ours.optimizer.param_groups], ours.get_last_lr())
                    ours.optimizer.step(), theirs.optimizer.step()
                    ours.step(), theirs.step()
                self.assertEqual(ours.base_lrs, theirs.base_lrs)
                again = getattr(lr_scheduler, name)(self.make(tern), **options)
                again.load_state_dict(ours.state_dict())
                self.assertEqual((again.last_epoch, again.get_last_lr()), (12, ours.get_last_lr()))

    def test_plateau(self):
        def rates(library):
            optimizer = self.make(library)
            schedule = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", 0.5, patience=1)
            result = []
            for metric in (3, 2, 2.5, library.tensor(2.5), 2.5, 2.5, 1, 1.5, 1.5, 1.5):
                schedule.step(metric)
                result.append([group["lr"] for group in optimizer.param_groups])
            return result

        self.assertEqual(rates(tern), rates(torch))

    def test_schedules_of_schedules(self):
        optimizer = self.make(tern)
        warmup = lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
        decay = lr_scheduler.ExponentialLR(optimizer, 0.5)
        schedule = lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[2])
        rates = []
        for _ in range(4):
            rates.append(schedule.get_last_lr()[0])
            schedule.step()
        self.assertEqual(rates, [0.1, 0.15000000000000002, 0.2, 0.1])
        optimizer = self.make(tern)
        chained = lr_scheduler.ChainedScheduler(
            [lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.ConstantLR(optimizer, 0.5, 1)])
        self.assertEqual(chained.get_last_lr()[0], 0.1)
        with self.assertRaises(ValueError):
            lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(optimizer, 0.5)], self.make(tern))

    def test_a_schedule_keeps_its_optimizer(self):
        def make():
            optimizer = self.make(tern)
            return lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(optimizer, 1, 0.5)])

        schedule = make()
        gc.collect()
        schedule.step()
        self.assertEqual(schedule.get_last_lr(), [0.1, 0.2])
        self.assertEqual(len(schedule.optimizer.param_groups), 2)

    def test_schedules_written_in_python(self):
        class Root(lr_scheduler.LRScheduler):
            def __init__(self, optimizer, power):
                self.power = power
                super().__init__(optimizer)

            def get_lr(self):
                return [lr * (self.last_epoch + 1) ** -self.power for lr in self.base_lrs]

        schedule = Root(self.make(tern), 0.5)
        self.assertIsInstance(lr_scheduler.StepLR(self.make(tern), 1), lr_scheduler.LRScheduler)
        rates = []
        for _ in range(3):
            rates.append(schedule.get_last_lr())
            schedule.step()
        self.assertEqual(rates, [[0.2 * k ** -0.5, 0.4 * k ** -0.5] for k in (1, 2, 3)])
        self.assertEqual((schedule.last_epoch, schedule.optimizer.param_groups[0]["lr"]), (3, 0.1))
        with self.assertRaisesRegex(NotImplementedError, "get_lr"):
            lr_scheduler.LRScheduler(self.make(tern))

    def test_attributes_and_errors(self):
        schedule = lr_scheduler.StepLR(self.make(tern), 3, gamma=0.5)
        self.assertEqual((schedule.step_size, schedule.gamma, schedule.base_lrs), (3, 0.5, [0.2, 0.4]))
        with self.assertRaises(AttributeError):
            schedule.nothing
        with self.assertRaisesRegex(TypeError, "not an Optimizer"):
            lr_scheduler.StepLR(tern.nn.Linear(1, 1), 3)
        with self.assertRaisesRegex(NotImplementedError, "load_state_dict"):
            lr_scheduler.StepLR(self.make(tern), 3, last_epoch=5)
        failing = lr_scheduler.LambdaLR(self.make(tern), lambda epoch: 1 / (1 - epoch))
        with self.assertRaises(ZeroDivisionError):
            failing.step()


class Gradients(unittest.TestCase):
    def test_clipping(self):
        params = [tern.ones(2, requires_grad=True) for _ in range(2)]
        for p in params:
            p.grad = tern.tensor([3.0, -4.0])
        utils = tern.nn.utils
        self.assertAlmostEqual(utils.clip_grad_norm_(iter(params), 1.0).item(), math.sqrt(50), places=5)
        self.assertTrue(close(params[0].grad, tern.tensor([3.0, -4.0]) / math.sqrt(50)))
        utils.clip_grad_value_(params[0], 0.5)
        self.assertEqual(params[0].grad[1].item(), -0.5)
        params[0].grad = tern.tensor([math.inf, 0.0])
        with self.assertRaisesRegex(ValueError, "non-finite"):
            utils.clip_grad_norm_(params, 1.0, norm_type=math.inf, error_if_nonfinite=True)

    def test_scaler(self):
        x = tern.ones(2, requires_grad=True)
        optimizer = tern.optim.SGD([x], lr=0.5)
        scaler = tern.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
        scaler.scale((x * x).sum()).backward()
        self.assertEqual(x.grad.tolist(), [16.0, 16.0])
        scaler.unscale_(optimizer)
        self.assertEqual(x.grad.tolist(), [2.0, 2.0])
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual((x.tolist(), scaler.get_scale()), ([0.0, 0.0], 16.0))
        x.grad = tern.tensor([math.nan, 1.0])
        scaler.scale(x)
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual((x.tolist(), scaler.get_scale()), ([0.0, 0.0], 8.0))
        other = tern.amp.GradScaler(init_scale=2.0)
        other.load_state_dict(scaler.state_dict())
        self.assertEqual(other.get_scale(), 8.0)
        self.assertEqual([t.item() for t in other.scale([tern.tensor(1.0), tern.tensor(2.0)])], [8.0, 16.0])
        self.assertFalse(tern.amp.GradScaler(enabled=False).is_enabled())
        with self.assertRaisesRegex(RuntimeError, "unscale_"):
            scaler.unscale_(optimizer)
            scaler.unscale_(optimizer)


class Averages(unittest.TestCase):
    @staticmethod
    def averaged(library, **options):
        net = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.BatchNorm1d(2))
        average = library.optim.swa_utils.AveragedModel(net, **options)
        for step in range(3):
            with library.no_grad():
                for parameter in net.parameters():
                    parameter.copy_(numbers(library, *parameter.shape, phase=step))
            average.update_parameters(net)
        return average, net

    def test_averages_are_pytorchs(self):
        ema = dict(avg_fn=lambda average, new, _: 0.9 * average + 0.1 * new)
        for options in ({}, ema):
            ours, theirs = (self.averaged(library, **options)[0] for library in (tern, torch))
            self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
            for a, b in zip(ours.state_dict().values(), theirs.state_dict().values()):
                self.assertTrue(close(a, b), (a, b))

    def test_functions_of_lists(self):
        fn = swa_utils.get_ema_multi_avg_fn(0.9)
        by_c, _ = self.averaged(tern, multi_avg_fn=fn)
        each, _ = self.averaged(tern, avg_fn=swa_utils.get_ema_avg_fn(0.9))
        for a, b in zip(by_c.parameters(), each.parameters()):
            self.assertTrue(close(a, b))
        self.assertEqual(by_c.n_averaged.item(), 3)
        self.assertEqual(by_c(tern.ones(4, 2)).shape, (4, 2))

    def test_update_bn(self):
        average, net = self.averaged(tern)
        average.eval()
        data = [(numbers(tern, 8, 2, phase=p), tern.zeros(8)) for p in range(3)]
        swa_utils.update_bn(data, average)
        hidden = tern.cat([average.module[0](x) for x, _ in data])
        self.assertTrue(close(average.module[1].running_mean, hidden.mean(0)))
        self.assertFalse(average.training)
        schedule = swa_utils.SWALR(tern.optim.SGD(net.parameters(), lr=1.0), swa_lr=0.5, anneal_epochs=2)
        schedule.step()
        self.assertAlmostEqual(schedule.get_last_lr()[0], 0.75)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# Writes tests/optim/tables.h: what PyTorch's optimizers and schedules give, for tests/optim/. Run with a Python that has
# PyTorch 2.x:  python3 tests/support/make_optim_tables.py > tests/optim/tables.h

import math

import torch

L = torch.optim.lr_scheduler
SWALR = torch.optim.swa_utils.SWALR

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict(lr=0.05)),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.05, weight_decay=0.1)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.05, momentum=0.9)),
    "sgd_dampening": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.02)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.02)),
    "sgd_maximize": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, maximize=True)),
    "adam": (torch.optim.Adam, dict(lr=0.05)),
    "adam_decay": (torch.optim.Adam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    "adam_amsgrad": (torch.optim.Adam, dict(lr=0.05, amsgrad=True)),
    "adam_far": (torch.optim.Adam, dict(lr=0.05, betas=(0.4, 0.9))),
    "adam_maximize": (torch.optim.Adam, dict(lr=0.05, maximize=True)),
    "adamw": (torch.optim.AdamW, dict(lr=0.05)),
    "adamw_amsgrad": (torch.optim.AdamW, dict(lr=0.05, weight_decay=0.3, amsgrad=True)),
    "rmsprop": (torch.optim.RMSprop, dict(lr=0.02)),
    "rmsprop_momentum": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.9, momentum=0.8, weight_decay=0.05)),
    "rmsprop_centered": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.9, centered=True, eps=1e-2)),
    "rmsprop_all": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.9, centered=True, momentum=0.5, maximize=True, eps=1e-2)),
    "adagrad": (torch.optim.Adagrad, dict(lr=0.1)),
    "adagrad_all": (torch.optim.Adagrad,
                    dict(lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.2, eps=1e-3)),
    "nadam": (torch.optim.NAdam, dict(lr=0.05)),
    "nadam_decay": (torch.optim.NAdam,
                    dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.1)),
    "nadam_decoupled": (torch.optim.NAdam, dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    "radam": (torch.optim.RAdam, dict(lr=0.05)),
    "radam_decay": (torch.optim.RAdam, dict(lr=0.05, betas=(0.4, 0.9), eps=1e-3, weight_decay=0.1)),
    "radam_decoupled": (torch.optim.RAdam, dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    "adamax": (torch.optim.Adamax, dict(lr=0.05)),
    "adamax_all": (torch.optim.Adamax, dict(lr=0.05, betas=(0.4, 0.9), eps=1e-3, weight_decay=0.1, maximize=True)),
    "adadelta": (torch.optim.Adadelta, dict(lr=2.0)),
    "adadelta_all": (torch.optim.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1, maximize=True)),
    "asgd": (torch.optim.ASGD, dict(lr=0.05)),
    "asgd_all": (torch.optim.ASGD, dict(lr=0.05, lambd=0.01, alpha=0.6, t0=5, weight_decay=0.1, maximize=True)),
    "rprop": (torch.optim.Rprop, dict(lr=0.05)),
    "rprop_all": (torch.optim.Rprop, dict(lr=0.02, etas=(0.4, 1.3), step_sizes=(0.01, 0.1), maximize=True)),
}

LBFGS = {
    "plain": dict(lr=0.02, max_iter=5),
    "wolfe": dict(line_search_fn="strong_wolfe"),
    "wolfe_short": dict(lr=0.5, max_iter=6, max_eval=9, history_size=2, line_search_fn="strong_wolfe", maximize=True),
}

SCHEDULES = {
    "step": lambda o: L.StepLR(o, 7, gamma=0.5),
    "multi_step": lambda o: L.MultiStepLR(o, [5, 5, 20, 33], gamma=0.3),
    "constant": lambda o: L.ConstantLR(o, factor=0.25, total_iters=9),
    "linear": lambda o: L.LinearLR(o, start_factor=0.1, end_factor=0.9, total_iters=30),
    "exponential": lambda o: L.ExponentialLR(o, 0.93),
    "cosine": lambda o: L.CosineAnnealingLR(o, 20, eta_min=0.01),
    "lambda": lambda o: L.LambdaLR(o, lambda epoch: 1.0 / (1 + 0.1 * epoch)),
    "one_cycle": lambda o: L.OneCycleLR(o, 0.5, total_steps=50),
    "one_cycle_linear": lambda o: L.OneCycleLR(o, 0.5, epochs=5, steps_per_epoch=10, pct_start=0.4, anneal_strategy="linear",
                                               div_factor=10.0, final_div_factor=100.0),
    "one_cycle_three": lambda o: L.OneCycleLR(o, 0.5, total_steps=50, pct_start=0.35, three_phase=True),
    "sequential": lambda o: L.SequentialLR(
        o, [L.LinearLR(o, start_factor=0.1, total_iters=5), L.ExponentialLR(o, 0.9), L.CosineAnnealingLR(o, 30)], [5, 20]),
    "polynomial": lambda o: L.PolynomialLR(o),
    "polynomial_power": lambda o: L.PolynomialLR(o, total_iters=40, power=2.5),
    "multiplicative": lambda o: L.MultiplicativeLR(o, lambda epoch: 1.0 - 0.1 / epoch),
    "restarts": lambda o: L.CosineAnnealingWarmRestarts(o, 7),
    "restarts_longer": lambda o: L.CosineAnnealingWarmRestarts(o, 5, T_mult=2, eta_min=0.01),
    "cyclic": lambda o: L.CyclicLR(o, 0.1, 0.5, step_size_up=8),
    "cyclic_halved": lambda o: L.CyclicLR(o, 0.1, 0.5, step_size_up=6, step_size_down=3, mode="triangular2"),
    "cyclic_exp": lambda o: L.CyclicLR(o, 0.1, 0.5, step_size_up=6, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic_function": lambda o: L.CyclicLR(o, 0.1, 0.5, step_size_up=6, scale_fn=lambda x: 1 / x, base_momentum=0.6),
    "chained": lambda o: L.ChainedScheduler([L.ConstantLR(o, factor=0.1, total_iters=6), L.ExponentialLR(o, 0.9)]),
    "chained_first": lambda o: L.SequentialLR(
        o, [L.ChainedScheduler([L.ConstantLR(o, factor=0.5, total_iters=3), L.ExponentialLR(o, 0.9)]),
            L.CosineAnnealingWarmRestarts(o, 30)], [10]),
    "restarts_first": lambda o: L.SequentialLR(o, [L.CosineAnnealingWarmRestarts(o, 4), L.PolynomialLR(o, 30)], [10]),
    "swa": lambda o: SWALR(o, 0.05),
    "swa_linear": lambda o: SWALR(o, 0.05, anneal_epochs=7, anneal_strategy="linear"),
    "swa_at_once": lambda o: SWALR(o, 0.05, anneal_epochs=0),
}
MOMENTA = ("one_cycle", "one_cycle_linear", "one_cycle_three", "cyclic", "cyclic_halved", "cyclic_function")


def gradient(step, place):
    return math.sin(0.7 * step + 1.3 * place) * (1 + 0.1 * place)


def numbers(values):
    return ", ".join(repr(float(v)) for v in values)


def run_optimizer(cls, options):
    params = [torch.nn.Parameter(torch.tensor([[0.5, -1.0, 2.0], [0.25, 0.0, -3.0]])),
              torch.nn.Parameter(torch.tensor([1.0, -0.5, 0.125, 4.0]))]
    optimizer = cls(params, foreach=False, **options)
    for step in range(20):
        place = 0
        for i, p in enumerate(params):
            values = [gradient(step, place + k) for k in range(p.numel())]
            place += p.numel()
            # The second parameter has no gradient in the first three steps.
            p.grad = None if i == 1 and step < 3 else torch.tensor(values, dtype=torch.float64).float().view(p.shape)
        optimizer.step()
    return [v for p in params for v in p.detach().flatten().tolist()]


def run_lbfgs(options):
    params = [torch.nn.Parameter(torch.tensor([[0.5, -1.0, 2.0], [0.25, 0.0, -3.0]], dtype=torch.float64)),
              torch.nn.Parameter(torch.tensor([1.0, -0.5, 0.125, 4.0], dtype=torch.float64))]
    optimizer = torch.optim.LBFGS(params, **options)

    def closure():
        optimizer.zero_grad()
        x = torch.cat([p.flatten() for p in params])
        loss = (1 - x[:-1]).square().sum() + 2 * (x[1:] - x[:-1].square()).square().sum()
        if options.get("maximize"):
            loss = -loss
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(4)]
    state = optimizer.state_dict()["state"][0]
    return [state["n_iter"], state["func_evals"], *losses, *(v for p in params for v in p.detach().flatten().tolist())]


def run_schedule(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.4, momentum=0.7)
    schedule = make(optimizer)
    lrs, momenta = [], []
    for _ in range(50):
        lrs.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step()
    return lrs, momenta


def run_plateau():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.4)
    schedule = L.ReduceLROnPlateau(optimizer, factor=0.5, patience=2, cooldown=1, threshold=0.01, min_lr=0.02)
    lrs = []
    for epoch in range(50):
        schedule.step(1.0 / (1 + epoch) if epoch < 10 else 0.1 + 0.01 * math.sin(epoch))
        lrs.append(optimizer.param_groups[0]["lr"])
    return lrs


def main():
    print("// Results of PyTorch " + torch.__version__.split("+")[0] + ", written by tests/support/make_optim_tables.py; what")
    print("// was run is described there.")
    print("// clang-format off")
    print("#pragma once\n")
    print("#include <vector>\n")
    print("namespace tern::tables {\n")
    print("struct Row {\n  const char* name;\n  std::vector<double> values;\n};\n")
    print("/// The ten elements of two parameters after 20 steps.")
    print("inline const std::vector<Row> optimizers = {")
    for name, (cls, options) in OPTIMIZERS.items():
        print(f'    {{"{name}", {{{numbers(run_optimizer(cls, options))}}}}},')
    print("};\n")
    print("/// Iterations, evaluations, the losses of 4 steps, and the ten elements after them.")
    print("inline const std::vector<Row> lbfgs = {")
    for name, options in LBFGS.items():
        print(f'    {{"{name}", {{{numbers(run_lbfgs(options))}}}}},')
    print("};\n")
    print("/// The learning rates before each of 50 steps.")
    print("inline const std::vector<Row> schedules = {")
    momenta = {}
    for name, make in SCHEDULES.items():
        lrs, momenta[name] = run_schedule(make)
        print(f'    {{"{name}", {{{numbers(lrs)}}}}},')
    print(f'    {{"plateau", {{{numbers(run_plateau())}}}}},')
    print("};\n")
    print("/// The momenta that go with them.")
    print("inline const std::vector<Row> momenta = {")
    for name in MOMENTA:
        print(f'    {{"{name}", {{{numbers(momenta[name])}}}}},')
    print("};\n")
    print("}  // namespace tern::tables")


main()

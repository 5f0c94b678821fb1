# Rows of tern/ops/loss.h and loss_margin.h.

import torch
from torch.nn import functional as F

from .driver import VERSION, Row
from .inputs import FLOATS, INF, NAN, WIDE, integers, make

REDUCTIONS = ("mean", "sum", "none")


def classes(log_probabilities):
    """(input, target, weight, ignore_index, reduction[, label_smoothing])."""
    def cases():
        for dtype in FLOATS:
            for shape, target in (((4, 5), (4,)), ((5,), ()), ((2, 5, 3), (2, 3)), ((2, 5, 3, 2), (2, 3, 2)), ((1, 5), (1,))):
                x, t = make(shape, dtype), integers(target, 0, 5)
                if log_probabilities:
                    x = torch.log_softmax(x.float(), 0 if len(shape) == 1 else 1).to(dtype)
                for reduction in REDUCTIONS:
                    yield x, t, None, -100, reduction
                    yield x, t, make((5,), dtype, 2, 0.2, 2.0), 2, reduction
                    if not log_probabilities:
                        yield x, t, None, 1, reduction, 0.1
                        yield x, t, make((5,), dtype, 2, 0.2, 2.0), -100, reduction, 0.3
                        yield x, torch.softmax(make(shape, dtype, 5).float(), 0 if len(shape) == 1 else 1).to(dtype), None, -100, reduction, 0.1
        x = make((300, 10))
        yield x, integers((300,), 0, 10), None, -100, "mean"
        yield make((10, 300)).t(), integers((300,), 0, 10), None, -100, "mean"
        yield make((3, 5)) * 1e4, torch.tensor([0, 1, 2]), None, -100, "mean"
        yield make((2, 5)), torch.tensor([3, 3]), None, 3, "mean"
        yield make((0, 5)), torch.zeros(0, dtype=torch.int64), None, -100, "mean"
        yield make((0, 5)), torch.zeros(0, dtype=torch.int64), None, -100, "sum"
        for bad in ((make((4, 5)), torch.tensor([0, 1, 2, 5])), (make((4, 5)), torch.tensor([0, 1, 2, -1])), (make((4, 5)), torch.tensor([0, 1, 2])),
                    (make((4, 5)), torch.tensor([0.0, 1, 2, 3])), (make((4, 5)), torch.tensor([0, 1, 2, 3]), make((4,)))):
            yield bad if len(bad) == 3 else (*bad, None)
        yield make((4, 5)), torch.tensor([0, 1, 2, 3]), None, -100, "average"
    return cases


def cross_entropy(x, t, weight=None, ignore=-100, reduction="mean", smoothing=0.0):
    return F.cross_entropy(x, t, weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing)


def nll(x, t, weight=None, ignore=-100, reduction="mean"):
    return F.nll_loss(x, t, weight, ignore_index=ignore, reduction=reduction)


def pairs(*parameters, mixed_since=(2, 0)):
    def cases():
        for dtype in FLOATS:
            for a, b in (((3, 5), (3, 5)), ((), ()), ((0,), (0,)), ((3, 5), (5,)), ((7,), (7,))):
                for reduction in REDUCTIONS:
                    for parameter in parameters or (None,):
                        yield (make(a, dtype), make(b, dtype, 1), reduction) + (() if parameter is None else (parameter,))
        yield make((5, 3)).t(), make((3, 5), seed=1)
        if VERSION >= mixed_since:  # older ones raise in the gradient, huber_loss always does
            for a in FLOATS:
                for b in FLOATS:
                    if a != b:
                        yield make((3, 5), a), make((3, 5), b, 1)
                        yield make((3, 5), a), make((3, 5), b, 1), "none"
        yield make((1,)), make((1,), seed=1)
        yield torch.tensor([1.0, NAN, INF, -INF, INF]), torch.tensor([1.0, 2.0, 3.0, 4.0, INF]), "none"
        yield make((40000,)), make((40000,), seed=1)
        yield make((3,)), make((4,))
        yield make((3,)), make((3,)), "average"
        for parameter in (-1.0,) if parameters else ():
            yield make((3,)), make((3,)), "mean", parameter
    return cases


def probabilities(logits):
    def cases():
        for dtype in FLOATS:
            for shape in ((3, 5), (), (0,), (7,)):
                x = make(shape, dtype) if logits else make(shape, dtype, 0, 0.05, 0.95)
                t = make(shape, dtype, 1, 0.0, 1.0)
                for reduction in REDUCTIONS:
                    more = (None, None, reduction) if logits else (None, reduction)
                    yield (x, t, *more)
                    if shape == (3, 5):
                        weight = make((5,), dtype, 2, 0.2, 2.0)
                        yield (x, t, weight, weight.flip(0), reduction) if logits else (x, t, weight, reduction)
        if logits:
            yield torch.tensor([100.0, -100.0, 1e30, 0.0]), torch.tensor([0.0, 1.0, 1.0, 0.5])
        else:
            yield torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0])
            yield torch.tensor([1.5]), torch.tensor([1.0])
            yield torch.tensor([-0.5]), torch.tensor([1.0])
        yield make((5, 3), low=0.1, high=0.9).t(), make((3, 5), low=0.1, high=0.9)
        yield make((40000,), low=0.1, high=0.9), make((40000,), seed=1, low=0.1, high=0.9)
        yield make((1,), low=0.1, high=0.9), make((1,), seed=1, low=0.1, high=0.9)
        yield make((3,), low=0.1, high=0.9), make((4,), low=0.1, high=0.9)
    return cases


def bce(x, t, weight=None, reduction="mean"):
    return F.binary_cross_entropy(x, t, weight, reduction=reduction)


def bce_with_logits(x, t, weight=None, pos_weight=None, reduction="mean"):
    return F.binary_cross_entropy_with_logits(x, t, weight, reduction=reduction, pos_weight=pos_weight)


def divergences():
    for dtype in FLOATS:
        for shape in ((3, 5), (5,), (2, 3, 4)):
            x = torch.log_softmax(make(shape).double(), -1).to(dtype)
            t = torch.softmax(make(shape, seed=1).double(), -1).to(dtype)
            for reduction in (*REDUCTIONS, "batchmean"):
                yield x, t, reduction
                yield x, torch.log(t.double()).to(dtype), reduction, True
    yield torch.tensor(-0.5), torch.tensor(0.25)
    yield make((0, 5)), make((0, 5)), "sum"
    yield make((5, 3)).t(), make((3, 5), seed=1, low=0.0)
    yield make((40000,)), make((40000,), seed=1, low=0.0)
    yield make((3,)), make((3,), seed=1, low=0.0), "average"


def kl_div(x, t, reduction="mean", log_target=False):
    return F.kl_div(x, t, reduction=reduction, log_target=log_target)

def mixed():
    """Broadcast pairs of all dtypes, several sizes and reductions."""
    for dtype in FLOATS:
        for a, b in (((3, 5), (3, 5)), ((3, 5), (5,)), ((7,), (7,)), ((), ())):
            for reduction in REDUCTIONS:
                yield make(a, dtype), make(b, dtype, 1), reduction
    yield make((0,)), make((0,)), "sum"
    yield make((5, 3)).t(), make((3, 5), seed=1), "mean"
    yield make((40000,)), make((40000,), seed=1), "mean"
    yield make((3,)), make((4,)), "mean"
    yield make((3,)), make((3,)), "average"


def signs(shape, dtype=torch.float32, seed=9):
    return integers(shape, 0, 2, seed).to(dtype) * 2 - 1


def signed():
    """(input, target, reduction) for targets of 1 and -1, and of other numbers."""
    for x, t, reduction in mixed():
        yield x, signs(t.shape, t.dtype), reduction
    yield make((3, 5)), signs((3, 5), torch.int64), "none"
    yield make((3,)), torch.tensor([0.0, 2.0, 0.5]), "none"


def soft_margins():
    yield from signed()
    yield torch.tensor([30.0, -30.0, 0.0, NAN]), torch.tensor([1.0, -1.0, 1.0, 1.0]), "none"


def hinges():
    for x, t, reduction in signed():
        yield x, t, 1.0, reduction
    yield make((3, 5)), signs((3, 5)), 0.3, "none"
    at_margin = 1.0 if VERSION >= (2, 15) else 1.5  # the gradient there was not 0 before
    yield torch.tensor([0.5, at_margin, 2.0, NAN]), torch.tensor([-1.0, -1.0, -1.0, 1.0]), 1.0, "none"


def rankings():
    for x, t, reduction in mixed():
        yield x, make(x.shape, x.dtype, 2), signs(x.shape, x.dtype), 0.0, reduction
    yield make((3, 1)), make((1, 5)), signs((3, 5), torch.int64), 0.7, "none"
    if VERSION >= (2, 15):  # the gradient at the margin was not 0 before
        yield torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0]), 0.0, "none"
    yield make((3, 5)), make((3, 5), seed=1), signs((5,)), 0.0, "mean"


def angles():
    for dtype in WIDE:
        for shape in ((3, 5), (5,), (1, 1)):
            a, b, t = make(shape, dtype), make(shape, dtype, 1), signs(shape[:-1], dtype)
            for reduction in REDUCTIONS:
                yield a, b, t, 0.0, reduction
                yield a, b, t, 0.25, reduction
    yield make((3, 5)), make((1, 5), seed=1), torch.tensor([1, -1, 0]), 0.0, "none"
    if VERSION >= (2, 15):  # the gradient at the margin was not 0 before
        yield torch.zeros(2, 3), make((2, 3)), torch.tensor([1.0, -1.0]), 0.0, "none"
    yield make((300, 70)), make((300, 70), seed=1), signs((300,)), 0.1, "mean"
    yield make((0, 5)), make((0, 5)), torch.zeros(0), 0.0, "sum"
    for bad in ((make((3, 5)), make((3, 5)), torch.tensor(1.0)), (make((5,)), make((5,)), torch.ones(1)), (make((2, 3, 5)), make((2, 3, 5)), torch.ones(2, 3)),
                (make((3, 5)), make((3, 4)), torch.ones(3)), (make((3, 5)), make((3, 5)), torch.ones(4))):
        yield (*bad, 0.0, "mean")
    yield make((3, 5)), make((3, 5)), torch.ones(3), 0.0, "average"


def triplets(norms):
    def cases():
        for dtype in WIDE:
            for shape in ((4, 5), (5,), (2, 3, 5)):
                three = [make(shape, dtype, seed) for seed in range(3)]
                for reduction in REDUCTIONS:
                    for swap in (False, True):
                        yield (*three, 1.0, 2.0, swap, reduction) if norms else (*three, 1.0, swap, reduction)
        three = [make((4, 5), seed=seed) for seed in range(3)]
        if norms:
            yield (*three, 0.5, 1.0, True, "none")
            yield (*three, 2.5, 3.0, False, "none")
        rest = (2.0, False, "mean") if norms else (False, "mean")
        yield (make((300, 70)), make((300, 70), seed=1), make((300, 70), seed=2), 1.0, *rest)
        yield (make((4, 5)), make((1, 5), seed=1), make((4, 5), seed=2), 1.0, *rest)
        yield (make((4, 5)), make((4, 5), seed=1), make((5,)), 1.0, *rest)
        yield (*three, 0.0, *rest)
        yield (*three, -1.0, *rest)
        yield (*three, 1.0, *rest[:-1], "average")
    return cases


def multi_margins():
    """(input, target, p, margin, weight, reduction)."""
    for dtype in WIDE:
        for shape, target in (((4, 5), (4,)), ((5,), ()), ((5,), (1,)), ((1, 5), (1,)), ((3, 1), (3,))):
            x, t = make(shape, dtype), integers(target, 0, shape[-1])
            for p in (1, 2):
                for reduction in REDUCTIONS:
                    yield x, t, p, 1.0, None, reduction
                    yield x, t, p, 0.5, make(shape[-1:], dtype, 2, 0.2, 2.0), reduction
    yield make((300, 70)), integers((300,), 0, 70), 1, 1.0, None, "mean"
    yield make((5, 4)).t(), integers((4,), 0, 5), 1, 1.0, None, "mean"
    yield torch.tensor([[1.0, 2.0, 0.0]]), torch.tensor([0]), 1, 1.0, None, "none"
    x, t = make((4, 5)), torch.tensor([0, 1, 2, 3])
    for bad in ((x, torch.tensor([0, 1, 2, 5])), (x, torch.tensor([0, 1, 2, -1])), (x, torch.tensor([0, 1, 2])), (x, t.int()), (make((2, 0)), t[:2]),
                (make((2, 4, 5)), t), (x, t, 3), (x, t, 1, 1.0, make((5,), torch.float64)), (x, t, 1, 1.0, None, "average")):
        yield bad
    if VERSION >= (2, 0):  # PyTorch 1.13 reads beyond the weight
        yield x, t, 1, 1.0, make((4,))


def multi_margin(x, t, p=1, margin=1.0, weight=None, reduction="mean"):
    return F.multi_margin_loss(x, t, p, margin, weight, reduction=reduction)


def labels():
    for dtype in WIDE:
        for reduction in REDUCTIONS:
            yield make((3, 4), dtype), torch.tensor([[1, 0, -1, 2], [3, -1, -1, -1], [-1, 0, 0, 0]]), reduction
            yield make((4,), dtype), torch.tensor([3, 0, -1, 1]), reduction
            yield make((2, 3), dtype), torch.tensor([[1, 1, -1], [0, 1, 2]]), reduction
    for batch, classes in ((20, 70), (3, 300)):
        t = integers((batch, classes), 0, classes)
        t[:, 5] = -1
        yield make((batch, classes)), t, "mean"
    yield make((4, 3)).t(), torch.tensor([[1, 0, -1, 2], [3, -1, -1, -1], [-1, 0, 0, 0]]), "none"
    yield torch.tensor([1.0, 0.0]), torch.tensor([0, -1]), "none"
    x, t = make((2, 3)), torch.tensor([[0, 1, -1], [2, -1, -1]])
    for bad in ((x, torch.tensor([[0, 1, -1], [2, 3, -1]])), (x, torch.tensor([[0, -1, -2], [2, -1, -1]])), (x, t[:1]), (x, t.float()), (x[None], t[None]),
                (make((2, 0)), t[:, :0]), (x, t, "average")):
        yield bad


def soft_labels():
    """(input, target, weight, reduction)."""
    for x, t, reduction in mixed():
        if x.dim() > 0 and x.numel() > 0:
            yield x, t > 0, None, reduction
            yield x, (t > 0).to(x.dtype), make(x.shape[-1:], x.dtype, 2, 0.2, 2.0), reduction
    yield make((2, 3, 4)), make((2, 3, 4), seed=1, low=0.0, high=1.0), None, "none"
    yield make(()), make(()), None, "mean"
    yield make((3, 4)), make((3, 5)), None, "mean"


def multilabel_soft_margin(x, t, weight=None, reduction="mean"):
    return F.multilabel_soft_margin_loss(x, t.to(x.dtype), weight, reduction=reduction)


def counts():
    """(input, target, log_input, full, reduction)."""
    for x, t, reduction in mixed():
        rate = make(x.shape, x.dtype, 3, 0.1, 3.0)
        number = make(t.shape, t.dtype, 4, 0.1, 5.0)
        for full in (False, True):
            yield x, number, True, full, reduction
            yield rate, number, False, full, reduction
    yield torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0]), False, False, "none"


def poisson(x, t, log_input=True, full=False, reduction="mean"):
    return F.poisson_nll_loss(x, t, log_input, full, reduction=reduction)


def variances():
    """(input, target, var, full, reduction)."""
    for dtype in FLOATS:
        x, t, var = make((3, 5), dtype), make((3, 5), dtype, 1), make((3, 5), dtype, 2, 0.1, 3.0)
        for reduction in REDUCTIONS:
            for v in (var, var[:, :1], var[:1], var[:, 0]):
                yield x, t, v, False, reduction
            yield x, t, var, True, reduction
            yield x, t, 1.5, False, reduction
    yield make((3,)), make((3,), seed=1), torch.tensor([0.0, 1e-9, 1.0]), False, "none"
    yield make((3, 5)), make((5,), seed=1), make((3, 5), seed=2, low=0.1), False, "none"
    for bad in (make((5,), low=0.1), make((), low=0.1), make((2, 5), low=0.1), make((1, 1), low=0.1), -1.0):
        yield make((3, 5)), make((3, 5), seed=1), bad, False, "mean"
    yield make((3, 5)), make((3, 5), seed=1), 1.0, False, "average"


def gaussian(x, t, var, full=False, reduction="mean"):
    return F.gaussian_nll_loss(x, t, var, full, reduction=reduction)


def speech():
    """(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)."""
    def logs(time, batch, classes, dtype=torch.float32):
        return torch.log_softmax(make((time, batch, classes)).double(), 2).to(dtype)

    for dtype in WIDE:
        x = logs(7, 3, 5, dtype)
        padded, joined = torch.tensor([[1, 2, 2], [3, 4, 1], [4, 4, 4]]), torch.tensor([1, 2, 2, 3, 4])
        for reduction in REDUCTIONS:
            for zero in (False, True):
                yield x, padded, torch.tensor([7, 6, 5]), torch.tensor([3, 2, 3]), 0, reduction, zero
                yield x, padded, torch.tensor([7, 6, 4]), torch.tensor([3, 2, 3]), 0, reduction, zero  # too short
                yield x, joined, torch.tensor([7, 6, 5]), torch.tensor([3, 2, 0]), 0, reduction, zero
            yield x, padded, [7, 0, 0], [1, 0, 2], 0, reduction, True
            yield x, padded.int(), torch.tensor([7, 7, 1], dtype=torch.int32), torch.tensor([0, 1, 1], dtype=torch.int32), 0, reduction, False
            yield x, torch.tensor([[0, 1], [3, 3], [2, 0]]), [7, 7, 7], [2, 2, 2], 4, reduction, False
            yield x, torch.zeros(3, 0, dtype=torch.int64), [7, 3, 1], [0, 0, 0], 0, reduction, False
            yield x[:, 0], padded[0], torch.tensor(7), torch.tensor(3), 0, reduction, False
            yield x[:, 0], padded[:1], torch.tensor([6]), torch.tensor([2]), 0, reduction, False
    yield logs(7, 1, 5), torch.tensor([0, 1, 2]), [7], [3], 0, "none", False  # a blank as label; the last one is counted once by PyTorch
    yield logs(90, 4, 70), integers((4, 40), 1, 70), [90, 88, 90, 85], [40, 33, 1, 20], 0, "mean", False
    yield logs(9, 4, 70).transpose(0, 1)[:4, :4], torch.tensor([[1, 2]] * 4).t()[:2].t(), [4, 4, 4, 4], [2, 2, 1, 0], 0, "sum", False
    x, t = logs(5, 2, 4), torch.tensor([[1, 2], [3, 3]])
    for bad in ((t, [6, 5], [2, 2]), (t, [-1, 5], [2, 2]), (t, [5, 5], [3, 2]), (t, [5, 5], [-1, 2]), (t, [5], [2, 2]), (t[0], [5, 5], [2, 2]),
                (t[None], [5, 5], [2, 2]), (t, torch.tensor([5.0, 5.0]), torch.tensor([2, 2])), (t[:1], [5, 5], [2, 2])):
        yield x, *bad, 0, "mean", False
    yield x, t, [5, 5], [2, 2], 4, "mean", False
    yield x, t, [5, 5], [2, 2], -1, "mean", False
    yield x, t, [5, 5], [2, 2], 0, "average", False
    yield x[:0], t, [0, 0], [0, 0], 0, "mean", False
    yield x[:, :0], t[:0], [], [], 0, "mean", False


def ctc(x, targets, inputs, lengths, blank=0, reduction="mean", zero=False):
    return F.ctc_loss(x, targets, inputs if isinstance(inputs, torch.Tensor) else tuple(inputs), lengths if isinstance(lengths, torch.Tensor) else tuple(lengths),
                      blank, reduction, zero)


SUM = {"scale": "tensor", "zero_sign": False, "tolerance": 4}
ROWS = [
    Row("cross_entropy", cross_entropy, classes(False), no_grad=(2,), **SUM),
    Row("nll_loss", nll, classes(True), no_grad=(1, 2), **SUM),
    Row("mse_loss", lambda a, b, reduction="mean": F.mse_loss(a, b, reduction=reduction), pairs(mixed_since=(2, 15)), **SUM),
    Row("l1_loss", lambda a, b, reduction="mean": F.l1_loss(a, b, reduction=reduction), pairs(), **SUM),
    Row("smooth_l1_loss", lambda a, b, reduction="mean", beta=1.0: F.smooth_l1_loss(a, b, reduction=reduction, beta=beta), pairs(1.0, 0.5, 0.0), **SUM),
    Row("huber_loss", lambda a, b, reduction="mean", delta=1.0: F.huber_loss(a, b, reduction=reduction, delta=delta), pairs(1.0, 0.5, mixed_since=(99,)), **SUM),
    Row("binary_cross_entropy", bce, probabilities(False), no_grad=(2,), **SUM),
    Row("binary_cross_entropy_with_logits", bce_with_logits, probabilities(True), no_grad=(2, 3), **SUM),
    Row("kl_div", kl_div, divergences, **SUM),
    # PyTorch's gradient of a target of 0 is NaN.
    Row("kl_div", kl_div, lambda: ((torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]), r) for r in REDUCTIONS), no_grad=(1,), **SUM),
    Row("poisson_nll_loss", poisson, counts, no_grad=(1,), **SUM),
    Row("gaussian_nll_loss", gaussian, variances, since=(2, 15), reason="a number as var", **SUM),
    Row("ctc_loss", ctc, speech, since=(2, 15), reason="checks of lengths", **SUM),
    Row("margin_ranking_loss", lambda a, b, t, margin=0.0, reduction="mean": F.margin_ranking_loss(a, b, t, margin, reduction=reduction), rankings, no_grad=(2,), **SUM),
    Row("hinge_embedding_loss", lambda x, t, margin=1.0, reduction="mean": F.hinge_embedding_loss(x, t, margin, reduction=reduction), hinges, no_grad=(1,), **SUM),
    Row("cosine_embedding_loss", lambda a, b, t, margin=0.0, reduction="mean": F.cosine_embedding_loss(a, b, t, margin, reduction=reduction), angles, no_grad=(2,), **SUM),
    Row("triplet_margin_loss", lambda a, b, c, margin=1.0, p=2.0, swap=False, reduction="mean": F.triplet_margin_loss(a, b, c, margin, p, 1e-6, swap, reduction=reduction),
        triplets(True), since=(2, 15), reason="checks of margin", **SUM),
    Row("triplet_margin_with_distance_loss", lambda a, b, c, margin=1.0, swap=False, reduction="mean": F.triplet_margin_with_distance_loss(
        a, b, c, margin=margin, swap=swap, reduction=reduction), triplets(False), since=(2, 15), reason="checks of margin", **SUM),
    Row("multi_margin_loss", multi_margin, multi_margins, no_grad=(4,), **SUM),
    Row("multilabel_margin_loss", lambda x, t, reduction="mean": F.multilabel_margin_loss(x, t, reduction=reduction), labels, **SUM),
    Row("multilabel_soft_margin_loss", multilabel_soft_margin, soft_labels, no_grad=(1, 2), **SUM),
    Row("soft_margin_loss", lambda x, t, reduction="mean": F.soft_margin_loss(x, t, reduction=reduction), soft_margins, no_grad=(1,), **SUM),
]

# Rows of tern/ops/linalg.h and linalg_names.h. Vectors whose sign is open get one by both sides in the same way.

import math

import torch

from .driver import Row
from .inputs import NAN, WIDE, make

LINALG = {"scale": "tensor", "tolerance": 60, "grad_tolerance": 8, "zero_sign": False, "special_grad": False}
SIZES = (1, 2, 3, 5, 16, 33, 70)


def square(n, dtype=torch.float32, batch=(), seed=0):
    """Far from singular, with elements of the size of 1."""
    return make((*batch, n, n), dtype, seed) / max(n, 1) ** 0.5 + 4 * torch.eye(n, dtype=dtype)


def positive(n, dtype=torch.float32, batch=(), seed=0):
    x = make((*batch, n, n), dtype, seed, -1.0, 1.0)
    return (x @ x.mT) / max(n, 1) + torch.eye(n, dtype=dtype) * (0.5 + torch.arange(n, dtype=dtype) / max(n, 1))


def symmetric(n, dtype=torch.float32, batch=(), seed=0):
    """With eigenvalues that are apart."""
    x = make((*batch, n, n), dtype, seed, -1.0, 1.0)
    return (x + x.mT) * (0.1 / max(n, 1)) + torch.diag(torch.arange(n, dtype=dtype) - n / 3)


def matrices(kind, more=((),)):
    """Of every size and layout; batches, empty ones and none at all; and what is no such matrix."""
    def cases():
        for rest in more:
            for dtype in WIDE:
                for n in SIZES:
                    yield (kind(n, dtype), *rest)
                yield (kind(4, dtype, (3, 2)), *rest)
                yield (kind(40, dtype, (2,)), *rest)
            yield (kind(5, batch=(2,)).mT, *rest)
            yield (kind(7)[None].expand(3, 7, 7), *rest)
            yield (kind(8)[:5, :5], *rest)
            yield (kind(4, batch=(3, 2)).transpose(0, 1), *rest)
            for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
                yield (make(shape), *rest)
        for wrong in (make((3, 4)), make((3,)), make(()), make((3, 3), torch.int64)):
            yield (wrong, *more[0])
    return cases


def tall_and_wide(more=((),), empty=True):
    def cases():
        for rest in more:
            for dtype in WIDE:
                for shape in ((1, 1), (5, 5), (6, 3), (3, 6), (4, 1), (1, 4), (50, 40), (40, 50), (90, 70), (2, 3, 4, 2), (2, 3, 2, 4)):
                    yield (apart(shape, dtype), *rest)
            yield (apart((5, 3)).t(), *rest)
            yield (apart((7, 8))[1:6, ::2], *rest)
            for shape in ((0, 0), (3, 0), (0, 3), (0, 4, 2), (2, 0, 3)) if empty else ():
                yield (make(shape), *rest)
        for wrong in (make((3,)), make((3, 3), torch.int64)):
            yield (wrong, *more[0])
    return cases


def apart(shape, dtype=torch.float32, seed=0):
    """A matrix whose singular values are apart and not 0."""
    return make(shape, dtype, seed, -1.0, 1.0) * 0.1 / max(shape) ** 0.5 + torch.eye(*shape[-2:], dtype=dtype) * (
        torch.arange(1, shape[-1] + 1, dtype=dtype))


def systems(kind=square, more=((),), mixed=True):
    def cases():
        for rest in more:
            for dtype in WIDE:
                for n, k in ((1, 1), (2, 3), (5, 5), (33, 2), (70, 40), (64, 1)):
                    yield (kind(n, dtype), make((n, k), dtype, 1), *rest)
            for a, b in (((2,), (2,)), ((2,), ()), ((), (3,)), ((2, 1), (3,)), ((0,), (0,))):
                yield (kind(4, batch=a), make((*b, 4, 4), seed=1), *rest)
            yield (kind(5).t(), make((3, 5), seed=1).t(), *rest)
            yield (kind(40).t(), make((40, 40), seed=1).t(), *rest)
            yield (make((0, 0)), make((0, 3)), *rest)
            yield (make((3, 3)), make((3, 0)), *rest)
        for a, b in (((3, 3), (4, 4)), ((3, 4), (3, 3)), ((2, 3, 3), (3, 3, 3)), ((3,), (3, 3))):
            yield (make(a), make(b), *more[0])
        if mixed:
            yield (make((3, 3)), make((3, 3), torch.float64), *more[0])
        yield (make((3, 3), torch.int64), make((3, 3), torch.int64), *more[0])
    return cases


def solve_cases():
    yield from systems(square, ((), (False,)))()
    yield square(4), make((4,))
    yield square(4, batch=(2,)), make((2, 4))
    yield square(4, batch=(2,)), make((2, 4)), False
    yield torch.zeros(3, 3), make((3, 2))
    yield torch.stack([torch.eye(3), torch.ones(3, 3)]), make((3, 2))


def singular():
    """Matrices without an inverse, or with NaN."""
    return (torch.zeros(2, 2), torch.ones(3, 3), torch.diag(torch.tensor([1.0, 0, 2])), torch.stack([torch.eye(3), torch.zeros(3, 3)]))


def signed(vectors, dim):
    """Each vector, which lies along dim, with the sign that makes a weighted sum positive."""
    n = vectors.shape[dim]
    weights = 0.5 + (torch.arange(1, n + 1, dtype=torch.float64) * 0.6180339887498949) % 1
    weights = weights.to(vectors.dtype).reshape([n, 1] if dim == -2 else [1, n])
    return torch.sign((vectors * weights).sum(dim, keepdim=True)).detach()


def eigh(a, uplo="L"):
    values, vectors = torch.linalg.eigh(a, UPLO=uplo)
    return values, vectors * signed(vectors, -2)


def gram(x):
    """x @ x.mT, which autocast leaves alone."""
    return (x.unsqueeze(-2) * x.unsqueeze(-3)).sum(-1).detach()


def svd(a, full=True):
    u, s, vh = torch.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    signs = signed(u[..., :k], -2)
    return u[..., :k] * signs, s, vh[..., :k, :] * signs.mT, gram(u.mT), gram(vh)


def old_svd(a, some=True):
    u, s, vh = svd(a, not some)[:3]
    return u, s, vh.mT


def as_tuple(function):
    return lambda a, *rest: tuple(function(a, *rest))


def with_nan(cases):
    def more():
        yield from cases()
        x = symmetric(4)
        x[2, 1] = x[1, 2] = NAN
        yield (x,)
    return more


def not_positive():
    yield from matrices(positive, ((), (True,)))()
    yield (-torch.eye(3),)
    yield (torch.diag(torch.tensor([1.0, 2, -1])),)
    yield (torch.stack([torch.eye(3), -torch.eye(3)]),)
    x = positive(4)
    x[2, 1] = NAN
    yield (x,)
    x = positive(70)
    x[50, 50] = -1
    yield (x,)
    x = positive(5)  # the other triangle is not read
    x[0, 4] = NAN
    yield (x,)


def lu_systems():
    for n, k, batch in ((1, 1, ()), (4, 3, ()), (4, 3, (2, 3)), (40, 5, ()), (5, 2, (3,))):
        lu, pivots = torch.linalg.lu_factor(square(n, batch=batch))
        yield lu, pivots, make((*batch, n, k), seed=1)
        yield lu, pivots, make((*batch, k, n), seed=1), False
        yield lu, pivots, make((*batch, n, k), seed=1), True, True
    yield square(3), torch.tensor([1, 2, 3]), make((3, 1))
    yield square(3), torch.tensor([1, 2], dtype=torch.int32), make((3, 1))


def least_squares(a, b, rcond=None, driver=None):
    x, residuals, rank, values = torch.linalg.lstsq(a, b, rcond=rcond, driver=driver)
    return (x, rank, values) if driver else x  # without one it is another on GPUs


def lstsq_cases():
    for dtype in WIDE:
        for shape in ((5, 3), (3, 5), (4, 4), (60, 40), (2, 5, 3)):
            for driver in (None, "gels", "gelsd", "gelsy", "gelss"):
                yield apart(shape, dtype), make((*shape[:-1], 2), dtype, 1), None, driver
    deficient = torch.tensor([[1.0, 2], [2, 4], [3, 6]])
    yield deficient, make((3, 1)), None, "gelsd"
    yield make((3, 2)), make((4, 1))
    yield make((3, 2)), make((3, 1)), None, "qr"


def ranks():
    for x in (torch.eye(4), torch.ones(3, 5), apart((6, 4)), torch.zeros(2, 3), apart((2, 5, 3)), torch.diag(torch.tensor([1.0, 1e-3, 1e-9])), make((0, 3)), make((2, 0, 3))):
        yield (x,)
        yield x, 1e-2
    yield torch.diag(torch.tensor([1.0, 1e-3, 1e-9])), None, True
    yield torch.diag(torch.tensor([5.0, 1e-3, 1e-9])), None, False, 1e-4
    yield torch.diag(torch.tensor([5.0, 1e-3, 1e-9])), None, False, None, 1e-3
    yield (make((3,)),)


def matrix_rank(x, tol=None, hermitian=False, atol=None, rtol=None):
    if tol is not None:
        return torch.linalg.matrix_rank(x, tol, hermitian)
    return torch.linalg.matrix_rank(x, atol=atol, rtol=rtol, hermitian=hermitian)


def pseudo_inverses():
    yield from tall_and_wide()()
    yield torch.tensor([[1.0, 2], [2, 4], [3, 6]]), 1e-3
    yield symmetric(5) + torch.eye(5) * 0.1, None, True
    yield apart((5, 4)), None, False, 2.5
    yield torch.zeros(2, 3),


def pinv(x, rtol=None, hermitian=False, atol=None):
    return torch.linalg.pinv(x, rtol=rtol, hermitian=hermitian, atol=atol)


def conditions():
    for p in (None, 2.0, -2.0, 1.0, -1.0, math.inf, -math.inf, "fro", "nuc"):
        for x in (square(3), square(20, torch.float64), square(4, batch=(2, 3)), torch.ones(2, 2) if p else square(2), make((3,))):
            yield x, p
    yield apart((5, 3)), None
    yield apart((5, 3)), 1.0
    yield square(3), "max"


def powers():
    yield square(3).to(torch.int64), 0
    yield square(3, batch=(2,)).to(torch.int64), 0
    for dtype in (*WIDE, torch.int64):
        for n in (1, 2, 3, 7):
            yield square(4).to(dtype), n
            yield square(3, batch=(2,)).to(dtype), n
    for n in (-1, -3):
        yield square(5), n
        yield make((3, 3), torch.int64), n
    yield make((2, 3)), 2
    yield make((3,)), 2
    yield make((0, 0)), 3


def exponents():
    for dtype in WIDE:
        for n in (1, 2, 5, 20):
            for scale in (0.0, 0.01, 0.5, 3.0):
                yield make((n, n), dtype) * scale / n,
        yield torch.stack([make((4, 4), dtype) * 0.01, make((4, 4), dtype), make((4, 4), dtype) * 3]),
    yield make((4, 4)).t(),
    yield make((2, 0, 0)),
    yield make((2, 3)),
    yield make((2, 2), torch.int64),


def chains():
    yield [make((3, 4)), make((4, 2), seed=1)],
    yield [make((10, 3)), make((3, 20), seed=1), make((20, 2), seed=2), make((2, 7), seed=3)],
    yield [make((4,)), make((4, 3), seed=1), make((3,), seed=2)],
    yield [make((4,)), make((4,), seed=1)],
    yield [make((4, 4), torch.float64), make((4, 4), torch.float64, 1).t(), make((4,), torch.float64, 2)],
    yield [make((3, 4))],
    yield [make((3, 4)), make((3, 4))],
    yield [make((3, 4)), make((4, 2, 1))],


def vandermonde():
    for dtype in (*WIDE, torch.int64):
        for n in (None, 2, 5):
            yield make((4,), dtype), n
            yield make((2, 3), dtype), n
    yield make((3,)), 1
    yield make(()), None


def vector_norms():
    for x in (make((5,)), make((3, 4), torch.float64), make((2, 3, 4)).transpose(0, 2), make(()), make((0,)), make((3, 3), torch.int64), make((4, 3), torch.float16)):
        for ord in (2.0, 1.0, 0.0, math.inf, -math.inf, 3.0):
            yield x, ord
            yield x, ord, (-1,), True
    yield make((2, 3, 4)), 2.0, (0, 2)
    yield make((2, 3, 4)), 2.0, (0, 2), False, torch.float64


def matrix_norms():
    for ord in ("fro", "nuc", 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf):
        for x in (apart((4, 3)), apart((2, 3, 5), torch.float64), apart((3, 4)).t()):
            yield x, ord
            yield x, ord, (-1, -2), True
        yield apart((2, 4, 3)), ord, (1, 0)
        yield make((3, 3), torch.int64), ord
        yield make((3,)), ord
    yield make((3, 3)), 3.0
    yield make((3, 3)), "max"
    yield make((3, 3)), "fro", (0, 0)
    yield apart((3, 4)), "nuc", (0, 1), False, torch.float64


def norms():
    for ord in (None, 2.0, 1.0, math.inf, "fro", "nuc"):
        for x in (make((4,)), apart((3, 4)), make((2, 3, 4))):
            yield x, ord
    yield make((2, 3, 4)), None, (1,), True
    yield make((2, 3, 4)), None, (0, 1)
    yield make((2, 3, 4)), 2.0, (0,)
    yield make((2, 3, 4)), 1.0, (0, 1), True
    yield make((2, 3, 4)), "fro", (0, 2)


def triangles(more):
    return lambda: ((a, b, upper, *rest) for a, b in systems(mixed=False)() for upper in (False, True) for rest in more)


def cross_cases():
    yield make((3,)), make((3,), seed=1)
    yield make((4, 3)), make((4, 3), seed=1)
    yield make((3, 4)), make((3, 4), seed=1), 0
    yield make((1, 3)), make((5, 3), seed=1)
    yield make((4, 2)), make((4, 2))


def products():
    yield make((3,)), make((3,), seed=1)
    yield make((4, 3), torch.float64), make((3,), torch.float64, 1)
    yield make((4, 3)), make((4, 3), seed=1), 0
    yield make((4, 3), torch.int64), make((4, 3), torch.int64, 1)
    yield make((4, 3)), make((4, 3), torch.float64)


def after(function, *, factor=None):
    """Of a factor of positive definite matrices."""
    def cases():
        for n, batch in ((1, ()), (4, ()), (3, (2,)), (40, ())):
            l = torch.linalg.cholesky(positive(n, batch=batch))
            for upper in (False, True):
                given = l.mT if upper else l
                yield (make((*batch, n, 2), seed=1), given, upper) if factor is None else (given, upper)
    return function, cases


def triangle(x, upper):
    """PyTorch gives gradients for the other triangle too."""
    return x.triu() if upper else x.tril()


def first_of(function):
    return lambda *args: function(*args)[0]


def info_cases(kind):
    def cases():
        yield from matrices(kind)()
        for x in singular():
            yield (x,)
    return cases


def slogdets():
    yield from matrices(square)()
    yield -square(3),
    yield torch.stack([square(4), -square(4), square(4)[[1, 0, 2, 3]]]),


def dets():
    yield from slogdets()
    for x in singular():
        if x.shape != (3, 3) or x[0, 1] != 0:  # of one row that is 0 PyTorch gives no gradient
            yield x,


ROWS = [
    Row("linalg.cholesky", lambda a, upper=False: torch.linalg.cholesky(a, upper=upper), not_positive, **LINALG),
    Row("linalg.cholesky_ex", as_tuple(torch.linalg.cholesky_ex), matrices(positive), **LINALG),
    Row("linalg.qr", lambda a, mode="reduced": tuple(torch.linalg.qr(a, mode=mode)), tall_and_wide(((),)), **LINALG),
    Row("linalg.qr_complete", lambda a, mode="complete": tuple(torch.linalg.qr(a, mode=mode)), tall_and_wide(), grad=False, **LINALG),
    Row("linalg.lu_factor", as_tuple(torch.linalg.lu_factor), tall_and_wide(empty=False), **LINALG),
    Row("linalg.lu_factor_ex", as_tuple(torch.linalg.lu_factor_ex), tall_and_wide(), **LINALG),
    Row("linalg.lu", as_tuple(torch.linalg.lu), tall_and_wide(), **LINALG),
    Row("linalg.lu_solve", lambda lu, pivots, b, left=True, adjoint=False: torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint), lu_systems, **LINALG),
    Row("linalg.solve", lambda a, b, left=True: torch.linalg.solve(a, b, left=left), solve_cases, **LINALG),
    Row("linalg.solve_ex", first_of(torch.linalg.solve_ex), systems(), **LINALG),
    Row("linalg.solve_triangular", lambda a, b, upper, left=True, unit=False: torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit),
        triangles(((), (False,), (True, True))), **LINALG),
    Row("linalg.inv", torch.linalg.inv, info_cases(square), **LINALG),
    Row("linalg.inv_ex", first_of(torch.linalg.inv_ex), matrices(square), **LINALG),
    Row("linalg.lstsq", least_squares, lstsq_cases, **LINALG),
    Row("linalg.pinv", pinv, pseudo_inverses, **LINALG),
    Row("linalg.det", torch.linalg.det, dets, **LINALG),
    Row("linalg.slogdet", lambda a: tuple(torch.linalg.slogdet(a)), slogdets, **LINALG),
    Row("linalg.matrix_rank", matrix_rank, ranks, grad=False),
    Row("linalg.cond", torch.linalg.cond, conditions, grad=False, **LINALG),
    Row("linalg.eigh", eigh, with_nan(matrices(symmetric, ((), ("U",)))), **LINALG),
    Row("linalg.eigvalsh", torch.linalg.eigvalsh, with_nan(matrices(symmetric)), **LINALG),
    Row("linalg.svd", svd, with_nan(tall_and_wide(((), (False,)))), **LINALG),
    Row("linalg.svdvals", torch.linalg.svdvals, with_nan(tall_and_wide()), **LINALG),
    Row("linalg.matrix_power", torch.linalg.matrix_power, powers, **LINALG),
    Row("linalg.matrix_exp", torch.linalg.matrix_exp, exponents, **LINALG),
    Row("linalg.multi_dot", torch.linalg.multi_dot, chains, **LINALG),
    Row("linalg.vander", lambda x, n=None: torch.linalg.vander(x, N=n), vandermonde, **LINALG),
    Row("linalg.cross", lambda a, b, dim=-1: torch.linalg.cross(a, b, dim=dim), cross_cases, **LINALG),
    Row("linalg.vecdot", lambda a, b, dim=-1: torch.linalg.vecdot(a, b, dim=dim), products, **LINALG),
    Row("linalg.diagonal", lambda a, offset=0, dim1=-2, dim2=-1: torch.linalg.diagonal(a, offset=offset, dim1=dim1, dim2=dim2),
        lambda: ((make((3, 4)),), (make((2, 3, 4)), 1), (make((2, 3, 4)), -1, 0, 1), (make((3,)),))),
    Row("linalg.vector_norm", lambda x, ord=2.0, dim=None, keepdim=False, dtype=None: torch.linalg.vector_norm(x, ord, dim, keepdim, dtype=dtype), vector_norms, **LINALG),
    Row("linalg.matrix_norm", lambda x, ord="fro", dim=(-2, -1), keepdim=False, dtype=None: torch.linalg.matrix_norm(x, ord, dim, keepdim, dtype=dtype), matrix_norms, **LINALG),
    Row("linalg.norm", lambda x, ord=None, dim=None, keepdim=False: torch.linalg.norm(x, ord, dim, keepdim), norms, **LINALG),
    Row("inverse", torch.inverse, info_cases(square), **LINALG),
    Row("det", torch.det, dets, **LINALG),
    Row("slogdet", lambda a: tuple(torch.slogdet(a)), slogdets, **LINALG),
    Row("logdet", torch.logdet, slogdets, **LINALG),
    Row("cholesky", lambda a, upper=False: torch.linalg.cholesky(a, upper=upper), not_positive, **LINALG),
    Row("cholesky_solve", *after(lambda b, l, upper: torch.cholesky_solve(b, triangle(l, upper), upper)), **LINALG),
    Row("cholesky_inverse", *after(lambda l, upper: torch.cholesky_inverse(triangle(l, upper), upper), factor=True), **LINALG),
    Row("triangular_solve", lambda b, a, *rest: tuple(torch.triangular_solve(b, a, *rest)),
        lambda: ((make((4, 2)), square(4), *rest) for rest in ((), (False,), (True, True), (False, True, True))), **LINALG),
    Row("qr", lambda a, some=True: tuple(torch.linalg.qr(a, "reduced" if some else "complete")), tall_and_wide(), **LINALG),
    Row("svd", old_svd, tall_and_wide(((), (False,))), **LINALG),
    Row("pinverse", torch.pinverse, tall_and_wide(), **LINALG),
    Row("matrix_power", torch.matrix_power, powers, **LINALG),
    Row("matrix_exp", torch.matrix_exp, exponents, **LINALG),
]

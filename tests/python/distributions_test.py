"""tern.distributions beside PyTorch's: one row for each distribution, pair of distributions, transform, constraint and error.

A row is made with the same arguments on both sides; lists are tensors, which get gradients. For one seed samples are PyTorch's own.
Without PyTorch all is skipped.
"""

import copy
import importlib
import math
import pickle
import unittest

import torch
import torch.distributions

import tern
import tern.distributions

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
NEW = VERSION >= (2, 10)  # of which texts and methods are taken
TOLERANCES = {"float32": (1e-5, 1e-6), "float64": (1e-10, 1e-12)}  # relative and absolute


class Row:
    """The name of a class of torch.distributions and its arguments: numbers, lists (tensors) and other rows."""

    def __init__(self, name, *args, since=(1, 13), loose=1.0, different=(), double=True, **kwargs):
        self.name, self.args, self.kwargs, self.since = name, args, kwargs, since
        self.loose, self.different = loose, different  # a factor of the tolerances; what differs from PyTorch
        self.double = double  # in float64 too: not where numbers alone, of the default dtype, are parameters

    def __repr__(self):
        return f"{self.name}({', '.join(map(repr, self.args))}{', ' if self.kwargs else ''}{self.kwargs or ''})"


class Side:
    """One of the libraries with a dtype; makes what rows say."""

    def __init__(self, library, dtype):
        self.library, self.dtype, self.leaves = library, getattr(library, dtype), []

    def tensor(self, numbers):
        return self.library.tensor(numbers, dtype=self.dtype)

    def made(self, x):
        if isinstance(x, Row):
            return getattr(self.library.distributions, x.name)(
                *map(self.made, x.args), **{name: self.made(value) for name, value in x.kwargs.items()})
        if isinstance(x, list) and (not x or isinstance(x[0], Row)):
            return [self.made(row) for row in x]
        if isinstance(x, list):
            self.leaves.append(self.tensor(x).requires_grad_())
            return self.leaves[-1]
        return x

    def gradients(self, result):
        """Of the sum of squares, to all tensors of the row."""
        for leaf in self.leaves:
            leaf.grad = None
        if result.requires_grad:
            finite = self.library.where(self.library.isfinite(result), result, self.library.zeros_like(result))
            (finite * finite).sum().backward(retain_graph=True)
        return [leaf.grad for leaf in self.leaves]

    def seed(self):
        """Makes it draw PyTorch's numbers."""
        self.library.manual_seed(7, **({"engine": "torch"} if self.library is tern else {}))


def sides(dtype):
    return Side(tern, dtype), Side(torch, dtype)


def plain(x):
    return x.detach().tolist()


PAIR = [0.3, -1.2]
POSITIVE = [0.7, 2.5]
LARGE = [3.5, 7.0]
WEIGHTS = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]
LOGITS = [[0.2, -1.5, 0.3], [0.6, 2.3, 0.1]]
FACTOR = [[1.2, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.5, 1.5]]
MATRIX = [[2.0, 0.5, 0.1], [0.5, 1.5, -0.3], [0.1, -0.3, 1.0]]
VECTORS = [[0.1, -0.4, 0.9], [1.0, 0.2, -0.7]]
COLUMNS = [[0.5, -0.2], [0.1, 0.9], [-0.7, 0.3]]
DIAGONAL = [0.5, 1.2, 0.8]

NORMAL = Row("Normal", PAIR, POSITIVE)
# PyTorch's gradient of a gamma number by its shape is right to 1e-4; tests/ops/random_test.cpp has Tern's.
GAMMAS = ["gradients of rsample"]
DISTRIBUTIONS = [
    NORMAL,
    Row("Normal", 0.5, 2.0, double=False),
    Row("Normal", PAIR, 2),
    Row("Normal", [[0.1], [0.2]], POSITIVE, validate_args=False),
    Row("Laplace", PAIR, POSITIVE),
    Row("Cauchy", PAIR, POSITIVE),
    Row("Gumbel", PAIR, POSITIVE),
    Row("StudentT", [2.5, 7.0], PAIR, POSITIVE, different=GAMMAS),
    Row("StudentT", [0.5, 1.5], different=GAMMAS),
    Row("HalfNormal", POSITIVE),
    Row("HalfCauchy", POSITIVE),
    Row("LogNormal", PAIR, POSITIVE),
    Row("LogisticNormal", VECTORS, [[0.7, 0.4, 1.3]]),
    Row("Exponential", POSITIVE),
    Row("Gamma", POSITIVE, LARGE, different=GAMMAS),
    Row("Gamma", 2.0, 1.0, double=False),
    Row("Chi2", LARGE, different=GAMMAS),
    Row("InverseGamma", LARGE, POSITIVE, since=(2, 0)),
    Row("InverseGamma", POSITIVE, POSITIVE, since=(2, 0)),
    Row("FisherSnedecor", LARGE, [4.5, 9.0], different=GAMMAS),
    # the variance is infinite; samples of up to 100
    Row("FisherSnedecor", POSITIVE, POSITIVE, different=["gradients of variance", "gradients of stddev", *GAMMAS], loose=4),
    Row("Dirichlet", [[0.7, 2.5, 1.5], [3.0, 1.2, 2.0]], different=GAMMAS),
    Row("Dirichlet", [0.7, 0.5], different=GAMMAS),
    Row("Beta", LARGE, POSITIVE, different=GAMMAS),
    Row("Beta", 0.5, 0.5, double=False),
    Row("Uniform", PAIR, POSITIVE),
    Row("Kumaraswamy", LARGE, POSITIVE, different=["mode"]),
    Row("ContinuousBernoulli", [0.2, 0.9]),
    Row("ContinuousBernoulli", [0.4995, 0.5, 0.5009]),
    Row("ContinuousBernoulli", logits=PAIR),
    Row("Pareto", POSITIVE, LARGE),
    Row("Pareto", 1.0, [0.5, 1.5], double=False),
    Row("Weibull", POSITIVE, LARGE),
    # in float64 PyTorch's fails
    Row("GeneralizedPareto", PAIR, POSITIVE, [0.3, -0.2], since=(2, 12), double=False),
    Row("GeneralizedPareto", PAIR, POSITIVE, [0.0, 0.7], since=(2, 12), double=False),
    Row("Bernoulli", [0.2, 0.5, 0.9]),
    Row("Bernoulli", 0.3, double=False),
    Row("Bernoulli", logits=PAIR),
    Row("Geometric", [0.2, 0.9]),
    Row("Geometric", logits=PAIR),
    Row("Binomial", 5, [0.2, 0.9]),
    Row("Binomial", 40, logits=PAIR, loose=20),  # the log probabilities of 40 trials cancel
    Row("NegativeBinomial", LARGE, [0.2, 0.9]),
    Row("NegativeBinomial", 3, logits=PAIR),
    Row("Poisson", [0.4, 20.0]),
    Row("Multinomial", 6, WEIGHTS, different=[] if NEW else ["entropy", "perplexity"], loose=4),  # old log 6! is float32; sums of many
    Row("Multinomial", 3, logits=LOGITS[0], different=[] if NEW else ["entropy", "perplexity"]),
    Row("Categorical", WEIGHTS),
    Row("Categorical", logits=LOGITS),
    Row("Categorical", [0.2, 0.0, 0.8]),
    Row("OneHotCategorical", WEIGHTS),
    Row("OneHotCategorical", logits=LOGITS[0]),
    Row("OneHotCategoricalStraightThrough", WEIGHTS),
    Row("RelaxedBernoulli", [0.7], [0.2, 0.9]),
    Row("RelaxedBernoulli", [0.7], logits=PAIR),
    Row("RelaxedOneHotCategorical", [0.7], WEIGHTS),
    Row("RelaxedOneHotCategorical", [1.7], logits=LOGITS),
    Row("MultivariateNormal", VECTORS, scale_tril=FACTOR, different=["gradients of precision_matrix"]),  # PyTorch's has an upper triangle
    Row("MultivariateNormal", VECTORS[0], MATRIX, loose=4),  # through the factorisation
    Row("MultivariateNormal", VECTORS[0], precision_matrix=[MATRIX, MATRIX], loose=4),  # as above
    Row("LowRankMultivariateNormal", VECTORS, COLUMNS, DIAGONAL, loose=10),  # the terms of Woodbury's lemma cancel
    Row("LowRankMultivariateNormal", VECTORS[0], [COLUMNS, COLUMNS], [DIAGONAL, DIAGONAL], loose=10),  # as above
    Row("Independent", NORMAL, 1),
    Row("Independent", Row("Bernoulli", WEIGHTS), 1),
    Row("Independent", Row("Bernoulli", WEIGHTS), 0),
    Row("TransformedDistribution", NORMAL, [Row("ExpTransform"), Row("AffineTransform", 1.0, [-2.0, 0.5])]),
    Row("TransformedDistribution", Row("Uniform", 0.1, 0.9), [Row("PowerTransform", [3.0, 2.0]), Row("ExpTransform")], double=False),
    Row("TransformedDistribution", NORMAL, Row("TanhTransform", cache_size=1)),
    Row("TransformedDistribution", NORMAL, Row("StickBreakingTransform")),
    Row("TransformedDistribution", Row("Normal", WEIGHTS, 1.0), Row("ReshapeTransform", (3,), (3, 1))),
    Row("MixtureSameFamily", Row("Categorical", WEIGHTS), Row("Normal", LOGITS, 1.5), loose=4),  # differences of means
    Row("MixtureSameFamily", Row("Categorical", logits=LOGITS[0]), Row("Independent", Row("Normal", VECTORS + VECTORS[:1], 0.5), 1)),
    Row("MixtureSameFamily", Row("Categorical", WEIGHTS[0]), Row("Poisson", DIAGONAL)),
]

BETA = Row("Beta", LARGE, POSITIVE)
CONTINUOUS_BERNOULLI = Row("ContinuousBernoulli", [0.2, 0.7])
EXPONENTIAL = Row("Exponential", POSITIVE)
GAMMA = Row("Gamma", POSITIVE, LARGE)
GUMBEL = Row("Gumbel", PAIR, POSITIVE)
LAPLACE = Row("Laplace", PAIR, POSITIVE)
PARETO = Row("Pareto", POSITIVE, LARGE)
UNIFORM = Row("Uniform", [0.2, 0.3], [0.8, 0.5])
OTHER_NORMAL = Row("Normal", [0.5, 0.1], [1.5, 0.3])
POISSON = Row("Poisson", [0.4, 2.0])
FULL = Row("MultivariateNormal", VECTORS, scale_tril=FACTOR)
LOW_RANK = Row("LowRankMultivariateNormal", VECTORS[1], COLUMNS, DIAGONAL)

PAIRS = [
    (Row("Bernoulli", [0.2, 0.0, 1.0, 0.4]), Row("Bernoulli", [0.7, 0.3, 0.2, 1.0])),
    (Row("Bernoulli", [0.0, 1.0]), Row("Bernoulli", [0.3, 0.2])),
    (Row("Bernoulli", logits=PAIR), Row("Bernoulli", logits=POSITIVE)),
    (Row("Binomial", 5, [0.2, 0.6]), Row("Binomial", 5, [0.3, 0.1])),
    (Row("Categorical", [[0.2, 0.0, 0.8], [0.1, 0.5, 0.4]]), Row("Categorical", [[0.2, 0.3, 0.5], [0.0, 0.5, 0.5]])),
    (Row("OneHotCategorical", WEIGHTS), Row("OneHotCategorical", logits=LOGITS)),
    (CONTINUOUS_BERNOULLI, Row("ContinuousBernoulli", [0.5, 0.9])),
    (Row("Dirichlet", [[0.7, 2.5, 1.5], [3.0, 1.0, 2.0]]), Row("Dirichlet", [0.7, 2.5, 0.5])),
    (BETA, Row("Beta", POSITIVE, LARGE)),
    (EXPONENTIAL, Row("Exponential", LARGE)),
    (GAMMA, Row("Gamma", LARGE, POSITIVE)),
    (Row("Chi2", LARGE), GAMMA),
    (GUMBEL, Row("Gumbel", [0.1, 0.2], [1.0, 0.9])),
    (Row("Geometric", [0.2, 0.6]), Row("Geometric", [0.3, 0.1])),
    (Row("HalfNormal", POSITIVE), Row("HalfNormal", LARGE)),
    (LAPLACE, Row("Laplace", [0.5, 0.1], LARGE)),
    (NORMAL, OTHER_NORMAL),
    (Row("LogNormal", PAIR, POSITIVE), Row("LogNormal", [0.5, 0.1], LARGE)),
    (Row("Cauchy", PAIR, POSITIVE), Row("Cauchy", [0.5, 0.1], LARGE)),
    (PARETO, Row("Pareto", [0.5, 3.0], POSITIVE)),
    (POISSON, Row("Poisson", POSITIVE)),
    (UNIFORM, Row("Uniform", [0.1, 0.4], [0.9, 0.7])),
    (FULL, Row("MultivariateNormal", VECTORS[1], MATRIX)),
    (FULL, LOW_RANK), (LOW_RANK, FULL),
    (LOW_RANK, Row("LowRankMultivariateNormal", VECTORS, [COLUMNS, COLUMNS], [DIAGONAL, DIAGONAL])),
    (Row("Independent", NORMAL, 1), Row("Independent", OTHER_NORMAL, 1)),
    (Row("TransformedDistribution", NORMAL, Row("TanhTransform")), Row("TransformedDistribution", OTHER_NORMAL, [Row("TanhTransform")])),
    (Row("Bernoulli", [0.2, 0.7]), POISSON),
    *((p, OTHER_NORMAL) for p in (BETA, CONTINUOUS_BERNOULLI, EXPONENTIAL, GAMMA, GUMBEL, LAPLACE, PARETO, UNIFORM)),
    *((p, EXPONENTIAL) for p in (BETA, CONTINUOUS_BERNOULLI, GAMMA, PARETO, UNIFORM, Row("Uniform", PAIR, POSITIVE))),
    *((p, GAMMA) for p in (BETA, EXPONENTIAL, PARETO, UNIFORM, Row("Uniform", PAIR, POSITIVE))),
    *((p, GUMBEL) for p in (EXPONENTIAL, GAMMA, NORMAL, UNIFORM)),
    (NORMAL, LAPLACE),
    *((p, CONTINUOUS_BERNOULLI) for p in (BETA, UNIFORM, Row("Uniform", PAIR, POSITIVE))),
    *((p, BETA) for p in (UNIFORM, Row("Uniform", PAIR, POSITIVE))),
    *((p, Row("Uniform", [-0.5, 0.1], [1.5, 0.7])) for p in (BETA, CONTINUOUS_BERNOULLI)),
    (UNIFORM, Row("Pareto", [0.1, 0.4], POSITIVE)),
    *((p, PARETO) for p in (BETA, CONTINUOUS_BERNOULLI, EXPONENTIAL, GAMMA, GUMBEL, LAPLACE, NORMAL)),
    *((p, q) for p in (EXPONENTIAL, GAMMA, GUMBEL, LAPLACE, NORMAL, PARETO) for q in (BETA, CONTINUOUS_BERNOULLI, UNIFORM)),
    *((p, q) for p in (GUMBEL, LAPLACE, NORMAL) for q in (EXPONENTIAL, GAMMA)),
    *((POISSON, q) for q in (Row("Bernoulli", [0.2, 0.7]), Row("Binomial", 3, [0.2, 0.7]))),
]

TRANSFORMS = [  # a transform and its input
    (Row("ExpTransform"), VECTORS),
    (Row("PowerTransform", [2.0, 0.5, -1.5]), [0.3, 1.5, 2.0]),
    (Row("SigmoidTransform"), VECTORS),
    (Row("TanhTransform"), VECTORS),
    (Row("SoftplusTransform"), VECTORS),
    (Row("AbsTransform"), VECTORS),
    (Row("AffineTransform", 1.0, -2.0), VECTORS),
    (Row("AffineTransform", [0.1, 0.2, 0.3], [1.0, -2.0, 0.5], event_dim=1), VECTORS),
    (Row("SoftmaxTransform"), VECTORS),
    (Row("StickBreakingTransform"), VECTORS),
    (Row("LowerCholeskyTransform"), MATRIX),
    (Row("PositiveDefiniteTransform", since=(2, 1)), FACTOR),
    (Row("ReshapeTransform", (3,), (1, 3)), VECTORS),
    (Row("IndependentTransform", Row("ExpTransform"), 1), VECTORS),
    (Row("CumulativeDistributionTransform", Row("Normal", 0.5, [2.0, 1.0, 3.0])), VECTORS),
    (Row("ComposeTransform", []), VECTORS),
    (Row("ComposeTransform", [Row("ExpTransform"), Row("AffineTransform", 1.0, [2.0, 0.5, -1.0])]), VECTORS),
    (Row("ComposeTransform", [Row("AffineTransform", 0.1, 2.0), Row("StickBreakingTransform"), Row("ExpTransform")]), VECTORS),
]

NAN = math.nan
CONSTRAINTS = [  # names, arguments, values
    ("boolean", None, [0.0, 1.0, 0.5, NAN]),
    ("real", None, [0.0, NAN, math.inf]),
    ("positive", None, [0.0, 1.0, -1.0, NAN]),
    ("nonnegative", None, [0.0, 1.0, -1.0, NAN]),
    ("nonnegative_integer", None, [0.0, 1.0, 0.5, -1.0]),
    ("positive_integer", None, [0.0, 1.0, 1.5, -1.0]),
    ("unit_interval", None, [0.0, 1.0, 1.5, -1.0]),
    ("integer_interval", (1, 3), [0.0, 1.0, 3.0, 2.5]),
    ("interval", (1, 3), [0.0, 1.0, 3.0, 2.5]),
    ("half_open_interval", (1, 3), [0.0, 1.0, 3.0, 2.5]),
    ("greater_than", (1,), [0.0, 1.0, 3.0]),
    ("greater_than_eq", (1,), [0.0, 1.0, 3.0]),
    ("less_than", (1,), [0.0, 1.0, 3.0]),
    ("real_vector", None, [[0.0, 1.0], [0.0, NAN]]),
    ("simplex", None, WEIGHTS + [[0.5, 0.6, 0.0], [1.5, -0.5, 0.0]]),
    ("one_hot", None, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]),
    ("multinomial", (3,), [[0.0, 1.0], [1.0, 2.0], [-1.0, 2.0], [3.0, 3.0]]),
    ("lower_triangular", None, [FACTOR, MATRIX]),
    ("lower_cholesky", None, [FACTOR, MATRIX, [[-1.0, 0.0, 0.0]] * 3]),
    ("positive_definite", None, [FACTOR, MATRIX, [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]),
    ("positive_semidefinite", None, [FACTOR, MATRIX, [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]),
    ("symmetric", None, [FACTOR, MATRIX]),
    ("square", None, [FACTOR, MATRIX]),
]

ERRORS = [  # of a function of the module and a maker of tensors
    (ValueError, "scale.*GreaterThan.*-1", lambda d, t: d.Normal(0.0, -1.0)),
    (ValueError, "loc.*Real.*nan", lambda d, t: d.Normal(t([0.0, NAN]), 1.0)),
    (ValueError, "must be a Tensor", lambda d, t: d.Normal(0.0, 1.0).log_prob(1)),
    (ValueError, "number|Number", lambda d, t: d.Normal("one", 1.0)),
    (ValueError, "support.*Boolean", lambda d, t: d.Bernoulli(0.3).log_prob(t(2.0))),
    (ValueError, "support", lambda d, t: d.Exponential(1.0).log_prob(t(-1.0))),
    (ValueError, "support.*OneHot", lambda d, t: d.OneHotCategorical(t([1.0, 1.0])).log_prob(t([1.0, 1.0]))),
    (ValueError, "support", lambda d, t: d.Normal(0.0, 1.0).cdf(t(NAN))),
    (ValueError, "Either", lambda d, t: d.Bernoulli()),
    (ValueError, "Either", lambda d, t: d.Categorical(t([1.0]), t([1.0]))),
    (ValueError, "positive", lambda d, t: d.Geometric(0.0)),
    (ValueError, "broadcast", lambda d, t: d.Normal(t([0.0, 0.0]), 1.0).log_prob(t([0.0, 0.0, 0.0]))),
    (ValueError, "event_shape", lambda d, t: d.Dirichlet(t([0.5, 0.5])).log_prob(t([0.2, 0.2, 0.6]))),
    (ValueError, "low|Uniform", lambda d, t: d.Uniform(1.0, 0.0)),
    (ValueError, "at least one-dimensional", lambda d, t: d.Categorical(t(1.0))),
    (ValueError, "at least one-dimensional", lambda d, t: d.Dirichlet(t(1.0))),
    (ValueError, "at least one-dimensional", lambda d, t: d.MultivariateNormal(t(1.0), t([[1.0]]))),
    (ValueError, "Exactly one", lambda d, t: d.MultivariateNormal(t([1.0]))),
    (ValueError, "covariance_matrix", lambda d, t: d.MultivariateNormal(t([1.0]), t([[-1.0]]))),
    (ValueError, "2 x m", lambda d, t: d.LowRankMultivariateNormal(t([1.0, 1.0]), t([[1.0]]), t([1.0, 1.0]))),
    (ValueError, "reinterpreted_batch_ndims", lambda d, t: d.Independent(d.Normal(0.0, 1.0), 1)),
    (ValueError, "Categorical", lambda d, t: d.MixtureSameFamily(1, d.Normal(0.0, 1.0))),
    (ValueError, "transforms", lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), [1])),
    (ValueError, "at least 1", lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), d.SoftmaxTransform())),
    (ValueError, "different numbers", lambda d, t: d.ReshapeTransform((2, 3), (5,))),
    (ValueError, "Too few", lambda d, t: d.StickBreakingTransform().forward_shape(())),
    (ValueError, "Too few", lambda d, t: d.IndependentTransform(d.ExpTransform(), 1)(t(1.0))),
    (ValueError, "cache_size", lambda d, t: d.ExpTransform(cache_size=2)),
    (ValueError, ".", lambda d, t: d.Distribution.set_default_validate_args(3)),
    (NotImplementedError, ".", lambda d, t: d.Multinomial(t(2.0), t([0.2, 0.8]))),
    (NotImplementedError, ".", lambda d, t: d.Binomial(t([2.0, 3.0]), 0.3).enumerate_support()),
    (NotImplementedError, ".", lambda d, t: d.Cauchy(0.0, 1.0).enumerate_support()),
    (NotImplementedError, ".", lambda d, t: d.Poisson(1.0).cdf(t(1.0))),
    (NotImplementedError, ".", lambda d, t: d.Poisson(1.0).rsample()),
    (NotImplementedError, ".", lambda d, t: d.Poisson(1.0).entropy()),
    (NotImplementedError, ".", lambda d, t: d.Independent(d.Poisson(t([1.0])), 1).rsample()),
    (NotImplementedError, ".", lambda d, t: d.Distribution(validate_args=False).mean),
    (NotImplementedError, ".", lambda d, t: d.Distribution(validate_args=False).sample()),
    (NotImplementedError, ".", lambda d, t: d.AbsTransform().sign),
    (NotImplementedError, "Cauchy.*Normal", lambda d, t: d.kl_divergence(d.Cauchy(0.0, 1.0), d.Normal(0.0, 1.0))),
    (NotImplementedError, ".", lambda d, t: d.biject_to(d.constraints.lower_triangular)),
    (TypeError, ".", lambda d, t: d.register_kl(1, 2)),
]


class BesidePyTorch(unittest.TestCase):
    @classmethod
    def tearDownClass(cls):
        tern.manual_seed(0, engine="philox")

    def each(self, rows, name, check, dtypes=("float32", "float64")):
        for row in rows:
            for dtype in dtypes:
                with self.subTest(f"{name(row)} {dtype}"):
                    check(row, dtype)

    def assert_close(self, a, b, what, loose=1.0):
        self.assertEqual(tuple(a.shape), tuple(b.shape), what)
        self.assertEqual(str(a.dtype).split(".")[1], str(b.dtype).split(".")[1], what)
        a, b = torch.tensor(plain(a), dtype=torch.float64), b.detach().double()
        relative, absolute = TOLERANCES[self.dtype]
        self.assertTrue(torch.allclose(a, b, rtol=loose * relative, atol=loose * absolute, equal_nan=True), f"{what}:\n{a}\n{b}")

    def assert_same_gradients(self, ours, theirs, a, b, what, loose=1.0):
        expected = self.outcome(lambda: theirs.gradients(b))
        if expected is None:  # PyTorch lacks some of gammainc
            return
        if self.dtype == "float64":  # PyTorch's trigamma function has ten digits
            loose *= 100
        for x, y in zip(ours.gradients(a), expected):
            if x is None or y is None:  # none is as good as zeros
                x = x if x is None else x.abs().sum().item()
                y = y if y is None else y.abs().sum().item()
                self.assertFalse(x or y, what)
            else:
                self.assert_close(x, y, f"gradients of {what}", loose)

    def outcome(self, call):
        try:
            return call()
        except NotImplementedError:
            return None

    def check_method(self, row, ours, theirs, what, a, b):
        """A result, which is None where PyTorch has none, and its gradients."""
        if what in row.different:
            return
        a, b = self.outcome(a), self.outcome(b)
        if b is None or a is None:
            self.assertTrue(a is None and b is None or not NEW, f"{what}: {a} {b}")
            return
        self.assert_close(a, b, what, row.loose)
        if f"gradients of {what}" not in row.different:
            self.assert_same_gradients(ours, theirs, a, b, what, row.loose)

    def check_distribution(self, row, dtype):
        if VERSION < row.since or dtype == "float64" and not row.double:
            return
        self.dtype = dtype
        ours, theirs = sides(dtype)
        p, q = ours.made(row), theirs.made(row)
        self.check_attributes(p, q)
        drawn = []
        for side, each in ((ours, p), (theirs, q)):
            side.seed()
            drawn.append(each.sample((2, 3)))
        self.assertFalse(drawn[0].requires_grad)
        self.assert_close(*drawn, "sample", row.loose)
        self.check_methods(row, ours, theirs, p, q, drawn[1])
        self.assertEqual(repr(p), repr(q))
        expanded = [each.expand((2,) + tuple(each.batch_shape)) for each in (p, q)]
        self.check_attributes(*expanded)
        value = ours.tensor(plain(drawn[1][:, 0])), drawn[1][:, 0]
        self.check_method(row, ours, theirs, "log_prob", *(lambda e=e, v=v: e.log_prob(v) for e, v in zip(expanded, value)))
        self.check_method(row, ours, theirs, "mean", *(lambda e=e: e.mean for e in expanded))

    def check_attributes(self, p, q):
        for name in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
            self.assertEqual(getattr(p, name), getattr(q, name), name)
        if NEW:
            self.assertEqual(repr(p.support), repr(q.support))
            self.assertEqual(repr(p.arg_constraints), repr(q.arg_constraints))
            self.assertEqual(repr(p), repr(q))

    def check_methods(self, row, ours, theirs, p, q, value):
        values = ours.tensor(plain(value)).to(getattr(tern, str(value.dtype).split(".")[1])), value
        probabilities = torch.rand((2, 1) + tuple(q.batch_shape), dtype=theirs.dtype)
        probabilities = ours.tensor(plain(probabilities)), probabilities

        def check(what, function):
            self.check_method(row, ours, theirs, what, *(
                lambda e=e, v=v, u=u: function(e, v, u) for e, v, u in zip((p, q), values, probabilities)))

        def seeded(e, v, u):
            for side in (ours, theirs):
                side.seed()
            return e.rsample((2, 3))

        check("log_prob", lambda e, v, u: e.log_prob(v))
        check("cdf", lambda e, v, u: e.cdf(v))
        check("icdf", lambda e, v, u: e.icdf(u))
        check("entropy", lambda e, v, u: e.entropy())
        check("perplexity", lambda e, v, u: e.perplexity())
        for name in ("mean", "mode", "variance", "stddev"):
            check(name, lambda e, v, u, name=name: getattr(e, name))
        for expand in (True, False):
            check("enumerate_support", lambda e, v, u: e.enumerate_support(expand))
        for name in ("covariance_matrix", "precision_matrix", "scale_tril", "probs", "logits"):
            if hasattr(q, name):
                check(name, lambda e, v, u, name=name: getattr(e, name))
        if q.has_rsample:
            check("rsample", seeded)

    def test_distributions(self):
        self.each(DISTRIBUTIONS, repr, self.check_distribution)

    def check_pair(self, pair, dtype):
        self.dtype = dtype
        ours, theirs = sides(dtype)
        a, b = (side.library.distributions.kl_divergence(*map(side.made, pair)) for side in (ours, theirs))
        self.assert_close(a, b, "kl_divergence")
        if b.isfinite().all():  # PyTorch assigns infinities, whose other branches here have gradients
            self.assert_same_gradients(ours, theirs, a, b, "kl_divergence")

    def test_pairs(self):
        self.each(PAIRS, repr, self.check_pair)

    def check_transform(self, row, dtype):
        row, numbers = row
        if VERSION < row.since:
            return
        self.dtype = dtype
        ours, theirs = sides(dtype)
        made = [(side, side.made(row), side.made(numbers)) for side in (ours, theirs)]

        def both(what, function, grad=True):
            results = [self.outcome(lambda: function(t, x)) for _, t, x in made]
            if results[1] is None:
                self.assertIsNone(results[0], what)
                return
            self.assert_close(*results, what)
            if grad:
                self.assert_same_gradients(ours, theirs, *results, what)

        both("forward", lambda t, x: t(x))
        both("inverse", lambda t, x: t.inv(t(x).detach()))
        both("log_abs_det_jacobian", lambda t, x: t.log_abs_det_jacobian(x, t(x)))
        both("inverse log_abs_det_jacobian", lambda t, x: t.inv.log_abs_det_jacobian(t(x), x))
        for text in (repr, lambda t: repr(t.domain), lambda t: repr(t.codomain), lambda t: t.bijective, lambda t: repr(t.inv),
                     lambda t: tuple(t.forward_shape((2, 3, 3))), lambda t: tuple(t.inv.inverse_shape((2, 3, 3)))):
            self.assertEqual(text(made[0][1]), text(made[1][1]))
        _, transform, x = made[0]
        cached = transform.with_cache()
        self.assertIs(cached.inv(cached(x)), x)
        self.assertIs(cached(x) is cached(x), True)
        self.assertIs(transform.inv.inv, transform)
        if made[1][1] == theirs.made(row):
            self.assertEqual(transform, ours.made(row))
        self.assertNotEqual(transform, tern.distributions.Transform())

    def test_transforms(self):
        self.each(TRANSFORMS, repr, self.check_transform)

    def test_constraints(self):
        for name, args, values in CONSTRAINTS:
            with self.subTest(name):
                if not hasattr(torch.distributions.constraints, name):
                    continue
                results = []
                for side in (tern, torch):
                    constraint = getattr(side.distributions.constraints, name)
                    constraint = constraint if args is None else constraint(*args)
                    checked = constraint.check(side.tensor(values))
                    results.append((plain(checked), repr(constraint), constraint.is_discrete, constraint.event_dim))
                self.assertEqual(*results)

    def test_transforms_to_constraints(self):
        for registry in ("biject_to", "transform_to"):
            for name, args, values in CONSTRAINTS:
                with self.subTest(f"{registry}({name})"):
                    if not hasattr(torch.distributions.constraints, name):
                        continue
                    results = []
                    for side in (tern, torch):
                        constraint = getattr(side.distributions.constraints, name)
                        constraint = constraint if args is None else constraint(*args)
                        numbers = side.tensor(MATRIX if constraint.event_dim == 2 else VECTORS)
                        results.append(self.outcome(lambda: getattr(side.distributions, registry)(constraint)(numbers)))
                    self.dtype = "float32"
                    self.assertTrue(results[0] is not None or results[1] is None)
                    if results[1] is not None:  # older versions have fewer
                        self.assert_close(*results, "transformed")

    def test_errors(self):
        for number, (error, text, call) in enumerate(ERRORS):
            with self.subTest(number):
                for side in (tern, torch):
                    with self.assertRaises(error) as caught:
                        call(side.distributions, side.tensor)
                    if side is tern:
                        self.assertRegex(str(caught.exception).replace("\n", " "), text)

    def test_names_of_modules(self):
        for name in tern.distributions.__all__:
            theirs = getattr(torch.distributions, name, None)
            if theirs is not None and getattr(theirs, "__module__", None):
                module = importlib.import_module(theirs.__module__.replace("torch", "tern", 1))
                self.assertIs(getattr(module, name), getattr(tern.distributions, name))


class Alone(unittest.TestCase):
    def test_gradients_of_beta_samples_agree_on_average(self):
        """They go through two gamma numbers, PyTorch's through the place in the distribution: the means are those of the mean."""
        tern.manual_seed(0)
        a, b = (tern.tensor(x, dtype=tern.float64, requires_grad=True) for x in (1.5, 2.5))
        tern.distributions.Beta(a, b).rsample((40000,)).mean().backward()
        self.assertAlmostEqual(a.grad.item(), 2.5 / 16, delta=2e-3)
        self.assertAlmostEqual(b.grad.item(), -1.5 / 16, delta=2e-3)

    def test_mode_of_kumaraswamy(self):
        p = tern.distributions.Kumaraswamy(tern.tensor([2.0, 0.5]), tern.tensor([3.0, 2.0]))
        mode = p.mode.tolist()
        self.assertAlmostEqual(mode[0], 0.2 ** 0.5, places=6)
        self.assertTrue(math.isnan(mode[1]))

    def test_derived_classes(self):
        class Doubled(tern.distributions.Normal):
            def __init__(self, loc):
                super().__init__(loc, 2.0)

        p = Doubled(tern.tensor([0.0, 1.0]))
        self.assertEqual(repr(p.expand((3, 2))), "Doubled(loc: torch.Size([3, 2]), scale: torch.Size([3, 2]))")
        kl = tern.distributions.kl_divergence(p, Doubled(tern.tensor([0.0, 1.0])))
        self.assertEqual(kl.tolist(), [0.0, 0.0])

        class Own(Doubled):
            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(Own, _instance)
                new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
                super(Doubled, new).__init__(new.loc, new.scale, validate_args=False)
                return new

        self.assertEqual(Own(tern.tensor([0.0, 1.0])).expand((3, 2)).sample((4,)).shape, (4, 3, 2))

        @tern.distributions.register_kl(Doubled, Doubled)
        def _(p, q):
            return 1

        self.assertEqual(tern.distributions.kl_divergence(p, p), 1)

    def test_validation_is_on_by_default_and_can_be_put_off(self):
        tern.distributions.Normal(0.0, -1.0, validate_args=False)
        tern.distributions.Distribution.set_default_validate_args(False)
        try:
            p = tern.distributions.Normal(0.0, -1.0)
            p.log_prob(tern.tensor(math.nan))
        finally:
            tern.distributions.Distribution.set_default_validate_args(True)
        with self.assertRaises(ValueError):
            tern.distributions.Normal(0.0, -1.0)

    def test_copies(self):
        p = tern.distributions.TransformedDistribution(
            tern.distributions.Normal(0.0, tern.tensor([1.0, 2.0])), [tern.distributions.ExpTransform().inv.inv])
        p.log_prob(tern.tensor(1.5))
        for copied in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
            self.assertEqual(copied.transforms, p.transforms)
            self.assertEqual(copied.log_prob(tern.tensor(1.5)).tolist(), p.log_prob(tern.tensor(1.5)).tolist())

    def test_dependent_properties(self):
        constraints = tern.distributions.constraints
        self.assertTrue(constraints.is_dependent(tern.distributions.Binomial.support))
        self.assertEqual(tern.distributions.Binomial.support.event_dim, 0)
        with self.assertRaises(NotImplementedError):
            constraints.dependent.event_dim
        self.assertEqual(constraints.dependent(event_dim=1).event_dim, 1)


if __name__ == "__main__":
    unittest.main()

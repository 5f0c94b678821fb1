"""Operators are called as PyTorch's: the expressions of the operator table (tests/support/operator_rows) a second time, with
`tern` in the place of `torch`, and calls as programs write them, beside what PyTorch gives. How exact numbers are is the table's
business; this is about names, arguments, overloads and results.
"""

import importlib
import itertools
import pathlib
import sys
import types
import unittest
from unittest import mock

import torch

import tern
import tern.nn.functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import operator_rows  # noqa: E402
from operator_rows import driver, inputs  # noqa: E402

# What of each row is run: the first cases whose arguments differ in kind.
LOOKED_AT, CASES, LARGEST = 300, 8, 300

# Rows that are no calls of tern.
LEFT_OUT = {
    "recurrent_layer": "is torch._VF's; the layers are in layers_test.py",
    "index": "is torch.ops.aten's, in Python x[...]",
    "index_put": "is torch.ops.aten's, in Python x[...] = y",
    "index_put_": "is torch.ops.aten's, in Python x[...] = y",
    "embedding_renorm_": "is a part of F.embedding",
    "norm": "is torch.linalg's; torch.norm is among the forms",
    "Tensor.norm": "is torch.linalg's; torch.norm is among the forms",
}


# Calls as programs write them, with the tensors of names_for().
FORMS = """
torch.var(x, dim=1, unbiased=False)
x.var(-1, keepdim=True, unbiased=False)
x.var(0, False, True)
x.var(False)
x.var(1)
x.var()
torch.std(x, 0)
torch.std(x, dim=(0, 1), correction=0)
x.std(unbiased=False)
torch.var_mean(x, dim=0, unbiased=False)
torch.std_mean(x)
torch.std_mean(x, False)
x.sum(1)
x.sum((0, 1))
x.sum(-1, keepdim=True)
x.sum(dim=None)
x.sum(dtype=torch.float64)
x.mean([0, 1], True)
x.mean(dim=0)
x.prod()
x.prod(1, keepdim=True)
x.max()
x.max(1)
x.max(dim=1)[0]
x.max(dim=1).values
torch.max(x, 0, keepdim=True).indices
torch.max(x, y)
torch.min(x, other=y)
x.argmax()
x.argmax(dim=None)
x.argmin(None, True)
torch.argmax(x, 1)
torch.argmax(x, dim=-1, keepdim=True)
x.amax(dim=(0, 1))
x.amin(1, keepdim=True)
torch.aminmax(x)
x.aminmax(dim=0, keepdim=True).max
(x > 0).all()
(x > 0).any(dim=1, keepdim=True)
(x > 0).all(0)
torch.any(x > 0, 1)
x.median()
x.median(1).values
torch.quantile(x, 0.5, dim=1)
torch.quantile(x, q=torch.tensor([0.25, 0.5]), dim=0, keepdim=True)
x.logsumexp(1)
x.sum(axis=1, keepdims=True)
torch.argmax(x, axis=0)
x.mean(axis=(0, 1))
x.max(axis=1).values
torch.std(x, axis=1)
torch.softmax(x, axis=1)
torch.stack([x, y], axis=1)
x.cumsum(0)
torch.cumsum(x, dim=1, dtype=torch.float64)
x.norm()
x.norm(dim=1)
x.norm(2, 1)
x.norm(p=1, dim=1, keepdim=True)
torch.norm(x)
torch.norm(x, p="fro")
torch.norm(x, "fro", dim=(0, 1))
x.histc(bins=4, min=-1, max=1)
torch.bincount(i.flatten(), minlength=5)
x.view(3, 2)
x.view((3, 2))
x.view(-1)
x.view([6])
x.view(x.shape)
x.reshape(3, -1)
x.reshape(shape=(6,))
torch.reshape(x, (3, 2))
x.permute(1, 0)
x.permute((1, 0))
torch.permute(x, dims=(1, 0))
x.transpose(0, 1)
x.T
x.mT
x.t()
x.expand(2, 2, 3)
x.expand(size=(4, 2, 3))
x.repeat(2, 1)
x.repeat((1, 2))
x.tile(2)
x.tile((2, 1))
torch.tile(x, dims=(2,))
x.flip(0)
x.flip([0, 1])
torch.flip(x, dims=(1,))
x.roll(1)
x.roll(1, 0)
torch.roll(x, shifts=(1, 2), dims=(0, 1))
x.unsqueeze(0).squeeze()
x[None].squeeze(dim=0)
x.flatten(1)
torch.flatten(x, start_dim=0)
x.unfold(1, 2, 1)
x.split(1)
x.split([1, 2], dim=1)
x.split(split_size=2, dim=1)
torch.split(x, 2, 1)
torch.split(x, [1, 2], dim=1)
torch.split(x, split_size_or_sections=1)
x.chunk(2, dim=1)
torch.tensor_split(x, 2, dim=1)
torch.tensor_split(x, sections=2)
x.tensor_split(indices=(1,), dim=1)
torch.tensor_split(x, (1, 2), dim=1)
torch.hsplit(x, 3)
x.unbind(1)
torch.stack([x, y], dim=1)
torch.cat((x, y), 1)
torch.cat(tensors=[x, y], dim=-1)
torch.cat([x, y], axis=0)
torch.vstack((x, y))
torch.narrow(x, 1, 0, 2)
torch.as_strided(x, (2, 2), (1, 2))
torch.as_strided(x, size=(2, 2), stride=(1, 2))
x.as_strided((2,), (1,), 1)
torch.broadcast_tensors(x, y[0])
torch.meshgrid(y[0], y[1], indexing="ij")
torch.meshgrid([y[0], y[1]], indexing="xy")
torch.atleast_2d(y[0])
torch.atleast_1d(y[0], y)
torch.block_diag(x, y)
torch.cartesian_prod(y[0], y[1])
torch.combinations(y[0], r=2)
torch.repeat_interleave(x, 2, dim=0)
x.repeat_interleave(2)
torch.repeat_interleave(x, torch.tensor([2, 1]), dim=0)
x.repeat_interleave(torch.tensor([1, 0, 2]), dim=1, output_size=3)
x.repeat_interleave(torch.tensor([2]))
torch.repeat_interleave(torch.tensor([0, 2, 1]))
torch.tril(x, diagonal=-1)
x.triu(diagonal=1)
torch.diag(y[0])
torch.diagonal(x, offset=1)
torch.movedim(x, 0, 1)
torch.swapaxes(x, 0, 1)
torch.rot90(x, 1, [0, 1])
x.clamp(min=0)
x.clamp(max=1.0)
torch.clamp(x, -1, 1)
x.clip(-1, 1)
x.clamp(y, y + 1)
x.clamp_(y, y + 1)
x.clamp_(max=y)
x.clamp_(min=0.5)
x.round(decimals=1)
x.round_(decimals=1)
(x * 100).round(decimals=-1)
x.add_(2, alpha=3)
i.sub_(2, alpha=3)
torch.round(x)
torch.div(x, y, rounding_mode="floor")
x.div(2, rounding_mode="trunc")
torch.div(x, y, rounding_mode=None)
torch.add(x, y, alpha=2)
torch.add(x, 1, alpha=2)
torch.sub(input=x, other=y)
torch.pow(x, 2)
torch.pow(2, x)
torch.pow(input=x, exponent=2)
x.pow(exponent=2)
torch.lerp(x, y, 0.5)
torch.lerp(input=x, end=y, weight=0.5)
torch.addcmul(x, x, y, value=0.5)
torch.addcdiv(x, x, y + 9, value=2)
torch.where(x > 0, x, 0.0)
torch.where(x > 0, 1, 0)
torch.where(x > 0, x, y)
x.where(x > 0, y)
x.where(x > 0, 0.0)
x.where(condition=x > 0, other=y)
torch.where(x > 0)
torch.add(x, y, out=x)
torch.mul(x, y, out=torch.zeros_like(x))
torch.matmul(x, y.T, out=torch.empty(0))
torch.exp(x, out=None)
torch.sort(x, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
torch.sum(x, dim=1, out=torch.zeros(2, dtype=torch.float64))
torch.cat((x, y), axis=1, out=torch.empty(2, 6))
torch.arange(3, out=torch.zeros(3))
torch.rsub(x, 1)
torch.rsub(x, y)
torch.nan_to_num(x, nan=1.0)
torch.heaviside(x, values=y)
x.masked_fill(x > 0, -1)
x.masked_fill(mask=x > 0, value=float("-inf"))
torch.masked_select(x, x > 0)
x.float_power(2)
x.logit(eps=1e-6)
x.hardshrink(0.2)
x.prelu(torch.tensor([0.25]))
x.bernoulli_(0).add_(y, alpha=2)
x.relu_()
torch.relu(x)
torch.sigmoid_(x)
torch.exp_(x)
torch.clamp_(x, min=0)
torch.negative_(x)
torch.fill_(x, 2)
i.bitwise_not_()
x.masked_fill_(x > 0, torch.tensor(2.0))
torch.nonzero(x)
torch.nonzero(x, as_tuple=True)
x.nonzero()
x.nonzero(as_tuple=True)
torch.argwhere(x > 0)
torch.unique(i, return_counts=True)
i.unique(sorted=True)
torch.unique(i, dim=0, return_inverse=True)
torch.sort(x, dim=0, descending=True)
torch.sort(x, stable=True)
x.sort(1, True)
x.sort(stable=True, dim=0).indices
torch.argsort(x, dim=-1, descending=True)
x.argsort(dim=0, stable=True)
torch.topk(x, k=2, dim=-1, largest=False)
x.topk(2).indices
torch.kthvalue(x, 1, dim=1)
torch.searchsorted(torch.tensor([1.0, 3, 5]), x)
torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 5]), side="right")
torch.searchsorted(torch.tensor([1, 3, 5]), 3, right=True)
torch.searchsorted(torch.tensor([5, 1, 3]), torch.tensor([3, 5]), sorter=torch.tensor([1, 2, 0]), out_int32=True)
torch.bucketize(x, torch.tensor([0.0, 1.0]), right=True)
torch.bucketize(x, torch.tensor([0.0, 1.0]), out_int32=True)
torch.bucketize(3, torch.tensor([1, 3]))
torch.isin(i, torch.tensor([1, 2]))
torch.isin(i, 1, invert=True)
torch.gather(x, 1, i)
x.gather(dim=1, index=i)
torch.take(x, i)
torch.index_select(x, 0, torch.tensor([1, 0]))
x.index_select(dim=1, index=torch.tensor([2]))
x.scatter(1, i, y)
x.scatter(1, i, 1.0)
x.scatter_(dim=1, index=i, value=2)
x.scatter_add_(1, i, y)
x.scatter_reduce(0, i[:, :2] % 2, y, reduce="sum", include_self=False)
x.index_add_(0, torch.tensor([1, 0]), y, alpha=2)
x.index_fill_(1, torch.tensor([0]), 5)
x.index_put_((torch.tensor([0]), torch.tensor([1])), torch.tensor(9.0))
x.index_put([torch.tensor([0])], y[1], accumulate=True)
x.masked_fill_(x > 0, value=0)
x.fill_diagonal_(fill_value=7)
x.copy_(y)
x.copy_(other=y, non_blocking=True)
x.fill_(torch.tensor(3.0))
x.zero_()
torch.zeros_like(x, dtype=torch.int64)
torch.ones(2, 3, dtype=torch.float64)
torch.zeros((2, 3))
torch.zeros(x.size())
torch.zeros(size=(2,))
torch.ones([])
torch.full((2, 3), 7)
torch.full((2, 3), fill_value=7.5)
torch.full(size=(2,), fill_value=True)
torch.full_like(x, fill_value=2)
x.new_full((2,), 3)
x.new_full((2,), fill_value=3)
x.new_zeros(2, 3)
x.new_ones((2,), dtype=torch.int64)
x.new_tensor([1, 2])
x.new_empty(0, 3)
torch.eye(3)
torch.eye(2, 3)
torch.arange(5)
torch.arange(1, 2.5, 0.5)
torch.arange(start=1, end=9, step=2)
torch.arange(0, 4, dtype=torch.float32)
torch.linspace(0, 1, steps=5)
torch.logspace(0, 1, 5)
torch.logspace(start=0, end=3, steps=4, base=2)
torch.tril_indices(3, 3, offset=-1)
torch.hann_window(5, periodic=False)
torch.empty(0, 3)
torch.matmul(x, y.T)
x.matmul(y.T)
x.matmul(other=y.T)
x.mm(mat2=y.T)
x @ y.T
torch.mv(x, vec=y[0])
torch.dot(y[0], y[1])
torch.outer(y[0], y[1])
torch.ger(y[0], y[1])
torch.bmm(x[None], mat2=y.T[None])
torch.addmm(x @ y.T, x, y.T, beta=0.5, alpha=2)
torch.einsum("ij,kj->ik", x, y)
torch.einsum("ij,kj->ik", [x, y])
torch.einsum("ij->i", x)
torch.tensordot(x, y, dims=2)
torch.tensordot(x, y, dims=([1], [1]))
torch.tensordot(a=x, b=y, dims=[[0, 1], [0, 1]])
torch.chain_matmul(x, y.T, x)
torch.kron(x, y)
x.kron(y)
torch.cdist(x, y, p=1.0)
torch.renorm(x, 2, 0, 1)
x.renorm(p=2, dim=0, maxnorm=1)
torch.cross(x, y, dim=1)
torch.trapz(y, x)
torch.trapezoid(y, x=x)
torch.trapezoid(y, dx=2)
torch.diff(x, n=1, dim=1)
torch.cov(x)
torch.bilinear(x, y, torch.ones(1, 3, 3), None)
F.bilinear(input1=x, input2=y, weight=torch.ones(1, 3, 3))
F.linear(x, y)
F.linear(x, weight=y, bias=torch.ones(2))
F.one_hot(i, num_classes=5)
F.one_hot(torch.tensor([0, 2]))
F.softmax(x, dim=-1)
F.softmax(x, 1, dtype=torch.float64)
x.softmax(-1)
x.softmax(dim=0)
torch.log_softmax(x, dim=1)
F.normalize(x, p=2.0, dim=1)
F.normalize(x, dim=0)
F.cosine_similarity(x, y, dim=1)
F.cosine_similarity(x1=x, x2=y)
F.pairwise_distance(x, y, p=1)
F.pad(x, (1, 1))
F.pad(x, [1, 2], "constant", 0)
F.pad(input=x, pad=(1, 0, 2, 0), value=3.0)
F.dropout(x, p=0.5, training=False)
F.dropout(x, 0.0)
F.gelu(x, approximate="tanh")
F.leaky_relu(x, negative_slope=0.2)
F.hardtanh(x, min_val=-0.5, max_val=0.5)
F.glu(torch.cat([x, x], 1), dim=1)
F.threshold(x, 0.1, 20)
F.layer_norm(x, (3,))
F.layer_norm(x, normalized_shape=[3], weight=y[0], bias=y[1], eps=1e-3)
F.batch_norm(x, None, None, training=True)
F.batch_norm(x, torch.zeros(3), torch.ones(3))
F.group_norm(x, num_groups=3)
F.group_norm(x, 1, y[0], y[1])
F.instance_norm(x[None])
F.embedding(i, torch.arange(12.0).view(4, 3))
F.embedding(input=i, weight=torch.arange(12.0).view(4, 3), padding_idx=0)
F.conv1d(x[None], torch.ones(1, 2, 2), stride=1, padding="same")
F.max_pool1d(x[None], 2)
F.avg_pool1d(x[None], kernel_size=2, stride=1)
F.interpolate(x[None], scale_factor=2)
F.interpolate(x[None], size=5, mode="linear", align_corners=False)
F.cross_entropy(x, torch.tensor([0, 2]), label_smoothing=0.1, reduction="sum")
F.nll_loss(x, torch.tensor([0, 2]), reduction="none")
F.mse_loss(x, y, reduction="sum")
F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=torch.ones(3))
F.smooth_l1_loss(x, y, beta=2.0)
F.kl_div(x, y.softmax(1), reduction="batchmean")
F.scaled_dot_product_attention(x[None], y[None], y[None], is_causal=True)
torch.is_tensor(x)
torch.result_type(x, 1) == torch.float32
torch.result_type(1.0, i) == torch.float32
torch.result_type(i, torch.tensor(1.0)) == torch.float32
torch.promote_types(torch.int64, torch.float16) == torch.float16
torch.numel(x)
x.numel()
torch.is_floating_point(i)
torch.is_complex(x)
torch.is_nonzero(x[0, 0])
torch.allclose(x, x + 1e-9, rtol=1e-5, atol=1e-8)
torch.equal(x, y)
torch.isclose(x, y, equal_nan=True)
x.size(0)
x.size(dim=1)
x.dim()
x.tolist()
x.stride()
x.is_contiguous()
x.is_same_size(y)
x.is_signed()
x.element_size()
x.is_sparse
x.is_quantized
x.type(torch.int64)
x.type()
x.type("torch.LongTensor")
x.type(torch.LongTensor)
i.type()
x.type_as(i)
x.type_as(other=i)
x.to(torch.float64)
x.to(dtype=torch.int64)
x.to(i)
x.to("cpu", torch.float64)
x.to(device="cpu", dtype=torch.float64, non_blocking=True)
x.double()
x.long()
x.adjoint()
x.H
x.dist(y)
torch.dist(x, y, p=1)
i & 1
i | i
i ^ 3
i.bitwise_and_(3)
i.bitwise_and(other=3)
2 - x
2 / y
2 ** x
7 // i.clamp(min=1)
-x
abs(x)
~(x > 0)
x % 2
x // 2
x[:, 1:] * 3
len(x)
bool(x[0, 0] == x[0, 0])
float(x[0, 1])
(x > 0).float().sum().item()
torch.finfo(torch.float32).eps
torch.finfo(torch.float16).min
torch.finfo(torch.float64).tiny
torch.finfo().max
torch.iinfo(torch.int32).max
torch.iinfo(torch.uint8).bits
torch.linalg.inv(x @ x.T)
(x @ x.T).inverse()
(x @ x.T).det()
torch.linalg.slogdet(x @ x.T).logabsdet
torch.linalg.solve_triangular(x @ x.T, y[:, :2], upper=True)
torch.linalg.lu_factor(x @ x.T).pivots
torch.linalg.cholesky_ex(x @ x.T).info
torch.linalg.cholesky(x @ x.T, upper=True)
torch.linalg.qr(x.T, mode="r").R
torch.linalg.eigh(x @ x.T, UPLO="U").eigenvalues
torch.linalg.svd(x, full_matrices=False).S
torch.linalg.lstsq(x.T, y.T).solution
torch.linalg.pinv(x, rtol=1e-3)
torch.linalg.cond(x @ x.T, p="fro")
torch.linalg.norm(x)
torch.linalg.norm(x, ord="nuc")
torch.linalg.norm(x, 1, dim=(0, 1))
torch.linalg.vector_norm(x, dim=1, keepdim=True)
torch.linalg.matrix_norm(x, float("inf"))
torch.linalg.vander(x[0], N=2)
torch.linalg.multi_dot([x, y.T, x])
issubclass(torch.linalg.LinAlgError, RuntimeError)
"""
# Of which only shapes and dtypes are compared.
RANDOM_FORMS = """
torch.rand(2, 3)
torch.rand((2, 3), generator=torch.Generator().manual_seed(1))
torch.randn(2, 3, requires_grad=True)
torch.randn(size=(2,), dtype=torch.float64)
torch.rand_like(x)
torch.randn_like(x, dtype=torch.float64)
torch.randint(10, (2, 3))
torch.randint(0, 10, size=(2,))
torch.randint(high=10, size=(2,))
torch.randint(low=3, high=10, size=(2,), dtype=torch.int32)
torch.randint_like(x, 10)
torch.randint_like(x, 3, 10)
torch.randint_like(x, low=3, high=10)
torch.randperm(5)
torch.normal(0, 1, (2, 3))
torch.normal(0.0, 1.0, size=(2, 3))
torch.normal(mean=x, std=y.abs())
torch.normal(x, 1.0)
torch.normal(0.0, y.abs())
torch.normal(mean=torch.zeros(2))
torch.bernoulli(torch.full((3,), 0.5))
torch.bernoulli(x.sigmoid(), 0.5)
torch.bernoulli(x.sigmoid(), p=0.5)
torch.multinomial(torch.ones(4), 2)
torch.multinomial(torch.ones(4), num_samples=6, replacement=True)
x.uniform_()
x.uniform_(-1, 1)
x.uniform_(0, to=2)
x.uniform_(-1, 1, generator=torch.Generator())
x.normal_(mean=0, std=0.02)
x.normal_(0, 1, generator=torch.Generator())
x.random_()
x.random_(5)
x.random_(2, 5)
x.random_(2, to=5, generator=torch.Generator())
x.exponential_()
x.exponential_(lambd=2)
x.bernoulli_(0.3)
x.bernoulli_(p=0.3, generator=torch.Generator())
x.bernoulli_(x.sigmoid())
x.sigmoid().bernoulli()
torch.dropout(x, 0.5, True)
F.dropout(x)
F.dropout(x, 0.5, True, False)
F.rrelu(x, training=True)
F.gumbel_softmax(x, tau=1, hard=True, dim=-1)
torch.empty(2, 3)
torch.empty_like(x)
x.new_empty((2, 3))
"""


def names_for(module):
    """What the forms are about."""
    return {"torch": module, "F": module.nn.functional, "x": module.tensor([[0.5, -1.25, 2.0], [3.0, -0.75, 0.25]]),
            "y": module.tensor([[1.5, 2.0, -0.5], [0.25, 4.0, -3.0]]), "i": module.tensor([[0, 1, 2], [2, 0, 1]])}


class Missing:
    """What tern does not have: an error when it is used."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        return Missing(f"{self.name}.{name}")

    def __call__(self, *args, **kwargs):
        raise AttributeError(f"there is no {self.name}")


class Stand(types.ModuleType):
    """A module of tern in the place of one of torch. Inputs that rows make while they are imported are PyTorch's."""

    importing = True

    def __init__(self, module):
        super().__init__(module.__name__)
        self.module = module

    def __getattr__(self, name):
        if Stand.importing and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        return getattr(self.module, name, None) or Missing(f"{self.module.__name__}.{name}")


def rows_of_tern():
    """The modules of rows, with tern as `torch`; inputs and comparison stay PyTorch's."""
    package = types.ModuleType("rows_of_tern")
    package.__path__ = operator_rows.__path__
    stands = {"torch": Stand(tern), "torch.nn": Stand(tern.nn), "torch.nn.functional": Stand(tern.nn.functional)}
    kept = {"rows_of_tern": package, "rows_of_tern.driver": driver, "rows_of_tern.inputs": inputs}
    with mock.patch.dict(sys.modules, {**stands, **kept}):
        modules = {name: importlib.import_module(f"rows_of_tern.{name}") for name in operator_rows.FAMILIES}
    Stand.importing = False
    for module in modules.values():
        for row in module.ROWS:
            if getattr(row.torch, "__defaults__", None):
                row.torch.__defaults__ = to_tern(row.torch.__defaults__)
    return modules


def to_tern(value):
    if isinstance(value, torch.Tensor):
        result = tern.tensor(value.detach().reshape(-1).tolist(), dtype=to_tern(value.dtype)).reshape(value.shape)
        return result.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return getattr(tern, str(value)[6:])
    return type(value)(map(to_tern, value)) if isinstance(value, (list, tuple)) else value


def to_torch(tensor):
    dtype = getattr(torch, str(tensor.dtype)[6:])
    return torch.tensor(tensor.detach().reshape(-1).tolist(), dtype=dtype).reshape(tuple(tensor.shape))


def tensors_in(value):
    if isinstance(value, (torch.Tensor, tern.Tensor)):
        return [value]
    return [t for each in value for t in tensors_in(each)] if isinstance(value, (list, tuple)) else []


def outline(value):
    """The kinds of results: tuples with their fields, lists, tensors, numbers."""
    if isinstance(value, (torch.Tensor, tern.Tensor)):
        return "tensor"
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None) or [f for f in ("values", "indices", "min", "max") if hasattr(type(value), f)]
        return tuple(fields), [outline(each) for each in value]
    return [outline(each) for each in value] if isinstance(value, list) else type(value).__name__


def kinds(value):
    if isinstance(value, (list, tuple)):
        return [kinds(each) for each in value]
    return str(value.dtype) if isinstance(value, torch.Tensor) else type(value).__name__


def with_gradient(tensor):
    return tensor.detach().requires_grad_(tensor.is_floating_point())


def chosen(row):
    """Cases that PyTorch computes: arguments, with gradients where the row has them, and PyTorch's results and gradients."""
    seen = set()
    for args in itertools.islice(row.cases(), LOOKED_AT):
        tensors = tensors_in(args)
        key = repr(kinds(args))
        if key in seen or any(t.numel() > LARGEST or t.dtype not in (torch.float32, torch.int64, torch.bool) for t in tensors):
            continue
        if row.grad:
            args = tuple(a if i in row.no_grad else driver.replace_tensors(a, with_gradient) for i, a in enumerate(args))
        try:
            result = row.torch(*args)
            yield args, result, gradients(torch, result, args)
        except Exception:  # a wrong use, which the table compares
            continue
        seen.add(key)
        if len(seen) == CASES:
            return


def gradients(module, results, arguments):
    results = [r for r in tensors_in(results) if r.requires_grad]
    arguments = [a for a in tensors_in(arguments) if a.requires_grad]
    if not results or not arguments:
        return []
    return module.autograd.grad([r.sum() for r in results], arguments, allow_unused=True)


def difference(result, expected, values=True, tolerance=1):
    """None, or what is wrong with what tern gives."""
    if outline(result) != outline(expected):
        return f"gives {outline(result)}, PyTorch {outline(expected)}"
    if not tensors_in(expected):
        same = result == expected or result != result and expected != expected
        return None if same or isinstance(result, float) and abs(result - expected) < 1e-5 else f"is {result}, not {expected}"
    for actual, wanted in zip(tensors_in(result), tensors_in(expected)):
        actual, wanted = to_torch(actual), wanted.detach()
        if not values:  # random numbers
            actual, wanted = torch.zeros_like(actual), torch.zeros_like(wanted)
        text = driver.difference(actual, wanted, 1e-4 * tolerance, "tensor", 1, False)
        if text:
            return text
    return None


def difference_of_gradients(actual, wanted, tolerance):
    """Where they are finite: what is at the borders is the table's business."""
    for a, w in zip(actual, wanted):
        if a is not None and w is not None:
            a = to_torch(a)
            text = driver.difference(a, torch.where(w.isfinite(), w, a), 1e-4 * tolerance, "tensor", 1, False)
            if text:
                return f"gradient: {text}"
    return None


class Operators(unittest.TestCase):
    def test_rows_of_the_table(self):
        driver.make_oracle()
        copies, ran = rows_of_tern(), 0
        for family, module in operator_rows.families().items():
            for row, copy in zip(module.ROWS, copies[family].ROWS, strict=True):
                if driver.VERSION < row.since or row.name in LEFT_OUT:
                    continue
                for args, expected, expected_gradients in chosen(row):
                    ran += 1
                    with self.subTest(row=row.name, args=[driver.describe(a) for a in args]):
                        given = to_tern(args)
                        result = copy.torch(*given)
                        self.assertIsNone(difference(result, expected, row.values, row.tolerance))
                        if row.values:
                            found = gradients(tern, result, given)
                            self.assertIsNone(difference_of_gradients(found, expected_gradients, row.tolerance))
        self.assertGreater(ran, 1000)

    def test_forms(self):
        random = RANDOM_FORMS.strip().splitlines()
        for form in FORMS.strip().splitlines() + random:
            with self.subTest(form=form):
                try:
                    expected = eval(form, names_for(torch))
                except (TypeError, AttributeError):
                    self.assertLess(driver.VERSION, (2, 15), "PyTorch takes it")
                    continue
                if isinstance(expected, str) and tern.get_default_device().type == "cuda":
                    expected = expected.replace("torch.", "torch.cuda.")  # names of types
                self.assertIsNone(difference(eval(form, names_for(tern)), expected, values=form not in random))

    def test_wrong_use_of_out(self):
        for module in (torch, tern):
            x = module.ones(2, requires_grad=True)
            with self.assertRaises(RuntimeError):
                module.exp(x, out=module.zeros(2))
            with self.assertRaises((RuntimeError, TypeError)):
                module.exp(x.detach(), out=module.zeros(2, dtype=module.int64))
            with self.assertRaises(TypeError):
                module.exp(x, outs=x)
            out = module.zeros(2)
            self.assertIs(module.exp(x.detach(), out=out), out)


if __name__ == "__main__":
    unittest.main()

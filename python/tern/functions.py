"""Functions of torch that are a few calls of others."""

import builtins
import math

from tern import _C
from tern.autograd import no_grad


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of the numbers: the same memory where it can be, unless `copy`; with copy=False ValueError where it can not."""
    if isinstance(obj, _C.Tensor):
        result = obj.to(device or obj.device, dtype or obj.dtype, copy=bool(copy))
        same = result is obj
        result = result.detach()
    else:
        same = hasattr(obj, "__array_interface__")
        result = (_C.as_tensor if same and not copy else _C.tensor)(obj, dtype=dtype, device=device)
        same = same and not result.numel() == 0 and result.data_ptr() == obj.__array_interface__["data"][0]
    if copy is False and not same:
        raise ValueError("asarray: copy=False, but the tensor can not have the memory of what is given")
    return result.requires_grad_(requires_grad)


def can_cast(from_, to):
    """Whether PyTorch's promotion lets a result of one dtype be written into another."""
    def kind(dtype):
        return (dtype.is_complex, dtype.is_complex or dtype.is_floating_point, dtype != _C.bool)

    return kind(from_) <= kind(to)


def typename(obj):
    if isinstance(obj, _C.Tensor):
        return obj.type()
    name = obj.__qualname__ if hasattr(obj, "__qualname__") else type(obj).__name__
    module = getattr(obj, "__module__", None) or type(obj).__module__
    return name if module in ("builtins", "", None) else f"{module}.{name}"


def resolve_neg(input):
    return input


def is_conj(input):
    return False


is_neg = is_conj


def ldexp(input, other):
    """input * 2^other."""
    return _C.mul(input, _C.pow(2.0, other))


def fill(input, value):
    return _C.full_like(input, value) if not isinstance(value, _C.Tensor) else _C.zeros_like(input) + value.to(input.dtype)


def constant_pad_nd(input, pad, value=0):
    return _C.pad(input, list(pad), "constant", value)


def split_with_sizes(input, split_sizes, dim=0):
    return _C.split(input, list(split_sizes), dim)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * the sum of the products of all pairs of matrices."""
    return _C.add(_C.mul(input, beta), _C.bmm(batch1, batch2).sum(0), alpha=alpha)


def range(start=0, end=None, step=1, **options):
    """As arange(), with the end."""
    start, end = (0, start) if end is None else (start, end)
    options.setdefault("dtype", _C.get_default_dtype())
    return _C.arange(start, end + step / 2, step, **options)


def vander(x, N=None, increasing=False):
    """Powers of the numbers in columns, from the highest to x^0."""
    if x.dim() != 1:
        raise _C.ShapeError(f"vander: expected one dimension, got {list(x.shape)}")
    powers = _C.arange(len(x) if N is None else N, device=x.device)
    return x.unsqueeze(-1) ** (powers if increasing else powers.flip(0))


def unravel_index(indices, shape):
    """The places of elements in a tensor of that shape, of their places in memory: a tensor for each dimension."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    places = []
    for size in reversed(shape):
        places.append(indices % size)
        indices = indices // size
    return tuple(reversed(places))


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Central differences along each of the dimensions, one-sided ones at the ends; `spacing` is a number, one for each dimension,
    or the places of the points."""
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is 1 or 2, got {edge_order}")
    dims = [dim] if isinstance(dim, int) else [*builtins.range(input.dim())] if dim is None else list(dim)
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise ValueError(f"gradient: {len(dims)} dimensions, but {len(spacings)} spacings")
    return [_gradient_along(input.movedim(each, 0), step, edge_order).movedim(0, each) for each, step in zip(dims, spacings)]


def _gradient_along(x, spacing, edge_order):
    count = x.size(0)
    if count <= edge_order:
        raise ValueError(f"gradient: expected at least {edge_order + 1} points in each dimension, got {count}")
    dtype = x.dtype if x.is_floating_point() else _C.get_default_dtype()
    if isinstance(spacing, _C.Tensor) and spacing.dim() == 1:
        steps = spacing.diff().to(dtype)
    else:
        steps = _C.full([count - 1], float(spacing), dtype=dtype, device=x.device)
    steps = steps.reshape([count - 1] + [1] * (x.dim() - 1))
    slopes = x.to(dtype).diff(dim=0) / steps
    before, after = steps[:-1], steps[1:]
    inside = (slopes[:-1] * after + slopes[1:] * before) / (before + after)
    if edge_order == 1:
        first, last = slopes[:1], slopes[-1:]
    else:
        first = slopes[:1] - (slopes[1:2] - slopes[:1]) * steps[:1] / (steps[:1] + steps[1:2])
        last = slopes[-1:] + (slopes[-1:] - slopes[-2:-1]) * steps[-1:] / (steps[-1:] + steps[-2:-1])
    return _C.cat([first, inside, last])


def empty_strided(size, stride, **options):
    """A tensor that is not filled, whose elements lie as the strides say."""
    length = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    return _C.empty(length, **options).as_strided(size, stride)


def frobenius_norm(input, dim=None, keepdim=False):
    return _C._linalg.vector_norm(input, 2, dim or None, keepdim)


def nuclear_norm(input, keepdim=False):
    return _C._linalg.matrix_norm(input, "nuc", keepdim=keepdim)


def norm_except_dim(v, pow=2, dim=0):
    """The norms of the parts along a dimension, which stays."""
    return _C._linalg.vector_norm(v, pow, [d for d in builtins.range(v.dim()) if d != dim % v.dim()], True)


def embedding_renorm_(weight, indices, max_norm, norm_type=2.0):
    """Scales the rows that are named down to a norm of at most max_norm."""
    with no_grad():
        rows = indices.flatten().unique()
        norms = _C._linalg.vector_norm(weight[rows], norm_type, -1, True)
        weight[rows] = weight[rows] * _C.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
    return weight


AS_METHODS = "addbmm is_conj is_neg ldexp resolve_neg split_with_sizes".split()
__all__ = AS_METHODS + """asarray can_cast constant_pad_nd embedding_renorm_ empty_strided fill frobenius_norm gradient norm_except_dim
nuclear_norm range typename unravel_index vander""".split()

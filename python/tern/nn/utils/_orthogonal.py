"""Orthogonal weights: the parametrization that nn.utils.parametrizations.orthogonal registers."""

from tern import _C, linalg
from tern.autograd import no_grad
from tern.nn.utils import parametrize

MAPS = ("matrix_exp", "cayley", "householder")


def _product_of_reflections(vectors, factors):
    """The first columns of the product of I - factor * v v^T, for the columns v of [..., n, k], 1 on the diagonal and 0 above."""
    n, k = vectors.shape[-2:]
    result = _C.eye(n, dtype=vectors.dtype, device=vectors.device)[:, :k].expand(vectors.shape)
    for place in reversed(range(k)):
        v = vectors[..., place:place + 1]
        result = result - factors[..., place:place + 1].unsqueeze(-1) * (v @ (v.mT @ result))
    return result


def _by_reflections(x):
    """Of [..., n, k]: the vectors are below the diagonal, on which there are 1 and -1, signs of the columns."""
    below = x.tril(-1)
    factors = 2 / (1 + (below * below).sum(-2))
    vectors = below + _C.eye(*x.shape[-2:], dtype=x.dtype, device=x.device)
    return _product_of_reflections(vectors, factors) * x.detach().diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def _reflections_of(q):
    """The x of which _by_reflections(x) is q, [..., n, k] with orthonormal columns: q is reflected to a diagonal column by column."""
    rest, n, k = q.clone(), *q.shape[-2:]
    x = _C.zeros_like(q)
    for place in range(k):
        column = rest[..., place:, place]
        sign = _C.where(column[..., :1] > 0, -1.0, 1.0).to(q.dtype)  # of the diagonal, so that nothing cancels out
        v = column.clone()
        v[..., :1] -= sign
        v = v / v[..., :1]
        factor = 2 / (v * v).sum(-1, keepdim=True)
        below = rest[..., place:, place:]
        rest[..., place:, place:] = below - factor.unsqueeze(-1) * v.unsqueeze(-1) * (v.unsqueeze(-2) @ below)
        x[..., place, place] = sign[..., 0]
        x[..., place + 1:, place] = v[..., 1:]
    return x


def _nearest_by_qr(a):
    q, r = linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def _is_orthogonal(q):
    n, k = q.shape[-2:]
    distance = (q.mT @ q - _C.eye(k, dtype=q.dtype, device=q.device)).abs().amax()
    return distance.item() < 10 * n * _C.finfo(q.dtype).eps


class _Orthogonal(_C.Module):
    def __init__(self, orthogonal_map, use_trivialization):
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        is_wide = x.shape[-2] < x.shape[-1]
        x = x.mT if is_wide else x
        q = _by_reflections(x) if self.orthogonal_map == "householder" else self._by_skew_symmetric(x)
        if self.use_trivialization:
            q = self.base @ q
        return q.mT if is_wide else q

    def _by_skew_symmetric(self, x):
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = _C.cat([x, _C.zeros(*x.shape[:-1], n - k, dtype=x.dtype, device=x.device)], -1)
        a = x - x.mT
        if self.orthogonal_map == "matrix_exp":
            q = linalg.matrix_exp(a)
        else:
            half, one = a / 2, _C.eye(n, dtype=a.dtype, device=a.device)
            q = linalg.solve(one - half, one + half)
        return q[..., :k]

    def right_inverse(self, weight):
        if weight.dim() < 2:
            raise ValueError(f"Expected a matrix or batch of matrices of at least 2 dimensions. Got a tensor of {weight.dim()} dimensions.")
        is_wide = weight.shape[-2] < weight.shape[-1]
        q = weight.mT if is_wide else weight
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                                          "use_trivialization=False.")
            x = _reflections_of(_nearest_by_qr(q))
            return x.mT if is_wide else x
        n, k = q.shape[-2:]
        if n != k:
            q = _nearest_by_qr(_C.cat([q, _C.randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)], -1))
        else:
            q = q.clone() if _is_orthogonal(q) else _nearest_by_qr(q)
        self.base = q.detach()
        x = _C.zeros_like(weight)
        x.diagonal(dim1=-2, dim2=-1).fill_(-1)  # of which each map gives the unit matrix
        return x


def register(module, name, orthogonal_map, use_trivialization):
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices of at least 2 dimensions. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    with no_grad():
        return parametrize.register_parametrization(module, name, _Orthogonal(orthogonal_map, use_trivialization), unsafe=True)

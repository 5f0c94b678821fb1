# Rows of tern/ops/index.h and embedding.h, and of the changes in place.

import torch
from torch.nn import functional as F

from .driver import VERSION, Row
from .inputs import ALL, FLOATS, INF, INTS, NAN, NUMBERS, binary, integers, layouts, make, special, unary


def along_dim(source=False, value=False):
    """(x, dim, index[, source or value]) of gather and scatter."""
    def cases():
        for dtype in ALL:
            x = make((4, 5), dtype)
            for dim, shape in ((0, (3, 5)), (1, (4, 2)), (-1, (2, 7)), (0, (0, 5)), (0, (6, 3))):
                limit = x.shape[dim]
                # An order without repetition, for what depends on the order of writing.
                index = (torch.arange(shape[0] * shape[1]).reshape(shape) * 3 % limit) if not source or shape[dim] > limit else \
                    torch.argsort(make(tuple(limit if i == dim % 2 else s for i, s in enumerate(shape)), torch.float64), dim).narrow(dim, 0, shape[dim])
                last = () if not (source or value) else (make(shape, dtype, 1),) if source else (2,)
                yield (x, dim, index, *last)
        last = () if not (source or value) else (make((3,), seed=1),) if source else (1.5,)
        for dtype in FLOATS:
            x, index = special(dtype), torch.tensor([0, 5, 3, 1, 9])
            yield (x, 0, index, *(() if not (source or value) else (special(dtype)[3:8],) if source else (NAN,)))
        x, index = make((300, 70)), torch.argsort(make((300, 70), seed=2), 0)
        yield (x, 0, index, *(() if not (source or value) else (make((300, 70), seed=1),) if source else (1.5,)))
        yield (make((1,)), 0, torch.tensor([0]), *(() if not (source or value) else (make((1,), seed=1),) if source else (1.5,)))
        yield (make((5,)), 0, torch.tensor([4, 0, 2]), *last)
        yield (make((5, 4)).t(), 0, torch.tensor([[3, 0, 1]]), *(() if not (source or value) else (make((1, 3)),) if source else (1.5,)))
        yield (make((5,)), 0, torch.tensor([5, 0, 2]), *last)
        yield (make((5,)), 0, torch.tensor([-1, 0, 2]), *last)
        yield (make((5,)), 1, torch.tensor([1, 0, 2]), *last)
        yield (make((5,)), 0, torch.tensor([1.0, 0, 2]), *last)
        yield (make((5, 2)), 0, torch.tensor([1, 0, 2]), *last)
        yield (make(()), 0, torch.tensor(0), *(() if not (source or value) else (make(()),) if source else (1.5,)))
    return cases


def scatters():
    yield from along_dim(source=True)()
    yield from along_dim(value=True)()


def takes():
    for dtype in ALL:
        yield make((3, 4), dtype), torch.tensor([[0, 11], [-1, 5]])
    yield make((4, 3)).t(), torch.tensor([1, 7])
    yield make((3,)), torch.tensor(2)
    yield make((3,)), torch.tensor([], dtype=torch.int64)
    yield make((3,)), torch.tensor([3])
    yield make((3,)), torch.tensor([-4])
    yield make((0,)), torch.tensor([], dtype=torch.int64)


def takes_along():
    for dtype in ALL:
        yield make((3, 4), dtype), torch.argsort(make((3, 4), seed=2), 1), 1
        yield make((4, 3), dtype).t(), torch.argsort(make((3, 4), seed=2), 0), 0
    x = make((3, 4))
    yield x, torch.argsort(x, 1), -1
    yield x, torch.zeros((3, 0), dtype=torch.int64), 1
    yield x, torch.zeros((0,), dtype=torch.int64)
    yield special(torch.float32), torch.tensor([3, 0, 19])
    yield make(()), torch.tensor([0])
    yield x, torch.tensor([[0.5]]), 1
    if VERSION < (2, 11):  # newer ones take any index modulo the size
        yield x, torch.tensor([[4]]), 1
    yield x, torch.tensor([[0], [3], [1]]), 1
    yield x, torch.tensor([[0, 1, 2, 0]]), 0
    yield x, torch.tensor([0, 11, 5])
    yield x, torch.tensor([0]), 1


def selected(source=False, value=False, alpha=False):
    """(x, dim, index[, source or value]) of index_select, index_add and their kin."""
    def cases():
        for dtype in ALL:
            x = make((4, 5), dtype)
            for dim, index in ((0, [2, 0, 1]), (1, [4, 1]), (-1, [0, 3, 2, 1]), (0, []), (0, [3])):
                shape = list(x.shape)
                shape[dim] = len(index)
                last = (make(tuple(shape), dtype, 1),) if source else (2,) if value else ()
                yield (x, dim, torch.tensor(index, dtype=torch.int64), *last)
                if alpha and dtype != torch.bool:
                    yield (x, dim, torch.tensor(index, dtype=torch.int64), *last, 3)
        last = lambda *size: (make(size, seed=1),) if source else (NAN,) if value else ()
        yield (make((5, 4)).t(), 1, torch.tensor([3, 0]), *last(4, 2))
        yield (special(torch.float32), 0, torch.tensor([0, 5, 3]), *last(3))
        yield (make((2, 0, 3)), 0, torch.tensor([1]), *last(1, 0, 3))
        yield (make(()), 0, torch.tensor([0]), *last())
        if source and not alpha:
            yield make(()), 0, torch.tensor([0]), make((1,), seed=1)
        for columns in (2, 3, 4, 8, 16, 70):
            yield (make((300, columns)), 0, torch.argsort(make((300,), seed=2))[:200], *last(200, columns))
        if source or value or alpha:
            yield make((4, 5)), 0, torch.tensor([1, 9]), *((make((2, 5)),) if source else (2,))
            yield make((4, 5)), 0, torch.tensor([1, 2]), *((make((2, 4)),) if source else (2,))
        else:
            yield make((4, 5)), 0, torch.tensor([1, 1, 3], dtype=torch.int32)
            yield make((5, 4)).t(), 1, torch.tensor([0, 0])
            yield make((2, 3, 4)), 1, torch.tensor([2, 2, 0, 1])
            yield make((4, 5)), 0, torch.tensor([4])
            yield make((4, 5)), 0, torch.tensor([-1])
            yield make((4, 5)), 0, torch.tensor([[1]])
            yield make((4, 5)), 0, torch.tensor([1.0])
            yield make((4, 5)), 2, torch.tensor([1])
            yield make(()), 0, torch.tensor([0])
            yield make((70, 130)), 0, integers((200,), 0, 70)
    return cases


def indices(dtypes=ALL):
    """(x, list of index tensors), None for a whole dimension."""
    for dtype in dtypes:
        x = make((3, 4, 5), dtype)
        yield x, [torch.tensor([2, 0, 2])]
        yield x, [None, torch.tensor([3, -1])]
        yield x, [torch.tensor([1, 2]), torch.tensor([0, 3])]
        yield x, [torch.tensor([1, 2]), None, torch.tensor([0, 4])]
        yield x, [torch.tensor([[1], [2]]), torch.tensor([0, 3, 1])]
        yield x, [torch.tensor(1), None, torch.tensor([4, 4])]
        yield x, [x[:, :, 0] > 0]
        yield x, [None, None, torch.tensor([True, False, True, False, True])]
        yield x, [torch.tensor([True, False, True]), torch.tensor([0, 3])]
        yield x, [x > 0]
        yield x, [torch.tensor([], dtype=torch.int64)]
    x = make((3, 4, 5))
    yield x.permute(2, 0, 1), [torch.tensor([4, 1]), None, torch.tensor([0, 3])]
    if VERSION >= (2, 0):
        yield x, [torch.tensor([1], dtype=torch.int32)]
    yield x, [torch.tensor([3])]
    yield x, [torch.tensor([-4])]
    yield x, [torch.tensor([0, 1]), torch.tensor([0, 1, 2])]
    yield x, [torch.tensor([1.0])]
    yield x, [torch.tensor([True, False])]
    yield x, [torch.tensor([0])] * 4


def index(x, index_list):
    return torch.ops.aten.index.Tensor(x, index_list)


def index_puts():
    for x, index_list in indices():
        try:
            shape = index(x, index_list).shape
        except (IndexError, RuntimeError):
            shape = (1,)
        numbered = [i for i in index_list if i is not None and i.dtype != torch.bool and i.dtype.is_floating_point is False]
        repeats = any(i.numel() != i.unique().numel() for i in numbered)
        if not repeats:
            yield x, index_list, make(tuple(shape), x.dtype, 3)
            yield x, index_list, make((), x.dtype, 3)
        if x.dtype != torch.bool:
            yield x, index_list, make(tuple(shape), x.dtype, 3), True
    yield make((3, 4)), [torch.tensor([0, 1])], make((3,))


def index_put(x, index_list, values, accumulate=False):
    return torch.ops.aten.index_put(x, index_list, values, accumulate)


def wheres():
    for a in ALL:
        for b in ALL:
            yield make((3, 5), torch.bool, 7), make((3, 5), a), make((5,), b, 1)
            yield make((3, 5), torch.bool, 7), make((3, 5), a), make((), b, 1)
    condition = make((3, 1), torch.bool, 7)
    for dtype in ALL:
        yield condition, make((5,), dtype), 2
        yield condition, 2.5, make((5,), dtype)
        yield condition, special(dtype)[:2], special(dtype)[-2:]
    yield condition, 1, 2
    yield condition, 1.5, 2
    yield condition, True, False
    for x in (condition, make((2, 3, 4), torch.bool), make((0,), torch.bool), make((), torch.bool)):
        yield (x,)
    yield condition, make((5,)), make((4,))
    yield make((3,)), make((3,)), make((3,))
    yield make((0, 3), torch.bool), make((3,)), make((1,))


def where(condition, *branches):
    if condition.dtype == torch.uint8:
        raise RuntimeError("where expected condition to be a boolean tensor")
    return torch.where(condition, *branches)


def fills(tensors=True):
    def cases():
        for dtype in ALL:
            for value in (2, -1, True, 2.5, INF, NAN) + ((make((), dtype, 4),) if tensors else ()):
                yield make((3, 5), dtype), make((3, 5), torch.bool, 7), value
                yield make((3, 5), dtype), make((5,), torch.bool, 7), value
        yield make((5, 3)).t(), make((3, 5), torch.bool, 7), 0
        yield make((0,)), make((0,), torch.bool), 0
        yield make(()), make((), torch.bool), 5.0
        yield make((3,)), make((3,)), 0
        yield make((3,)), make((4,), torch.bool), 0
        yield make((3,)), make((2, 3), torch.bool, 7), 0
        if tensors:
            yield make((3,)), make((3,), torch.bool), make((3,))
    return cases


def masks():
    for dtype in ALL:
        yield make((3, 5), dtype), make((3, 5), torch.bool, 7)
        yield make((3, 5), dtype), make((5,), torch.bool, 7)
        if VERSION >= (2, 0):  # 1.13's gradient of a transposed input is in the wrong order
            yield make((5, 3), dtype).t(), make((3, 5), torch.bool, 7)
    yield make((3, 1)), make((1, 4), torch.bool, 7)
    yield make(()), torch.tensor(True)
    yield make((0,)), make((0,), torch.bool)
    yield make((3,)), make((4,), torch.bool)
    yield make((3,)), make((3,))


def mask_scatters():
    for dtype in ALL:
        yield make((3, 5), dtype), make((3, 5), torch.bool, 7), make((20,), dtype, 1)
        yield make((3, 5), dtype), make((5,), torch.bool, 7), make((4, 5), dtype, 1)
    yield make((5, 3)).t(), make((3, 5), torch.bool, 7), make((4, 5), seed=1).t()
    yield make((0,)), make((0,), torch.bool), make((0,))
    yield make(()), torch.tensor(True), make((1,), seed=1)
    yield make((70001,)), make((70001,), torch.bool, 7), make((70001,), seed=1)
    yield special(torch.float32), make((20,), torch.bool, 7), special(torch.float32).flip(0)
    yield make((3, 5)), make((3, 5), torch.bool, 7), make((2,))
    yield make((3, 5)), make((3, 5), torch.bool, 7), make((20,), torch.float64)


def sequences():
    for dtype in NUMBERS:
        for right in (False, True):
            yield torch.arange(0, 20, 3).to(dtype), make((3, 5), dtype, 0, 0.0, 19.0), right
            yield torch.sort(make((3, 7), dtype)).values, make((3, 5), dtype, 1), right
            yield torch.tensor([1, 2, 2, 2, 5], dtype=dtype), torch.tensor([2, 0, 5, 6], dtype=dtype), right
    yield torch.arange(5.0), torch.tensor([NAN, INF, -INF])
    yield torch.sort(make((7, 3)), 0).values.t(), make((5, 3), seed=1).t()
    yield torch.arange(10.0)[::2], make((4, 5))[:, ::2]
    yield torch.arange(1.0), make((1,))
    yield torch.sort(make((3000,))).values, make((3000,), seed=1)
    yield torch.arange(5.0), make(())
    yield torch.arange(0.0), make((3,))
    yield make((2, 3)), make((3, 3))


def embeddings():
    for dtype in FLOATS:
        for padding in (None, 2, -1):
            yield torch.tensor([[0, 2, 2], [4, 1, 0]]), make((5, 3), dtype), padding
    yield torch.tensor([1, 3], dtype=torch.int32), make((5, 3))
    yield torch.tensor(1), make((5, 3))
    yield torch.tensor([], dtype=torch.int64), make((5, 3))
    yield integers((40, 30), 0, 50), make((50, 17))
    yield torch.tensor([[0, 2], [4, 1]]).t(), make((3, 5)).t()
    yield torch.tensor([0, 1]), special(torch.float32).reshape(4, 5)
    yield torch.tensor([5]), make((5, 3))
    yield torch.tensor([-1]), make((5, 3))
    yield torch.tensor([1.0]), make((5, 3))
    repeated = torch.tensor([[0, 2, 2], [4, 2, 0]])
    for dtype in FLOATS:
        for norm, order in ((1.0, 2.0), (0.5, 1.0), (2.5, INF), (100.0, 2.0), (0.0, 3.0)):
            yield repeated, make((5, 3), dtype), None, norm, order
        yield repeated, make((5, 3), dtype), 2, 1.0, 2.0, True
        yield repeated, make((5, 3), dtype), None, None, 2.0, True
    yield repeated.t().int(), make((3, 5)).t(), -1, 1.5, 2.0, True
    yield integers((40, 30), 0, 50), make((50, 17)), None, 3.0, 2.0, True
    yield torch.tensor([5]), make((5, 3)), None, 1.0
    yield torch.tensor([1]), make((5,))
    yield torch.tensor([1]), make((5, 3)), 5


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale=False):
    if max_norm is None and not scale:
        return F.embedding(input, weight, padding_idx)
    table = weight.clone()  # which is changed
    return [F.embedding(input, table, padding_idx, max_norm, norm_type, scale), table.detach()]


def renorms():
    for dtype in FLOATS:
        for norm, order in ((1.0, 2.0), (0.5, 1.0), (2.5, INF)):
            yield make((5, 3), dtype), torch.tensor([[0, 2], [2, 4]]), norm, order
        yield make((5, 3), dtype), torch.tensor([3], dtype=torch.int32), 1.0, 2.0
    yield make((3, 5)).t(), torch.tensor([1, 1]), 1.0, 2.0
    yield make((5, 3)), torch.tensor([], dtype=torch.int64), 1.0, 2.0
    yield make((5, 3)), torch.tensor([5]), 1.0, 2.0
    yield make((5, 3)), torch.tensor([1.0]), 1.0, 2.0
    yield make((5,)), torch.tensor([1]), 1.0, 2.0


def change(name):
    return lambda x, *more: getattr(x.clone(), name)(*more)


def in_place_binary(name, **options):
    return Row(name, change(name), binary(**options))


def with_alpha(name):
    return Row(name, lambda x, other, alpha=1: getattr(x.clone(), name)(other, alpha=alpha) if alpha != 1 else getattr(x.clone(), name)(other),
               lambda: (*binary()(), *((make((3, 5), d), make((5,), d, 1), a) for d in ALL for a in (2, 0.5))))


def fill_cases():
    for dtype in ALL:
        for value in (0, 1, 2.5, -1, True, INF, NAN):
            for x in (make((3, 5), dtype), make((), dtype), make((0,), dtype), layouts(dtype)[0]):
                if dtype.is_floating_point or value not in (INF, -1, 2.5) and value == value:
                    yield x, value


def copies():
    for a in ALL:
        for b in ALL:
            yield make((3, 5), a), make((5,), b, 1, 0.0, 3.0)
    yield make((3, 5)), make((5, 3), seed=1).t()
    yield make((5, 3)).t(), make((3, 5), seed=1)
    yield special(torch.float64), special(torch.float32)
    yield make((0,)), make((1,))
    yield make((1,)), make(())
    yield make((70001,)), make((70001,), seed=1)
    yield make((3, 5)), make((), seed=1)
    yield make((5,)), make((3, 5))
    yield make((5,)), make((4,))


def in_place_clamp():
    for dtype in ALL:
        for low, high in ((0, 1), (None, 1), (0.5, 1.5), (None, None)):
            for x in (make((3, 5), dtype), make((), dtype), make((0,), dtype), layouts(dtype)[0]):
                yield x, low, high
            if VERSION >= (2, 15):  # the gradient at a bound was 1 before
                yield special(dtype), low, high


ROWS = [
    Row("gather", torch.gather, along_dim(), no_grad=(2,)),
    Row("scatter", torch.scatter, scatters),
    Row("scatter_add", torch.scatter_add, along_dim(source=True), scale="tensor"),
    Row("take_along_dim", lambda x, i, dim=None: torch.take_along_dim(x, i, dim), takes_along),
    Row("take", torch.take, takes),
    Row("index_select", torch.index_select, selected()),
    Row("index_add", lambda x, d, i, s, alpha=1: torch.index_add(x, d, i, s, alpha=alpha), selected(source=True, alpha=True), scale="tensor"),
    Row("index_copy", torch.index_copy, selected(source=True)),
    Row("index_fill", torch.index_fill, selected(value=True)),
    Row("index", index, indices),
    Row("index_put", index_put, index_puts, scale="tensor"),
    Row("where", where, wheres, widen=False),
    Row("masked_fill", torch.masked_fill, fills(), widen=False),
    Row("masked_select", torch.masked_select, masks),
    Row("masked_scatter", torch.masked_scatter, mask_scatters),
    Row("nonzero", torch.nonzero, lambda: (a[:1] for a in unary()()), grad=False),
    Row("argwhere", torch.argwhere, lambda: (a[:1] for a in unary()()), grad=False),
    Row("searchsorted", lambda s, v, right=False: torch.searchsorted(s, v, right=right), sequences, grad=False),
    Row("bucketize", lambda v, s, right=False: torch.bucketize(v, s, right=right),
        lambda: ((c[1], c[0], *c[2:]) for c in sequences() if c[0].dim() == 1), grad=False),
    Row("embedding", embedding, embeddings),
    Row("embedding_renorm_", lambda w, i, *more: torch.embedding_renorm_(w.clone(), i, *more), renorms, grad=False),
    Row("copy_", change("copy_"), copies, widen=False),
    Row("fill_", change("fill_"), fill_cases, widen=False),
    Row("zero_", change("zero_"), unary()),
    with_alpha("add_"),
    with_alpha("sub_"),
    in_place_binary("mul_"),
    in_place_binary("div_", right=(0.5, 3.0), numbers=(2, 2.5)),
    Row("clamp_", change("clamp_"), in_place_clamp, widen=False),
    Row("relu_", change("relu_"), unary()),
    Row("exp_", change("exp_"), unary()),
    Row("sqrt_", change("sqrt_"), unary(low=0.0)),
    Row("neg_", change("neg_"), unary()),
    Row("sigmoid_", change("sigmoid_"), unary()),
    Row("tanh_", change("tanh_"), unary()),
    Row("masked_fill_", change("masked_fill_"), fills(tensors=False), widen=False),
    Row("scatter_", change("scatter_"), scatters),
    Row("scatter_add_", change("scatter_add_"), along_dim(source=True), scale="tensor"),
    Row("index_add_", lambda x, d, i, s, alpha=1: x.clone().index_add_(d, i, s, alpha=alpha), selected(source=True, alpha=True), scale="tensor"),
    Row("index_copy_", change("index_copy_"), selected(source=True)),
    Row("index_fill_", change("index_fill_"), selected(value=True)),
    Row("index_put_", index_put, index_puts, scale="tensor"),
]

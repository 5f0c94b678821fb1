# Inputs of the operator rows: tensors of every dtype, shape, layout and kind of special value. Equal requests give views of
# one storage, so that the file of all cases stays small.

import functools
import zlib

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WIDE = (torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
INTS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
BOOL = (torch.bool,)
ALL = FLOATS + INTS + BOOL
NUMBERS = FLOATS + INTS
INF, NAN = float("inf"), float("nan")

# Shapes of one operand: 0-d, 1 element, empty, and some that fill vectors and leave a rest.
SHAPES = ((), (1,), (0,), (2, 0, 3), (7,), (3, 5), (2, 3, 4), (1, 1, 1, 1), (67,), (5, 33))
FEW_SHAPES = ((), (0,), (3, 5))
# Pairs of shapes that broadcast.
PAIRS = (((), ()), ((1,), (1,)), ((0,), (0,)), ((0,), (1,)), ((2, 0, 3), (3,)), ((3, 5), (3, 5)), ((3, 5), (5,)), ((3, 1), (1, 5)),
         ((2, 3, 4), ()), ((), (2, 3, 4)), ((2, 1, 4), (3, 1)), ((67,), (67,)), ((4, 33), (4, 1)), ((1, 33), (4, 33)))
FEW_PAIRS = (((3, 5), (3, 5)), ((3, 1), (5,)), ((), (4,)))


@functools.lru_cache(maxsize=None)
def make(shape, dtype=torch.float32, seed=0, low=-3.0, high=3.0):
    """Random numbers in [low, high); of integers in the same range, from 0 for unsigned ones."""
    shape = tuple(shape)
    if dtype.is_complex:
        part = torch.float64 if dtype == torch.complex128 else torch.float32
        return torch.complex(make(shape, part, seed, low, high), make(shape, part, seed + 100, low, high))
    generator = torch.Generator().manual_seed(zlib.crc32(repr((shape, seed, low, high)).encode()))
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    if dtype == torch.bool:
        return values > (low + high) / 2
    if dtype == torch.uint8:
        values = values.abs()
    if not dtype.is_floating_point:
        values = values.round()
    return values.to(dtype)


def distinct(shape, dtype=torch.float32, seed=0):
    """Different numbers in random order, where a choice among equal ones would be open."""
    numel = 1
    for size in shape:
        numel *= size
    order = torch.randperm(numel, generator=torch.Generator().manual_seed(seed + 1)).reshape(shape)
    if dtype == torch.bool:
        return order % 2 == 0
    return order.to(dtype) - (0 if dtype == torch.uint8 else numel // 2)


def integers(shape, low, high, seed=0, dtype=torch.int64):
    """Random whole numbers in [low, high)."""
    generator = torch.Generator().manual_seed(zlib.crc32(repr((shape, seed, low, high)).encode()))
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def layouts(dtype=torch.float32, seed=0, low=-3.0, high=3.0):
    """[3, 5] matrices and others in every layout that strides allow."""
    wide = make((6, 12), dtype, seed, low, high)
    return [make((5, 3), dtype, seed, low, high).t(), wide[::2, 1:11:2], wide[1:4, 3:8], make((3, 1), dtype, seed, low, high).expand(3, 5),
            make((2, 5, 3), dtype, seed, low, high).permute(2, 0, 1), make((2, 3, 4, 5), dtype, seed, low, high).transpose(1, 3)]


def short_rows(dtype=torch.float32, seed=0, low=-3.0, high=3.0):
    """Many rows that are too short to fill vectors: dense, apart, turned, the same one again and again, single numbers."""
    return [make((600, 3), dtype, seed, low, high), make((300, 20), dtype, seed, low, high)[:, 2:19], make((5, 700), dtype, seed, low, high).t(),
            make((7,), dtype, seed, low, high).expand(200, 7), make((2, 40, 3, 9), dtype, seed, low, high).permute(0, 3, 1, 2)]


def special_values(dtype):
    """The values at which formulas break: NaN, infinities, zeros of both signs, largest, smallest normal, subnormal."""
    if dtype == torch.bool:
        return [False, True]
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        return [info.min, info.max, 0, 1, 2, info.max // 2, info.min // 2]
    info = torch.finfo(dtype)
    subnormal = {torch.float16: 1e-7, torch.bfloat16: 1e-39, torch.float32: 1e-40, torch.float64: 1e-310}[dtype]
    return [NAN, INF, -INF, 0.0, -0.0, info.max, info.min, info.tiny, -info.tiny, subnormal, -subnormal, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5,
            1e-3, 30.0, -30.0]


@functools.lru_cache(maxsize=None)
def special(dtype):
    return torch.tensor(special_values(dtype), dtype=dtype)


def unary(dtypes=ALL, low=-3.0, high=3.0, with_special=True, more=()):
    """Arguments (x,) + more for a function of each element."""
    def cases():
        for dtype in dtypes:
            for shape in SHAPES if dtype in WIDE else FEW_SHAPES:
                yield (make(shape, dtype, 0, low, high), *more)
            for x in layouts(dtype, 0, low, high)[:6 if dtype in WIDE else 2]:
                yield (x, *more)
            if with_special:
                yield (special(dtype), *more)
        for x in (make((70001,), dtypes[0], 0, low, high), *short_rows(dtypes[0], 0, low, high)):
            yield (x, *more)
    return cases


def binary(dtypes=ALL, numbers=(True, 2, -1, 2.5), promotes=True, with_special=True, right=None, left=None, more=()):
    """Arguments (a, b) + more for a function of two operands that broadcast; `left` and `right` are (low, high)."""
    left, right = left or (-3.0, 3.0), right or (-3.0, 3.0)

    def divisor(shape, dtype, seed=1):
        b = make(shape, dtype, seed, *right)
        return b if right[0] * right[1] < 0 or dtype.is_floating_point or dtype == torch.bool else b.clamp(min=1)

    def cases():
        for dtype in dtypes:
            for a, b in PAIRS if dtype in WIDE else FEW_PAIRS:
                yield (make(a, dtype, 0, *left), divisor(b, dtype), *more)
            for a, b in zip(layouts(dtype, 0, *left)[:4], (make((3, 5), dtype, 1, *right).clone(), make((5, 3), dtype, 1, *right).t(),
                                                           make((3, 1), dtype, 1, *right).expand(3, 5), make((5,), dtype, 1, *right))):
                yield (a, b if right[0] * right[1] < 0 or dtype.is_floating_point or dtype == torch.bool else b.clamp(min=1), *more)
            for number in numbers:
                yield (make((3, 5), dtype, 0, *left), number, *more)
                yield (make((), dtype, 0, *left), number, *more)
            if with_special and (dtype.is_floating_point or with_special == "integers"):
                yield (special(dtype).unsqueeze(1), special(dtype), *more)
        if promotes:
            for a in dtypes:
                for b in dtypes:
                    if a != b:
                        yield (make((3, 5), a, 0, *left), divisor((5,), b), *more)
                        yield (make((3, 5), a, 0, *left), divisor((), b), *more)
                        yield (make((), a, 0, *left), divisor((3,), b), *more)
        yield (make((3, 40000), dtypes[0], 0, *left), divisor((40000,), dtypes[0]), *more)
        for a, b in zip(short_rows(dtypes[0], 0, *left), ((3,), (300, 1), (5,), (200, 7), (2, 9, 40, 3))):
            yield (a, divisor(b, dtypes[0]), *more)
        # Shapes that do not broadcast.
        yield (make((3, 5)), make((4,)), *more)
        yield (make((2, 3)), make((3, 2)), *more)
    return cases

# Rows of tern/ops/interpolate.h and fold.h.

import torch
from torch.nn import functional as F

from .driver import VERSION, Row
from .inputs import ALL, FLOATS, INF, NAN, WIDE, make

# A shape, sizes for it, and factors.
IMAGES = ((2, 3, 5, 7), ((10, 14), (3, 4), (1, 1), (5, 9), (5, 7)), (2.0, 0.5, [1.7, 0.6], [1.1, 1.3]))
SIGNALS = ((2, 3, 9), (18, 4, 1, 9), (2.0, 0.7, 1.05))
VOLUMES = ((2, 2, 3, 4, 5), ((6, 8, 10), (2, 3, 4), (5, 3, 5)), (2.0, [0.7, 1.5, 1.2]))
KEEP_A_SIZE = ([1.1, 1.3], 1.05)  # with nearest PyTorch chooses other elements in each of its loops, and none as its gradients do
MODES = {3: ("nearest", "nearest-exact", "area", "linear"), 4: ("nearest", "nearest-exact", "area", "bilinear", "bicubic"),
         5: ("nearest", "nearest-exact", "area", "trilinear")}


def resizes():
    """(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)."""
    for dtype in FLOATS:
        for shape, sizes, scales in (IMAGES, SIGNALS, VOLUMES):
            x = make(shape, dtype)
            for mode in MODES[len(shape)]:
                for align in (False, True) if "linear" in mode or mode == "bicubic" else (None,):
                    for size in sizes:
                        yield x, list(size) if isinstance(size, tuple) else size, None, mode, align
                    for scale in scales:
                        if mode != "nearest" or scale not in KEEP_A_SIZE:
                            yield x, None, scale, mode, align
                        yield x, None, scale, mode, align, True
        for mode in ("bilinear", "bicubic"):
            for align in (False, True):
                for size in ([3, 4], [11, 5], [2, 20]):
                    yield make((2, 3, 9, 17), dtype), size, None, mode, align, False, True
                yield make((2, 3, 9, 17), dtype), None, [0.3, 0.6], mode, align, False, True
    for mode in ("nearest", "nearest-exact"):
        yield make((2, 3, 5, 7), torch.uint8), [10, 4], None, mode
        yield make((2, 3, 9), torch.uint8), None, 0.7, mode
        yield make((5, 7, 2, 3), torch.uint8).permute(2, 3, 0, 1), [3, 4], None, mode
    # Wide rows, large steps both ways, layouts of strides.
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        for dtype in WIDE:
            for size in ([66, 140], [7, 9], [20, 300], [1, 70]):
                yield make((2, 3, 33, 70), dtype), size, None, mode
            yield make((2, 16, 18, 3), dtype).permute(0, 3, 1, 2), [8, 30], None, mode
            yield make((2, 16, 18, 3), dtype).permute(0, 3, 1, 2), [7, 9], None, mode
            yield make((2, 9, 8, 19), dtype).permute(0, 3, 1, 2), [4, 5], None, mode
        yield make((2, 16, 9, 3), torch.float16).permute(0, 3, 1, 2), [7, 5], None, mode
        yield make((3, 2, 8, 6)).transpose(0, 1)[:, ::2], [4, 7], None, mode
        yield make((1, 3, 1, 1)).expand(2, 3, 4, 5), [6, 3], None, mode
        yield make((0, 3, 5, 7)), [3, 9], None, mode
        yield make((2, 3, 5, 7)), 6, None, mode
        yield make((1, 1, 1, 1)), [4, 5], None, mode
        yield make((2, 3, 40, 3)), [13, 3], None, mode
    yield torch.tensor([[[1.0, NAN, -0.0, INF, 2.0]]]), 10, None, "nearest"
    yield make((2, 3, 4)), 6
    yield make((2, 3, 4)), None, 2.0
    # Not allowed.
    x = make((2, 3, 4, 5))
    for args in ((), (3, 2.0), ([3],), ([3, 4, 5],), (None, [2.0, 2.0, 2.0]), ([0, 2],), ([-1, 2],), (None, 0.1), (None, -1.0), (None, NAN), (None, 1e300),
                 (3, None, "nearest", True), (3, None, "area", False), (3, None, "linear"), (3, None, "trilinear"), (3, None, "cubic"),
                 (3, None, "bilinear", False, True), (3, None, "nearest", None, False, True)):
        if args != ([3],):  # a list of one is a number for all dimensions
            yield (x, *args)
    yield make((2, 0, 4, 5)), 3
    yield make((2, 3, 0, 5)), 3
    yield make((3, 4)), 3
    yield make(()), 3
    yield make((2, 3, 4)), 3, None, "bilinear"
    yield make((2, 3, 4)), 3, None, "linear", False, False, True
    yield make((1, 1, 2, 2, 2, 2)), 3


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute=None, antialias=False):
    return F.interpolate(x, size, scale_factor, mode, align_corners, recompute or None, antialias)


# Kernel size, dilation, padding, stride.
BLOCKS = ((2,), (3, 1, 1), ([2, 3], [1, 2], [1, 0], [2, 1]), (2, 1, 0, 2), (1,), ([1, 2], 3, [0, 2], 3))


def images_to_blocks():
    for dtype in FLOATS:
        for options in BLOCKS:
            yield (make((2, 3, 5, 6), dtype), *options)
            yield (make((3, 5, 6), dtype), *options)
    yield make((2, 3, 5, 6), torch.bool), 2, 1, 1
    yield make((2, 5, 6, 3)).permute(0, 3, 1, 2), 3, 1, 1
    yield make((4, 3, 40, 41)), 3, 1, 1, 2
    yield make((0, 3, 5, 6)), 2
    for shape in ((2, 0, 5, 6), (2, 3, 0, 6), (5, 6), ()):
        yield make(shape), 2
    for options in ((7,), (0,), (2, 0), (2, 1, -1), (2, 1, 0, 0), (2, 6), (-1,)):
        yield (make((2, 3, 5, 6)), *options)


def blocks_to_images():
    for dtype in FLOATS:
        for options in BLOCKS:
            blocks = F.unfold(make((2, 3, 5, 6)), *options).shape
            yield (make(blocks, dtype), [5, 6], *options)
            yield (make(blocks[1:], dtype), [5, 6], *options)
    yield make((12, 20, 2)).permute(2, 0, 1), [5, 6], 2
    yield make((4, 27, 420)), [40, 41], 3, 1, 1, 2
    yield make((0, 12, 20)), [5, 6], 2
    for args in (((2, 12, 19), [5, 6], 2), ((2, 11, 20), [5, 6], 2), ((2, 12, 20), [0, 6], 2), ((2, 12, 20), [5, 6], 0), ((20,), [5, 6], 2),
                 ((2, 12, 20, 1), [5, 6], 2), ((2, 12, 20), [5, 6], 2, 1, -1), ((2, 0, 20), [5, 6], 2), ((2, 12, 20), [1, 1], 2)):
        yield (make(args[0]), *args[1:])


def channel_shuffles():
    for dtype in ALL:
        for shape in ((2, 6, 3), (2, 6, 3, 4), (1, 6, 2, 1, 2)):
            for groups in (1, 2, 3, 6):
                yield make(shape, dtype), groups
    yield make((2, 3, 4, 6)).permute(0, 3, 1, 2), 2
    yield make((0, 4, 3)), 2
    for shape, groups in (((2, 4), 2), ((2, 4, 3), 3), ((2, 4, 3), 0), ((2, 4, 3), -1)):
        yield make(shape), groups



def affine_maps():
    for dtype in WIDE:
        for align in (False, True):
            for size in ([2, 3, 4, 5], [2, 1, 1, 7]):
                yield make((2, 2, 3), dtype), size, align
            yield make((2, 3, 4), dtype), [2, 3, 2, 4, 3], align
    yield make((2, 3, 2)).transpose(1, 2), [2, 3, 4, 5]
    yield make((2, 2, 3)), [3, 3, 4, 5]
    yield make((2, 2, 3)), [2, 3, 0, 5]
    yield make((2, 2, 3)), [2, 3, 4]
    yield make((2, 2, 3)), [2, 3, 4, 5, 6]
    yield make((2, 2, 3), torch.int64), [2, 3, 4, 5]


def samples():
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                for dtype in FLOATS:
                    yield make((2, 3, 5, 6), dtype), make((2, 4, 3, 2), dtype, 1, -1.6, 1.6), mode, padding, align
                    # Older ones take no volumes for "bicubic", and round halves of theirs away from zero.
                    if mode == "bilinear" or VERSION >= (2, 15):
                        yield make((2, 3, 4, 5, 6), dtype), make((2, 2, 4, 3, 3), dtype, 1, -1.6, 1.6), mode, padding, align
                yield make((1, 2, 1, 4)), make((1, 3, 3, 2), seed=1), mode, padding, align
    x, grid = make((2, 5, 6, 3)).permute(0, 3, 1, 2), make((2, 4, 3, 2), seed=1, low=-1.2, high=1.2)
    yield x, grid.transpose(1, 2)
    yield x, make((2, 2, 4, 3), seed=1, low=-1.2, high=1.2).permute(0, 2, 3, 1)
    yield x[:, :, ::2, 1:], grid[:, ::2].flip(0)
    yield make((1, 3, 5, 1)).expand(2, 3, 5, 6), make((1, 4, 3, 2), low=-1.2, high=1.2).expand(2, 4, 3, 2)
    volume = make((2, 4, 5, 6, 3), torch.float64).permute(0, 4, 1, 2, 3)
    yield volume, make((2, 3, 2, 4, 3), torch.float64, 1, -1.2, 1.2).transpose(1, 3), "bilinear", "reflection"
    # Registers of channels, whole and in part; more places than are worked on at once; few places in large images.
    for channels in (1, 4, 7, 16, 33):
        for dtype in FLOATS:
            for mode in ("bilinear", "bicubic"):
                yield make((2, channels, 9, 7), dtype), make((2, 11, 13, 2), dtype, 1, -1.2, 1.2), mode
        yield make((1, channels, 3, 4, 5)), make((1, 5, 6, 7, 3), seed=1, low=-1.2, high=1.2), "bilinear", "border", True
        yield make((2, channels, 40, 50)), make((2, 1, 3, 2), seed=1, low=-1.2, high=1.2)
    # Many places at few pixels.
    yield make((2, 5, 6, 7)), make((2, 20, 20, 2), seed=1, low=-9.0, high=9.0), "bilinear", "border"
    yield make((2, 5, 6, 7)), make((2, 20, 20, 2), seed=1, low=-0.1, high=0.1), "bicubic"
    yield torch.full((1, 1, 3, 3), INF), torch.tensor([[[[-3.0, 0.0], [0.1, 3.0]]]])
    yield make((4, 3, 32, 31)), make((4, 20, 21, 2), seed=1, low=-1.2, high=1.2)
    yield make((0, 3, 5, 6)), make((0, 4, 3, 2))
    yield make((2, 3, 5, 6)), make((2, 0, 3, 2))
    yield make((2, 0, 5, 6)), make((2, 4, 3, 2))
    yield make((1, 2, 2, 3, 4)), make((1, 0, 3, 2, 3))
    yield x, grid, "cubic"
    yield x, grid, "bilinear", "zero"
    yield x, grid[:1]
    yield x, grid[..., :1]
    yield x, grid.double()
    yield x[0], grid[0]
    yield x[:, :, :0], grid


def samples_nowhere():
    """Coordinates that are no numbers, or far outside. PyTorch's gradients read and write outside of the input there."""
    for dtype in WIDE:
        for mode in ("bilinear", "nearest", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                for align in (False, True):
                    for strange in (NAN, INF, -INF, 1e20, -1e20, 1e4, -1e4):
                        if abs(strange) == 1e20 and padding == "reflection":
                            continue  # no digit of a remainder is left
                        for rank in (2, 3):
                            if rank == 3 and mode == "bicubic":
                                continue
                            grid = torch.zeros((1, rank + 1, *[1] * (rank - 1), rank), dtype=dtype)
                            grid[0].reshape(rank + 1, rank)[range(rank), range(rank)] = strange
                            yield make((1, 2, *[3] * rank), dtype), grid, mode, padding, align


def sample(x, grid, mode="bilinear", padding="zeros", align=False):
    return F.grid_sample(x, grid, mode, padding, align)


SUM = {"scale": "tensor", "zero_sign": False, "tolerance": 4}
ROWS = [
    Row("interpolate", interpolate, resizes, special_grad=False, **SUM),
    Row("unfold_blocks", F.unfold, images_to_blocks, **SUM),
    Row("fold", F.fold, blocks_to_images, **SUM),
    Row("affine_grid", lambda theta, size, align=False: F.affine_grid(theta, size, align), affine_maps, **SUM),
    Row("grid_sample", sample, samples_nowhere, grad=False, **SUM),
    Row("grid_sample", sample, samples, special_grad=False, **SUM),
    Row("channel_shuffle", torch.channel_shuffle, channel_shuffles, since=(2, 0), reason="it has no derivative"),
]

# Writes tests/ops/data/print_cases.txt: tensors and the text that PyTorch prints for them. Run it by hand with a Python that
# has PyTorch when cases are added; tests/ops/print_test.cpp reads the file.
#
# A case: "dtype D", "shape n n ...", "options name=value ...", then "values" (hexadecimal floats or integers, row-major; a
# complex number is two) or "linear a b" (element i is a + b * i), then "text" and the lines up to "end".

import math
import pathlib
import random

import torch

OPTIONS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
out = []


def numbers(tensor):
    flat = tensor.reshape(-1)
    if tensor.dtype.is_complex:
        flat = torch.view_as_real(flat).reshape(-1)
    if flat.dtype.is_floating_point:
        return [float(v).hex() for v in flat.double().tolist()]
    return [str(int(v)) for v in flat.tolist()]


def case(tensor, linear=None, **options):
    torch.set_printoptions(**{**OPTIONS, **options})
    out.append(f"dtype {str(tensor.dtype)[6:]}")
    out.append(" ".join(["shape", *map(str, tensor.shape)]))
    out.append(" ".join(["options", *(f"{k}={int(v)}" for k, v in options.items())]))
    if linear:
        out.append(f"linear {linear[0]} {linear[1]}")
    else:
        out.append(" ".join(["values", *numbers(tensor)]))
    out.append("text")
    out.append(str(tensor))
    out.append("end")


def linear(shape, dtype, a, b, **options):
    n = math.prod(shape)
    values = a + b * torch.arange(n, dtype=torch.float64)
    case(values.to(dtype).reshape(shape), linear=(a, b), **options)


f32, f64, f16, bf16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
inf, nan = math.inf, math.nan

# 0-d
for value in (0.0, -0.0, 1.0, -1.0, 3.5, 1e-5, 123456.789, 1e8, 1e9, 12345678.0, 0.0001, 0.00009, inf, -inf, nan, 2.5, 1e38):
    for dtype in (f32, f64):
        case(torch.tensor(value, dtype=dtype))
for value in (0, -1, 127):
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        case(torch.tensor(value, dtype=dtype))
case(torch.tensor(True))
case(torch.tensor(False))

# rows of chosen values
rows = [
    [1.0, -2.5], [1.0, 2.0, 3.0], [1.0, -2.0, 3.0], [0.0, 0.0], [-0.0, 1.0], [-0.0, 0.5], [1.0, inf], [1.5, inf, -inf, nan], [inf, nan], [nan],
    [-nan, 1.0], [1e-5, 1.0], [1.0, 1000.0], [1.0, 1001.0], [1.5, 1500.0], [1.5, 1501.0], [1e8, 2e8], [1.0e8 + 8, 2e8], [1e9], [0.1, 99.9],
    [0.1, 100.1], [1e-4, 1e-4], [9e-5], [123456.0], [123456.5], [-123.456, 0.125], [1e10, inf, nan], [1e-45], [3.4e38, -3.4e38], [16777216.0, 1.0],
    [0.00005, 0.0], [1e-7, inf], [5.0, 5e-324], [0.30000001, 0.69999999], [0.99999, 1.00001], [999.99999, 1.0], [1234.5678, 0.0, nan], [2.5, 3.5, -0.5],
]
for row in rows:
    for dtype in (f32, f64):
        case(torch.tensor(row, dtype=dtype))
    if all(not math.isfinite(v) or abs(v) < 6e4 for v in row):
        case(torch.tensor(row, dtype=f16))
    case(torch.tensor(row, dtype=bf16))

# shapes, wrapping, summaries
for shape in ((1,), (5,), (20,), (100,), (1, 1), (2, 3), (3, 1), (1, 30), (3, 25), (2, 2, 2), (2, 1, 3, 2), (1, 1, 1, 1, 2), (2, 2, 2, 2, 1)):
    linear(shape, f32, 0.5, 1.25)
    linear(shape, f32, -3, 1)
    linear(shape, torch.int64, -3, 7)
for shape in ((1000,), (1001,), (2000,), (10, 101), (7, 200), (6, 200), (200, 7), (3, 400), (2, 10, 60), (10, 10, 11), (7, 7, 7, 7), (2, 3, 4, 100)):
    linear(shape, f32, -0.5, 0.5)
    linear(shape, torch.int32, 0, 1)
    linear(shape, f64, 1e-3, 0.37)
linear((40, 40), f32, 0, 1e5)
linear((40, 40), bf16, 0, 1)
linear((1200,), torch.uint8, 0, 0.1)
for shape in ((0,), (0, 3), (2, 0), (3, 0, 2), (0, 0)):
    for dtype in (f32, f64, torch.int64, torch.bool, f16, torch.int32):
        case(torch.zeros(shape, dtype=dtype))
case(torch.tensor([True, False]))
case(torch.tensor([[True], [True]]))
case(torch.tensor([False]))
case(torch.arange(40) % 3 == 0)
case(torch.tensor([0, 255], dtype=torch.uint8))
case(torch.tensor([-128, 127], dtype=torch.int8))
case(torch.tensor([-(2**63), 2**63 - 1]))
case(torch.tensor([[1, -20], [300, 4]], dtype=torch.int16))
case(torch.tensor([0, 65535], dtype=torch.uint16))
case(torch.tensor([0, 2**32 - 1], dtype=torch.uint32))

# dtypes that are held but not computed on
case(torch.tensor([1 + 2j, -0.5 - 3j, 0j]))
case(torch.tensor([[1 + 2j, 100 - 3.5j], [complex(inf, nan), complex(-0.0, -0.0)]]))
case(torch.tensor([1e-5 + 2e6j], dtype=torch.complex128))
case(torch.tensor(1.5 - 2j))
case(torch.tensor([[complex(i, -j * 0.5) for i in range(12)] for j in range(3)]))

# options
for options in ({"precision": 2}, {"precision": 0}, {"precision": 8}, {"linewidth": 40}, {"linewidth": 200}, {"edgeitems": 1, "threshold": 5}, {"edgeitems": 0, "threshold": 5},
                {"threshold": 5}, {"sci_mode": True}, {"sci_mode": False}, {"edgeitems": 2, "threshold": 10, "precision": 3}):
    linear((4, 9), f32, 0.123456, 1.7, **options)
    linear((12,), f64, 1e-6, 100.5, **options)
    linear((3, 8), torch.int64, 0, 1, **options)
    case(torch.tensor(0.5), **options)

# mixtures
random.seed(7)
torch.manual_seed(7)
for i in range(60):
    shape = [random.randint(1, 6) for _ in range(random.randint(0, 4))]
    if random.random() < 0.15:
        shape = [random.randint(1, 20), random.randint(1, 40)]
    if random.random() < 0.1:
        shape[-1:] = [random.randint(20, 90)]
    while math.prod(shape) > 150:
        shape[-1] = max(1, shape[-1] // 2)
        shape[0] = max(1, shape[0] // 2)
    dtype = random.choice([f32, f32, f32, f64, f16, bf16])
    x = torch.randn(shape, dtype=f64) * 10.0 ** random.choice([-6, -3, -1, 0, 0, 0, 1, 2, 4])
    if random.random() < 0.3:
        x = x.round()
    if random.random() < 0.3:
        x = torch.where(torch.rand(shape) < 0.2, torch.tensor(random.choice([inf, -inf, nan, 0.0, -0.0, 1e4])), x)
    case(x.to(dtype))

path = pathlib.Path(__file__).resolve().parents[1] / "ops" / "data" / "print_cases.txt"
path.write_text("\n".join(out) + "\n")
print(f"{path}: {out.count('end')} cases, PyTorch {torch.__version__}")

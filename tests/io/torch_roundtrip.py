# Checkpoints go from PyTorch through Tern and back: what Tern writes must open with weights_only=True and be equal bit for bit,
# with shared storages still shared. The helper program (copy_tool.cpp) is named by TERN_COPY_TOOL; 77 means skipped.

import collections
import enum
import itertools
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings

import torch

try:
    import numpy as np
except ImportError:  # not everywhere where PyTorch is
    np = None

warnings.filterwarnings("ignore")
TOOL = os.environ.get("TERN_COPY_TOOL")
if not TOOL or not os.path.exists(TOOL):
    print("SKIP: TERN_COPY_TOOL does not name the helper program")
    sys.exit(77)

MODERN = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 0)
failures = []


def run(*arguments):
    result = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip())
    return result.stdout


def plain_load(path, **options):
    if MODERN:
        options.setdefault("weights_only", False)
    return torch.load(path, map_location="cpu", **options)


def tensor_bytes(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg() if hasattr(tensor, "resolve_conj") else tensor.detach()
    if tensor.numel() == 0:
        return b""
    return bytes(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())


def address(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr()


def compare(a, b, place, seen, shared):
    """Raises AssertionError at the first difference; `shared` maps storages of one side to those of the other."""
    if id(a) in seen:
        assert seen[id(a)] == id(b), f"{place}: sharing differs"
        return
    if isinstance(a, (list, dict, torch.Tensor)):
        seen[id(a)] = id(b)
    if isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor), f"{place}: {type(b)}"
        assert a.dtype == b.dtype and a.shape == b.shape, f"{place}: {a.dtype} {a.shape} / {b.dtype} {b.shape}"
        assert a.requires_grad == b.requires_grad, f"{place}: requires_grad"
        if a.is_quantized:
            assert a.qscheme() == b.qscheme() and torch.equal(a.int_repr(), b.int_repr()), f"{place}: quantized integers"
            assert torch.equal(a.dequantize(), b.dequantize()), f"{place}: scales"
            return
        if a.layout != torch.strided:
            assert a.layout == b.layout and bool((a.to_dense() == b.to_dense()).all()), f"{place}: sparse values"
            return
        assert tensor_bytes(a) == tensor_bytes(b), f"{place}: values differ"
        if a.is_conj() or a.is_neg():
            return
        assert a.stride() == b.stride() and a.storage_offset() == b.storage_offset(), f"{place}: layout"
        if a.numel():
            assert shared.setdefault(address(a), address(b)) == address(b), f"{place}: storages are shared differently"
    elif isinstance(a, dict):
        assert type(a) is type(b), f"{place}: {type(a)} / {type(b)}"
        assert list(a.keys()) == list(b.keys()), f"{place}: {list(a)} / {list(b)}"
        for key in a:
            compare(a[key], b[key], f"{place}[{key!r}]", seen, shared)
        if hasattr(a, "_metadata"):
            assert a._metadata == b._metadata, f"{place}: _metadata"
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b), f"{place}: {a} / {b}"
        for i, (x, y) in enumerate(zip(a, b)):
            compare(x, y, f"{place}[{i}]", seen, shared)
    elif np and isinstance(a, np.ma.MaskedArray):
        assert type(b) is type(a) and a.tolist() == b.tolist() and a.fill_value == b.fill_value, f"{place}: {a} / {b}"
    elif np and isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.flags.f_contiguous == b.flags.f_contiguous and (a == b).all(), f"{place}: {a} / {b}"
    elif isinstance(a, float):
        assert isinstance(b, float) and (a == b or (a != a and b != b)), f"{place}: {a} / {b}"
    else:
        assert type(a) is type(b) and a == b, f"{place}: {a!r} / {b!r}"


def check(name, body):
    try:
        body()
    except Exception as error:  # every failure is reported, not only the first
        failures.append(name)
        print(f"FAILED {name}: {type(error).__name__}: {error}")


class Color(enum.Enum):
    RED = 1


class Outer:
    class Mode(enum.Enum):
        FAST = 1

    class Inner:
        def __init__(self):
            self.weight = torch.ones(2)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3)
        self.bn = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).mean((2, 3)))


def objects():
    torch.manual_seed(0)
    base = torch.arange(100, dtype=torch.float32)
    tied = torch.randn(3, 4)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(2, 1, 8, 8)).sum().backward()
        optimizer.step()
    cyclic = [1, 2]
    cyclic.append(cyclic)
    in_tuple = ([],)
    in_tuple[0].append(in_tuple)
    shared_list = [7, 8]
    dtypes = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
              torch.float32, torch.float64, torch.complex64, torch.complex128]
    as_dtype = lambda dtype: (torch.arange(6).reshape(2, 3) * 1.0).to(torch.float32).to(dtype)
    every = {str(dtype): as_dtype(dtype) for dtype in dtypes}
    newest = {name: as_dtype(getattr(torch, name)) for name in (
        "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32",
        "bcomplex32")
              if MODERN and hasattr(torch, name)}
    if hasattr(torch, "float4_e2m1fn_x2"):
        newest["float4"] = torch.arange(6, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    yield "tensor", torch.randn(5, 7), True
    yield "scalar", torch.tensor(3.5, dtype=torch.float64), True
    yield "empty", {"e": torch.zeros(0, 3), "f": torch.zeros(0), "g": torch.zeros(2, 0, 4, dtype=torch.int64)}, True
    yield "dtypes", every, True
    yield "newest dtypes", newest, True
    yield "views", [base, base[10:20], base.view(10, 10).t(), base[::3], base[0].expand(4, 5), base[50]], True
    yield "tied", {"a": tied, "b": tied, "c": tied.t(), "nested": {"again": tied[1:]}}, True
    yield "requires_grad", {"w": torch.randn(2, requires_grad=True), "v": torch.randn(2),
                            "c": torch.randn(2, dtype=torch.complex64, requires_grad=True)}, True
    yield "newest parameters", [torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point() or tensor.is_complex())
                                for tensor in newest.values()], True
    yield "state_dict", net.state_dict(), True
    yield "training", {"epoch": 3, "model": net.state_dict(), "optimizer": optimizer.state_dict(), "best": 0.98, "note": "a\u00e4\u4e2d\U0001f600",
                       "done": False, "nothing": None}, True
    yield "many", collections.OrderedDict((f"layer{i}.weight", torch.full((3,), float(i))) for i in range(2500)), True
    yield "integers", [0, 1, 255, 256, 65535, 65536, -1, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63, 2**64, -2**64, 10**60, 2**2000], True
    yield "very long integers", [2**2040, -2**5000], False  # PyTorch's restricted reader stops at 255 bytes
    yield "floats", [0.1, -0.0, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324], True
    yield "strings", ["", "x" * 300, "\x00\n\"'", "\u00e9" * 200, "\udc80"], True
    yield "sizes", {"size": torch.Size([2, 3]), "dtype": torch.float16, "device": torch.device("cuda", 1), "cpu": torch.device("cpu")}, MODERN
    yield "tuples", ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [[], [()]], {}, {"a": {}}), True
    yield "keys", {1: "a", 2.5: "b", (1, 2): "c", None: "d", "s": "e", 2**40: "f"}, True
    yield "shared", [shared_list, shared_list, {"x": shared_list}], True
    yield "large list", list(range(3001)), True
    yield "large dict", {i: i * i for i in range(2001)}, True
    yield "one item batches", {"l": list(range(1001)), "d": {i: 0 for i in range(1001)}}, True
    yield "bytes", [b"", b"abc", bytes(range(256)), bytearray(b"\x00\xff")], False
    yield "sets", [{1, 2, 3}, frozenset((4, 5)), set(), complex(3, -4), slice(1, 5, 2), range(0, 9, 2)], False
    yield "layout", torch.strided, False
    yield "sparse", {"coo": torch.eye(4).to_sparse(), "csr": torch.eye(4).to_sparse_csr()}, False
    yield "quantized", {"tensor": torch.quantize_per_tensor(torch.randn(4, 5), 0.1, 3, torch.quint8),
                        "channels": torch.quantize_per_channel(torch.randn(3, 4), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2]),
                                                               0, torch.qint8),
                        "wide": torch.quantize_per_tensor(torch.randn(4), 0.01, 0, torch.qint32)}, False
    if np:
        yield "numpy", {"array": np.arange(6.0).reshape(2, 3), "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
                        "big": np.arange(3, dtype=">f4"), "scalar": np.float64(0.5), "texts": np.array(["a", "bc"]),
                        "dtype": np.dtype("f4"), "masked": np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])}, False
    yield "parameters", {"sparse": torch.nn.Parameter(torch.eye(3).to_sparse()), "fixed": torch.nn.Parameter(
        torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8), requires_grad=False)}, False
    yield "enum", {"color": Color.RED, "parameter": torch.nn.Parameter(torch.ones(2))}, False
    if MODERN:
        wave = torch.randn(4, dtype=torch.complex64)
        yield "conj", {"c": wave.conj(), "again": wave[1:].conj(), "same": wave, "expanded": wave[0].conj().expand(3),
                       "n": torch._neg_view(torch.randn(3)), "i": torch._neg_view(torch.tensor([0, 1, -5, 300, 2**40])),
                       "b": torch._neg_view(torch.tensor([1, -128, 127], dtype=torch.int8))}, True
    yield "namespace", __import__("argparse").Namespace(lr=0.1, w=torch.ones(2)), False
    # Plain data to Tern, whose generator is another one; PyTorch takes it back.
    yield "random state", {"torch": torch.get_rng_state(), "cuda": [torch.arange(16, dtype=torch.uint8)], "epoch": 1}, True
    yield "cyclic", {"list": cyclic, "tuple": in_tuple}, None


def check_cycles(back):
    assert back["list"][:2] == [1, 2] and back["list"][2] is back["list"]
    assert isinstance(back["tuple"], tuple) and back["tuple"][0][0] is back["tuple"]


def check_draws(state, back):
    assert state.dtype == torch.uint8 and state.shape == (5056,)
    draws = []
    for each in (state, back):
        torch.set_rng_state(each)
        draws.append((torch.rand(5), torch.randn(5), torch.randperm(9)))
    assert all(torch.equal(a, b) for a, b in zip(*draws)), "the draws differ"


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tern-roundtrip-"))
    for (name, value, restricted), stream in itertools.product(objects(), (False, True)):
        def body():
            source, target = folder / "source.pt", folder / "target.pt"
            try:
                torch.save(value, source, _use_new_zipfile_serialization=not stream)
                expected = plain_load(source)
            except AttributeError as error:
                assert stream and "has no attribute 'dtype'" in str(error)  # the newest dtypes: PyTorch cannot read them back
                return
            run("pt", source, target)
            back = plain_load(target)
            if name == "cyclic":
                check_cycles(back)
                return
            if name == "namespace":
                compare(vars(expected), vars(back), "value", {}, {})
                return
            compare(expected, back, "value", {}, {})
            if name == "random state":
                check_draws(value["torch"], back["torch"])
            if restricted and MODERN:
                compare(expected, torch.load(target, map_location="cpu", weights_only=True), "weights_only", {}, {})
        check(f"{name} ({'stream' if stream else 'zip'} format)", body)

    def legacy(name, value, restricted):
        source, target = folder / "source.pt", folder / "target.pt"
        torch.save(value, source)
        try:
            run("legacy", source, target)
        except RuntimeError as error:
            assert "the legacy format is older than" in str(error), error
            return
        assert target.read_bytes()[:2] == b"\x80\x02"
        if name == "cyclic":
            return check_cycles(plain_load(target))
        if name == "namespace":
            return compare(vars(plain_load(source)), vars(plain_load(target)), "value", {}, {})
        compare(plain_load(source), plain_load(target), "value", {}, {})
        if restricted and MODERN:
            compare(plain_load(source), torch.load(target, map_location="cpu", weights_only=True), "weights_only", {}, {})

    for name, value, restricted in objects():
        check(f"{name} (written in the stream format)", lambda: legacy(name, value, restricted))

    def compact():
        base = torch.arange(100000.0)
        value = [base[10:20], base[12:14], base[90000:90010].view(2, 5).t(), torch.zeros(0), base[:0]]
        source, target = folder / "source.pt", folder / "target.pt"
        torch.save(value, source)
        run("compact", source, target)
        back = plain_load(target)
        assert target.stat().st_size < 5000
        for x, y in zip(value, back):
            assert x.shape == y.shape and x.stride() == y.stride() and torch.equal(x, y)
        assert address(back[0]) == address(back[1]) != address(back[2])

    check("compact", compact)

    def plain_pickle():
        state = dict(Net().state_dict())
        source, target = folder / "source.pkl", folder / "target.pt"
        for protocol in (2, 4, 5):
            with open(source, "wb") as file:
                pickle.dump(state, file, protocol=protocol)
            run("pt", source, target)
            compare(state, plain_load(target), f"protocol {protocol}", {}, {})

    check("plain pickle", plain_pickle)

    def nested_classes():
        source, target = folder / "source.pt", folder / "target.pt"
        for protocol in (1, 2, 4):
            torch.save({"mode": Outer.Mode.FAST, "inner": Outer.Inner(), "class": Outer.Inner}, source, pickle_protocol=protocol)
            run("pt", source, target)
            back = plain_load(target)
            assert back["mode"] is Outer.Mode.FAST and back["class"] is Outer.Inner, back
            assert type(back["inner"]) is Outer.Inner and torch.equal(back["inner"].weight, torch.ones(2)), back

    check("nested classes", nested_classes)

    def tensors_in_sets():
        source, target = folder / "source.pt", folder / "target.pt"
        one, two = torch.ones(1), torch.arange(2)
        torch.save({"set": {one}, "frozen": frozenset((two,)), "by tensor": {one: "one", two: "two"}}, source)
        run("pt", source, target)
        back = plain_load(target)
        (first, text), (second, other) = back["by tensor"].items()
        assert torch.equal(first, one) and torch.equal(second, two) and (text, other) == ("one", "two"), back
        assert back["set"] == {first} and back["frozen"] == {second}, back

    check("tensors in sets", tensors_in_sets)

    def one_storage_of_several_classes():
        source, target = folder / "source.pt", folder / "target.pt"
        data, empty = torch.arange(16, dtype=torch.uint8), torch.zeros(0)
        cases = [[empty, empty.view(torch.int32)]] if MODERN else []  # older ones read the first dtype twice
        if hasattr(torch, "float8_e5m2"):
            cases += [[data.view(torch.float8_e5m2), data], [data[4:8].view(torch.uint32), data]]
        for mode, value in itertools.product(("pt", "compact"), cases):
            torch.save(value, source)
            run(mode, source, target)
            back = plain_load(target)
            for x, y in zip(value, back):
                assert x.dtype == y.dtype and x.shape == y.shape and tensor_bytes(x) == tensor_bytes(y), (mode, x, y)
            assert address(back[0]) == address(back[1])
        if MODERN:
            torch.save([data, data.untyped_storage()], source)
            run("pt", source, target)
            back = plain_load(target)
            assert address(back[0]) == back[1].data_ptr() and bytes(back[1].tolist()) == tensor_bytes(data), back

    check("one storage of several classes", one_storage_of_several_classes)

    def empty_views():
        source, target = folder / "source.pt", folder / "target.pt"
        value = torch.zeros(4, 0, 7, 3)[1:3]  # begins behind its storage, which is empty
        torch.save(value, source)
        run("pt", source, target)
        assert plain_load(target).shape == value.shape

    check("empty views", empty_views)

    def long_texts():
        source, target = folder / "source.pt", folder / "target.pt"
        value = {"bytes": b"\xff" * (40 << 20), "text": "x" * (70 << 20), "int": 1 << 20000}
        torch.save(value, source)
        run("pt", source, target)
        assert plain_load(target) == value

    check("long texts", long_texts)

    def safetensors():
        try:
            from safetensors import safe_open
        except ImportError:
            safe_open = None
        state = Net().state_dict()
        state["f16"] = torch.randn(3).half()
        state["bf16 \u00e4\""] = torch.randn(3, 5).bfloat16().t()
        state["b"] = torch.tensor([True, False, True])
        state["empty"] = torch.zeros(0, 2)
        source, target = folder / "source.pt", folder / "target.safetensors"
        torch.save(state, source)
        run("safetensors", source, target)
        raw = target.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        header = __import__("json").loads(raw[8:8 + length])
        assert (8 + length) % 8 == 0 and header.pop("__metadata__")["note"] == "a \"b\" \\ \n \u00e4"
        names = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.bool: "BOOL"}
        assert set(header) == set(state)
        for key, tensor in state.items():
            entry = header[key]
            begin, end = entry["data_offsets"]
            assert entry["dtype"] == names[tensor.dtype] and entry["shape"] == list(tensor.shape), key
            assert raw[8 + length + begin:8 + length + end] == tensor_bytes(tensor), key
        if safe_open:
            with safe_open(str(target), framework="pt") as opened:
                for key in state:
                    assert torch.equal(opened.get_tensor(key), state[key]), key
        back = folder / "back.pt"
        run("pt", target, back)
        for key, tensor in plain_load(back).items():
            assert torch.equal(tensor, state[key]) and tensor.dtype == state[key].dtype, key

    check("safetensors", safetensors)

    def whole_model():
        source, target = folder / "source.pt", folder / "target.pt"
        net = Net()
        torch.save({"net": net, "step": 3}, source)
        run("pt", source, target)
        back = plain_load(target)
        compare(net.state_dict(), back["net"].state_dict(), "net", {}, {})
        assert torch.equal(net.eval()(torch.ones(1, 1, 8, 8)), back["net"].eval()(torch.ones(1, 1, 8, 8)))

    check("whole model", whole_model)

    def npz():
        arrays = {"a": np.arange(6.0).reshape(2, 3), "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
                  "big": np.arange(3, dtype=">i2"), "flags": np.array([True, False]), "scalar": np.array(2.5, dtype="f2"),
                  "complex": np.array([1 + 2j], dtype="c8"), "empty": np.zeros((0, 3))}
        for save in (np.savez, np.savez_compressed):
            source, target = folder / "source.npz", folder / "target.npz"
            save(source, **arrays)
            run("npz", source, target)
            with np.load(target) as back:
                assert list(back) == list(arrays)
                for key, array in arrays.items():
                    assert back[key].dtype == array.dtype.newbyteorder("=") and back[key].shape == array.shape, key
                    assert (back[key] == array).all(), key
        np.savez(source, **{"": np.arange(2), "a": np.arange(3)})
        run("pt", source, folder / "target.pt")
        assert list(torch.load(folder / "target.pt")) == ["", "a"]

    def structured_npy():
        array = np.zeros(3, np.dtype({"names": ["a", "\u00e9", "c"], "formats": ["u1", [("x", ">f4", (2,)), ("y", "U2")], "M8[us]"],
                                      "offsets": [0, 8, 24], "titles": [None, "T", None], "itemsize": 40}))
        array["a"] = [1, 2, 3]
        array["\u00e9"]["y"] = ["p", "qr", "\u00e4"]
        source, target = folder / "source.npy", folder / "target.pt"
        np.save(source, array)
        run("pt", source, target)
        back = plain_load(target)
        assert back.dtype == array.dtype and (back == array).all(), f"{array.dtype} {back.dtype}"

    if np:
        check("npz", npz)
        check("structured npy", structured_npy)

    def entries():
        import zipfile
        source, target = folder / "source.pt", folder / "named.model.pt"
        torch.save({f"t{i}": torch.zeros(i) for i in range(12)}, source)
        run("pt", source, target)
        with zipfile.ZipFile(target) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
            assert all(name.startswith("named.model/") for name in names), names
            raw = target.read_bytes()
            for info in archive.infolist():
                local = raw[info.header_offset:info.header_offset + 30]
                start = info.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
                assert start % 64 == 0, info.filename
            assert archive.read("named.model/version") == b"3\n"

    check("entries", entries)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    print(f"PyTorch {torch.__version__}: {'all equal' if not failures else 'FAILED: ' + ', '.join(failures)}")
    sys.exit(1 if failures else 0)


main()

"""tern.save and tern.load: Python's values, state dicts and whole models, to PyTorch and back; safetensors
and NumPy's files."""

import collections
import gc
import io
import os
import pathlib
import pickle
import tempfile
import unittest
import warnings
import zipfile

import numpy as np
import torch

import tern
import tern.safetensors
from tern import serialization


def saved(value, save=tern.save, **options):
    file = io.BytesIO()
    save(value, file, **options)
    file.seek(0)
    return file


def again(value, **options):
    """What comes back of a value."""
    return tern.load(saved(value), **options)


def lists(tensors):
    return {name: tensor.tolist() for name, tensor in tensors.items()}


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Values(unittest.TestCase):
    def test_values_come_back_as_they_were(self):
        values = [
            None, True, 0, -1, 2**31, -2**63, 2**63, 2**1000, -2**64, 1.5, float("inf"), 1 - 2j, "",
            "tern ü 😀 \ud800", b"", b"\x00\xff", bytearray(b"ab"), [], [1, [2]], (), (1,),
            (1, (2, 3), 4, 5), {}, {"a": 1, 2: "b", (1, 2): None}, {1, 2}, set(), frozenset([3]),
            slice(1, None, 2), range(1, 9, 3), tern.Size([2, 3]), tern.float16, tern.bfloat16,
            tern.device("cpu"), tern.device("cuda:1"), tern.device("cuda"), collections.OrderedDict(b=1, a=2),
            collections.Counter([1, 1, 2])]
        for value in values:
            with self.subTest(value=ascii(value)):
                back = again(value)
                self.assertEqual(back, value)
                self.assertIs(type(back), type(value))

    def test_order_of_an_ordered_dict(self):
        value = collections.OrderedDict(a=1, b=2)
        value.move_to_end("a")
        value.note = {"x": 1}
        back = again(value)
        self.assertEqual((list(back), back.note), (["b", "a"], {"x": 1}))

    def test_tensors(self):
        x = tern.arange(6).reshape(2, 3)
        w = tern.ones(2, requires_grad=True)
        back = again({"x": x, "t": x.t(), "row": x[1], "w": w, "none": tern.zeros(0, 2)})
        self.assertEqual(back["t"].stride(), (1, 3))
        back["x"][1, 0] = 9
        self.assertEqual((back["row"][0].item(), back["t"][0, 1].item()), (9, 9))
        self.assertTrue(back["w"].requires_grad)
        self.assertEqual(back["none"].shape, (0, 2))
        for dtype in (tern.bool, tern.uint8, tern.int16, tern.float16, tern.bfloat16, tern.float64):
            self.assertEqual(again(tern.ones(2, dtype=dtype)).dtype, dtype)

    def test_sharing_and_cycles(self):
        inner, x = [1], tern.ones(2)
        value = {"a": inner, "b": inner, "x": x, "y": [x]}
        value["self"] = value
        loop = ([],)
        loop[0].append(loop)
        back = again([value, loop])
        self.assertIs(back[0]["a"], back[0]["b"])
        self.assertIs(back[0]["x"], back[0]["y"][0])
        self.assertIs(back[0]["self"], back[0])
        self.assertIs(back[1][0][0], back[1])

    def test_what_a_file_does_not_hold(self):
        class Net(tern.nn.Module):
            pass

        Point = collections.namedtuple("Point", "x")
        optimizer = tern.optim.SGD([tern.ones(1, requires_grad=True)], lr=0.1)
        for value, text in [
                (object(), "builtins.object"), (Net(), "state_dict"), (optimizer, "state_dict"),
                (print, "builtin"), (Point(1), "make it a tuple"),
                (collections.defaultdict(list), "make it a dict"),
                (int, "builtins.type")]:
            place = r"value\['a'\]\[1\] cannot.*"
            with self.subTest(text=text), self.assertRaisesRegex(TypeError, place + text):
                tern.save({"a": [0, value]}, io.BytesIO())
        deep = []
        for _ in range(5000):
            deep = [deep]
        with self.assertRaisesRegex(ValueError, "nested deeper"):
            tern.save(deep, io.BytesIO())
        cycle = [object()]
        cycle.insert(0, cycle)
        with self.assertRaises(TypeError):
            tern.save(cycle, io.BytesIO())
        self.assertEqual(again(self.nested(900)), self.nested(900))

    @staticmethod
    def nested(depth):
        value = []
        for _ in range(depth):
            value = [value]
        return value


class Files(InFolder):
    def test_paths_and_files(self):
        path = self.folder / "a.pt"
        for f in (path, str(path)):
            tern.save({"a": 1}, f)
            self.assertEqual(tern.load(f), {"a": 1})
        with open(path, "wb") as file:
            tern.save([tern.ones(2)], file)
        with open(path, "rb") as file:
            self.assertEqual(tern.load(file)[0].tolist(), [1, 1])
        with open(path, encoding="latin-1") as file, self.assertRaisesRegex(TypeError, "rb"):
            tern.load(file)
        tern.save(tern.ones(3), path, _use_new_zipfile_serialization=False)
        self.assertEqual(tern.load(path).tolist(), [1, 1, 1])

    def test_errors_are_what_python_expects(self):
        with self.assertRaises(FileNotFoundError):
            tern.load(self.folder / "none.pt")
        with self.assertRaises(OSError) as raised:
            tern.save(1, self.folder / "none" / "a.pt")
        self.assertIsInstance(raised.exception, tern.Error)
        broken = self.folder / "broken.pt"
        broken.write_bytes(b"PK\x03\x04 nothing")
        with self.assertRaises(tern.CheckpointError):
            tern.load(broken)
        with self.assertRaises(RuntimeError):
            tern.load(io.BytesIO(b"nothing"))

    def test_mmap_and_compact(self):
        path = self.folder / "a.pt"
        x = tern.arange(100000)
        tern.save(x, path)
        self.assertEqual(tern.load(path, mmap=True)[-1].item(), 99999)
        with self.assertRaisesRegex(ValueError, "mmap"):
            tern.load(io.BytesIO(path.read_bytes()), mmap=True)
        whole, part = (len(saved(x[:3], compact=compact).getvalue()) for compact in (False, True))
        self.assertGreater(whole, 800000)
        self.assertLess(part, 5000)

    def test_map_location(self):
        file = saved({"x": tern.ones(2)})
        seen = []

        def function(storage, location):
            seen.append(location)
            return storage

        for where in ("cpu", "auto", tern.device("cpu"), {"cpu": "cpu"}, {"cuda:0": "cpu"}, function,
                      lambda storage, location: None, lambda storage, location: "cpu"):
            file.seek(0)
            self.assertEqual(tern.load(file, map_location=where)["x"].device, tern.device("cpu"))
        self.assertEqual(seen, ["cpu"])
        for where, error in ((3.5, TypeError), ("nowhere", RuntimeError),
                             (lambda storage, location: 1 / 0, ZeroDivisionError),
                             (lambda storage, location: storage.cuda(99), RuntimeError)):
            file.seek(0)
            with self.assertRaises(error):
                tern.load(file, map_location=where)

    def test_safetensors(self):
        path = self.folder / "a.safetensors"
        tensors = {"a": tern.ones(2, 3), "b": tern.arange(3)}
        tern.safetensors.save_file(tensors, path, {"made": "here"})
        back, metadata = tern.safetensors.load_file_with_metadata(path)
        self.assertEqual(lists(back), lists(tensors))
        self.assertEqual(metadata, {"made": "here"})
        self.assertEqual(tern.load(path)["b"].tolist(), [0, 1, 2])
        self.assertEqual(tern.safetensors.load(tern.safetensors.save(tensors))["b"].tolist(), [0, 1, 2])
        with self.assertRaises(FileNotFoundError):
            tern.safetensors.load_file(self.folder / "none")
        with self.assertRaisesRegex(TypeError, "'a'"):
            tern.safetensors.save_file({"a": [1]}, path)

    def test_files_of_numpy(self):
        x = tern.arange(6).reshape(2, 3)
        serialization.save_npy(x, self.folder / "x.npy")
        self.assertEqual(np.load(self.folder / "x.npy").tolist(), x.tolist())
        np.savez(self.folder / "x.npz", a=x.numpy(), b=np.ones(2))
        self.assertEqual(serialization.load_npz(self.folder / "x.npz")["a"].tolist(), x.tolist())
        self.assertEqual(tern.load(self.folder / "x.npz")["b"].tolist(), [1, 1])
        serialization.save_npz({"c": x}, self.folder / "y.npz")
        self.assertEqual(np.load(self.folder / "y.npz")["c"].tolist(), x.tolist())
        self.assertEqual(serialization.load_npy(self.folder / "x.npy").dtype, tern.int64)

    def test_values_of_numpy(self):
        value = {"array": np.arange(6.0).reshape(2, 3), "number": np.float32(2.5), "int": np.int64(3),
                 "loss": np.float64(0.5)}
        back = again(value)
        self.assertIs(type(back["array"]), np.ndarray)
        self.assertEqual(back["array"].tolist(), value["array"].tolist())
        self.assertEqual((back["number"], back["int"], back["loss"]), (2.5, 3, 0.5))


def state_dict_pair():
    net = tern.nn.Sequential(tern.nn.Linear(2, 3), tern.nn.BatchNorm1d(3))
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    return net, theirs


class PyTorch(unittest.TestCase):
    def load_there(self, file):
        options = {"weights_only": False} if torch.__version__ >= "2" else {}
        return torch.load(file, **options)

    def test_values(self):
        value = {"a": [1, 2**70, 2.5, "x", (None, True)], "t": tern.arange(3),
                 "h": tern.ones(2, dtype=tern.bfloat16), "od": collections.OrderedDict(x=1),
                 "size": tern.Size([1, 2]), "dtype": tern.float16}
        theirs = self.load_there(saved(value))
        self.assertEqual((theirs["a"], theirs["t"].tolist(), theirs["h"].dtype),
                         (value["a"], [0, 1, 2], torch.bfloat16))
        self.assertEqual((type(theirs["od"]), theirs["size"], theirs["dtype"]),
                         (collections.OrderedDict, torch.Size([1, 2]), torch.float16))
        ours = tern.load(saved(theirs, torch.save))
        self.assertEqual((ours["a"], ours["t"].tolist(), ours["size"], ours["dtype"]),
                         (value["a"], [0, 1, 2], (1, 2), tern.float16))

    def test_state_dicts(self):
        net, theirs = state_dict_pair()
        loaded = self.load_there(saved(net.state_dict()))
        self.assertEqual(loaded._metadata, theirs.state_dict()._metadata)
        theirs.load_state_dict(loaded)
        with torch.no_grad():
            theirs[0].weight += 1
        state = tern.load(saved(theirs.state_dict(), torch.save))
        net.load_state_dict(state)
        self.assertEqual(net[0].weight.tolist(), theirs[0].weight.tolist())
        self.assertEqual(state._metadata, theirs.state_dict()._metadata)

    def test_whole_models(self):
        shared = torch.nn.Linear(3, 3)
        theirs = torch.nn.Sequential(collections.OrderedDict(
            a=shared, norm=torch.nn.BatchNorm1d(3), act=torch.nn.GELU(), b=torch.nn.Linear(3, 3)))
        theirs.b.weight = shared.weight
        theirs.eval()
        file = saved(theirs, torch.save)
        with self.assertRaises(tern.CheckpointError):
            tern.load(file)
        file.seek(0)
        net = tern.load(file, weights_only=False)
        self.assertIsInstance(net, tern.nn.Sequential)
        self.assertIs(net.a.weight, net.b.weight)
        self.assertEqual((net.training, net.a.training), (False, False))
        x = [[1.0, -2.0, 0.5]]
        expected = theirs(torch.tensor(x)).tolist()[0]
        for a, b in zip(net(tern.tensor(x)).tolist()[0], expected):
            self.assertAlmostEqual(a, b, places=5)
        back = self.load_there(saved({"net": net, "list": tern.nn.ModuleList([net.a])}))
        self.assertEqual(list(back["net"].state_dict()), list(theirs.state_dict()))
        self.assertIs(back["net"].a.weight, back["net"].b.weight)
        self.assertIs(back["list"][0], back["net"].a)
        self.assertEqual(back["net"](torch.tensor(x)).tolist()[0], expected)
        self.assertFalse(back["net"].training)

    def test_objects_of_other_classes_are_inert(self):
        net = Net()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = tern.load(saved({"net": net, "args": Arguments()}, torch.save), weights_only=False)
        self.assertEqual(len(caught), 1)
        self.assertIn("is inert", str(caught[0].message))
        inert, args = value["net"], value["args"]
        self.assertIsInstance(inert, serialization.Inert)
        self.assertRegex(repr(inert), r"<inert \w+\.Net>")
        self.assertEqual((inert.heads, args.lr, args.names), (4, 0.5, ["a"]))
        self.assertEqual(lists(inert.tensors), lists(net.state_dict()))
        self.assertIsInstance(inert.fc, tern.nn.Linear)
        self.assertEqual((inert.scale.tolist(), type(inert.own)), ([1.0, 1.0], tern.nn.Parameter))
        with self.assertRaises(AttributeError):
            inert.nothing
        with self.assertRaises(AttributeError):
            inert.heads = 5
        back = self.load_there(saved(value))
        self.assertIs(type(back["net"]), Net)
        self.assertEqual(len(list(back["net"].parameters())), 3)
        self.assertEqual((back["net"].heads, back["args"].lr), (4, 0.5))
        self.assertEqual(back["net"].fc.weight.tolist(), net.fc.weight.tolist())

    def test_sparse_tensors_go_through(self):
        x = torch.eye(2).to_sparse()
        value = tern.load(saved(x, torch.save))
        self.assertEqual(repr(value), "<inert torch._utils._rebuild_sparse_tensor>")
        self.assertEqual(value.args[0], "torch.sparse_coo")
        self.assertEqual(self.load_there(saved(value)).to_dense().tolist(), [[1, 0], [0, 1]])

    def test_a_key_that_takes_forever_is_refused(self):
        key = (1,)
        for _ in range(60):
            key = (key, key)
        dumped = pickle.dumps(key, 2)
        data = b"\x80\x02}" + dumped[2:-1] + b"K\x01s."
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", data)
            archive.writestr("archive/version", "3\n")
        file.seek(0)
        with self.assertRaisesRegex(tern.CheckpointError, "parts"):
            tern.load(file)

    def test_nothing_from_a_file_is_run(self):
        called.clear()
        value = tern.load(saved({"x": Harmful()}, torch.save), weights_only=False)
        self.assertEqual(called, [])
        self.assertIn("append_to_called", repr(value["x"]))

    def test_parameters(self):
        value = tern.load(saved({"p": torch.nn.Parameter(torch.ones(2))}, torch.save))
        self.assertTrue(value["p"].requires_grad)
        back = self.load_there(saved({"p": tern.nn.Parameter(tern.ones(2))}))
        self.assertIs(type(back["p"]), torch.nn.Parameter)


called = []


def append_to_called(text):
    called.append(text)


class Harmful:
    def __reduce__(self):
        return append_to_called, ("run",)


class Arguments:
    def __init__(self):
        self.lr = 0.5
        self.names = ["a"]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.heads = 4
        self.own = torch.nn.Parameter(torch.ones(1))
        self.register_buffer("scale", torch.ones(2))


class Devices(unittest.TestCase):
    def test_files_of_gpus(self):
        tern.cuda.simulate_gpus(2)
        file = saved({"x": tern.ones(2, device="cuda:1")})
        for where, place in ((None, "cuda:1"), ("auto", "cuda:1"), (0, "cuda:0"), ({"cuda:1": "cpu"}, "cpu"),
                             (lambda storage, location: storage.cuda(0), "cuda:0"), ("cpu", "cpu")):
            file.seek(0)
            self.assertEqual(tern.load(file, map_location=where)["x"].device, tern.device(place))


class Memory(unittest.TestCase):
    def test_cycles_are_freed(self):
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def round_trip():
            value = [tern.ones(1 << 20)]
            value.append(value)
            again(value)

        for _ in range(3):
            round_trip()
        gc.collect()
        before = resident()
        for _ in range(30):
            round_trip()
            gc.collect()
        self.assertLess(resident() - before, 40 << 20)


if __name__ == "__main__":
    unittest.main()

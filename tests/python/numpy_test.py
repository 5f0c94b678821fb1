"""Arrays and tensors over the same memory: NumPy, Python's buffers, DLPack with PyTorch."""

import array
import gc
import sys
import unittest
import warnings
import weakref

import numpy as np
import torch
from torch.utils import dlpack

import tern


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
          "float32", "float64", "complex64", "complex128"]


class ToNumpy(unittest.TestCase):
    def test_memory_is_shared(self):
        x = tern.zeros(2, 3)
        a = x.numpy()
        self.assertEqual((a.shape, a.dtype), ((2, 3), np.float32))
        a[1, 2] = 5
        x[0, 0] = 7
        self.assertEqual((x[1, 2].item(), a[0, 0]), (5.0, 7.0))
        del x
        gc.collect()
        self.assertEqual(a.sum(), 12)

    def test_views_and_odd_shapes(self):
        x = tern.arange(12).reshape(3, 4)
        for view in (x.t(), x[1:, ::2], x[:, 1], x[1, 1], x[:, :0], x.expand(2, 3, 4), tern.zeros(0, 3)):
            self.assertEqual(view.numpy().tolist(), view.tolist())
            self.assertEqual(view.numpy().shape, tuple(view.shape))
        self.assertEqual(np.asarray(x.t()).strides, (8, 32))

    def test_dtypes(self):
        for name in DTYPES:
            with self.subTest(dtype=name):
                a = np.array([0, 1, 1]).astype(name)
                for tensor in (tern.from_numpy(a), tern.tensor(a)):
                    self.assertEqual(str(tensor.dtype), "torch." + name)
                    self.assertEqual(tensor.numpy().dtype, a.dtype)
                    np.testing.assert_array_equal(tensor.numpy(), a)
        with self.assertRaisesRegex(TypeError, "bfloat16"):
            tern.ones(2, dtype=tern.bfloat16).numpy()

    def test_gradients(self):
        x = tern.ones(2, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, r"requires grad. Use tensor.detach\(\).numpy\(\) instead"):
            x.numpy()
        self.assertEqual(x.detach().numpy().tolist(), [1, 1])
        self.assertEqual(x.numpy(force=True).tolist(), [1, 1])

    def test_indices_of_numpy_and_python(self):
        a = np.arange(24).reshape(4, 6)
        for key in (np.array([0, 2]), np.array([True, False, False, True]), (slice(None), np.array([5, -1])), (np.array([[0], [3]]), np.array([1, 2])),
                    np.int64(1), np.array(2), (np.int32(1), slice(2, 4)), np.bool_(True), range(3), (range(2), [4, 5]), (slice(1, 3), range(0, 6, 2)),
                    np.empty(0, dtype=np.int64), a > 7):
            x = tern.from_numpy(a.copy())
            self.assertEqual(x[key].tolist(), a[key].tolist(), key)
            changed = a.copy()
            changed[key] = -5
            x[key] = -5
            self.assertEqual(x.tolist(), changed.tolist(), key)
        x = tern.zeros(3, 2)
        x[[0, 2]] = tern.ones(1, 1, 2)  # leading sizes of 1 beyond those of the target
        x[tern.tensor([False, True, False])] = tern.full((1, 1, 1), 5.0)
        self.assertEqual(x.tolist(), [[1, 1], [5, 5], [1, 1]])
        for key in ("a", b"a", 1.5, {1}):
            with self.assertRaisesRegex((TypeError, IndexError), "are valid indices"):
                tern.ones(3)[key]

    def test_tensors_as_arguments_of_numpy(self):
        x = tern.tensor([1.0, 4.0])
        self.assertEqual(np.sqrt(x).tolist(), [1, 2])
        self.assertEqual(np.asarray(x, dtype=np.int64).tolist(), [1, 4])
        copy = np.array(x)
        copy[0] = 9
        self.assertEqual(x.tolist(), [1.0, 4.0])
        self.assertEqual(np.concatenate([x, x]).shape, (4,))


class FromNumpy(unittest.TestCase):
    def test_memory_is_shared_and_kept(self):
        class Array(np.ndarray):
            pass

        a = np.arange(6, dtype=np.float32).reshape(2, 3).view(Array)
        kept = weakref.ref(a)
        x = tern.from_numpy(a)
        x[0, 0] = 8
        self.assertEqual(a[0, 0], 8)
        view = x[1]
        del a, x
        gc.collect()
        self.assertIsNotNone(kept())
        self.assertEqual(view.tolist(), [3, 4, 5])
        del view
        gc.collect()
        self.assertIsNone(kept())

    def test_strides(self):
        a = np.arange(24, dtype=np.int32).reshape(4, 6)
        for view in (a.T, a[::2, 1::3], a[1, 1:2], np.broadcast_to(a, (2, 4, 6)), a[:, :0], a[2, 3:4, None]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(tern.from_numpy(view).tolist(), view.tolist())
            self.assertEqual(tern.tensor(view).tolist(), view.tolist())
        with self.assertRaisesRegex(ValueError, "stride.* negative"):
            tern.from_numpy(a[::-1])
        self.assertEqual(tern.tensor(a[::-1, ::-1]).tolist(), a[::-1, ::-1].tolist())
        pair = np.zeros(3, dtype=[("a", "i4"), ("b", "i2")])["a"]
        with self.assertRaisesRegex(ValueError, "not a multiple"):
            tern.from_numpy(pair)

    def test_what_is_refused(self):
        for value, error, text in [([1, 2], TypeError, r"expected np.ndarray \(got list\)"),
                                   (np.array(["a"]), TypeError, "can't convert"),
                                   (np.array([object()]), TypeError, "can't convert"),
                                   (np.arange(3).astype(">i4"), ValueError, "byte order")]:
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                tern.from_numpy(value)

    def test_an_array_that_is_not_writable_is_warned_of(self):
        a = np.arange(3)
        a.flags.writeable = False
        with self.assertWarnsRegex(UserWarning, "not writable"):
            tern.from_numpy(a)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(tern.tensor(a).tolist(), [0, 1, 2])

    def test_copies(self):
        a = np.ones(3)
        x = tern.tensor(a)
        x[0] = 5
        self.assertEqual(a[0], 1)
        self.assertEqual(tern.tensor(np.float32(2)).dtype, tern.float32)
        self.assertEqual(tern.tensor(np.int16(2)).shape, ())
        odd = np.array([0, 2, 1], dtype=np.uint8).view(bool)
        self.assertEqual(tern.tensor(odd).tolist(), [False, True, True])
        self.assertEqual(tern.tensor(a, dtype=tern.int32).tolist(), [1, 1, 1])


class Buffers(unittest.TestCase):
    def test_other_buffers(self):
        self.assertEqual(tern.tensor(array.array("d", [1.5, 2])).tolist(), [1.5, 2.0])
        self.assertEqual(tern.tensor(bytearray(b"ab")).tolist(), [97, 98])

    def test_frombuffer(self):
        data = bytearray(range(16))
        x = tern.frombuffer(data, dtype=tern.int32)
        self.assertEqual(x.shape, (4,))
        data[0] = 9
        self.assertEqual(x[0].item() & 255, 9)
        with self.assertRaises(BufferError):
            data.append(1)
        del x
        data.append(1)
        self.assertEqual(tern.frombuffer(data, dtype=tern.uint8, count=2, offset=3).tolist(), [3, 4])
        with self.assertWarnsRegex(UserWarning, "not writable"):
            self.assertEqual(tern.frombuffer(b"ab", dtype=tern.uint8).tolist(), [97, 98])
        for options in (dict(dtype=tern.int16), dict(dtype=tern.uint8, offset=18),
                        dict(dtype=tern.uint8, offset=-1), dict(dtype=tern.int64, count=3)):
            with self.assertRaisesRegex(ValueError, "frombuffer"):
                tern.frombuffer(data, **options)

    def test_numpy_is_imported_only_when_it_is_asked_for(self):
        import subprocess
        code = "import sys, tern; tern.tensor([1.0]).tolist(); sys.exit('numpy' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)


class DLPack(unittest.TestCase):
    def test_within_tern(self):
        x = tern.arange(6).reshape(2, 3).t()
        y = tern.from_dlpack(x)
        y[0, 0] = 9
        self.assertEqual((y.shape, x[0, 0].item()), (x.shape, 9))
        capsule = x.__dlpack__()
        self.assertEqual(tern.from_dlpack(capsule).tolist(), x.tolist())
        with self.assertRaisesRegex(TypeError, "nobody has used"):
            tern.from_dlpack(capsule)
        x.__dlpack__()  # one that nobody takes
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        with self.assertRaisesRegex(RuntimeError, "detach"):
            tern.ones(1, requires_grad=True).__dlpack__()
        with self.assertRaises(TypeError):
            tern.from_dlpack(3)

    def test_with_pytorch(self):
        for name in ("uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
            with self.subTest(dtype=name):
                ours = tern.from_dlpack(torch.arange(6).to(getattr(torch, name)).reshape(2, 3).t())
                self.assertEqual(str(ours.dtype), "torch." + name)
                self.assertEqual((ours.shape, ours.stride()), ((3, 2), (1, 3)))
                theirs = dlpack.from_dlpack(ours)
                self.assertEqual((str(theirs.dtype), theirs.shape), ("torch." + name, (3, 2)))
                self.assertEqual(theirs.data_ptr(), ours.data_ptr())
        x = tern.zeros(3)
        theirs = dlpack.from_dlpack(x)
        theirs[1] = 4
        self.assertEqual(x.tolist(), [0, 4, 0])
        del x
        gc.collect()
        self.assertEqual(theirs.tolist(), [0, 4, 0])
        theirs = torch.ones(2)
        ours = tern.from_dlpack(theirs)
        del theirs
        gc.collect()
        self.assertEqual(ours.tolist(), [1, 1])
        self.assertEqual(tern.from_dlpack(torch.zeros(0, 3)).shape, (0, 3))

    def test_with_numpy(self):
        if hasattr(np, "from_dlpack"):
            self.assertEqual(np.from_dlpack(tern.arange(3)).tolist(), [0, 1, 2])
            self.assertEqual(tern.from_dlpack(np.arange(3)).tolist(), [0, 1, 2])


class Devices(unittest.TestCase):
    def test_memory_of_gpus_is_not_shared(self):
        tern.cuda.simulate_gpus(2)
        x = tern.ones(2, device="cuda:1")
        with self.assertRaisesRegex(TypeError, "can't convert cuda:1 device type tensor to numpy"):
            x.numpy()
        self.assertEqual(x.numpy(force=True).tolist(), [1, 1])
        self.assertEqual(x.__dlpack_device__(), (2, 1))
        with self.assertRaisesRegex(tern.DeviceError, "cuda:1"):
            x.__dlpack__()


if __name__ == "__main__":
    unittest.main()

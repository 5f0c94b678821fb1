"""Functions of torch that are a few calls of others, compared with PyTorch's; settings; the memory below tensors."""

import unittest
import warnings

import torch as pytorch

import tern

# With x [2, 3], v [4] and m [3, 3] of floats, k [4] of integers.
SAME = [
    "torch.real(x)", "torch.conj(x)", "x.conj()", "torch.resolve_neg(x)", "torch.isreal(x)", "torch.is_conj(x)", "torch.angle(x)", "torch.adjoint(x)", "x.adjoint()",
    "torch.ldexp(x, torch.tensor([1, 2, 3]))", "torch.fill(x, 3)", "torch.fill(k, torch.tensor(2))", "torch.constant_pad_nd(x, [1, 2], 5.0)",
    "torch.split_with_sizes(v, [1, 3])", "v.split_with_sizes([2, 2])", "torch.addbmm(m, m.expand(2, 3, 3), m.expand(2, 3, 3), beta=0.5, alpha=2)",
    "torch.range(1, 4)", "torch.range(0, 1, 0.25)", "torch.vander(v)", "torch.vander(v, 3, increasing=True)", "torch.vander(k)",
    "torch.unravel_index(k, (2, 4))", "torch.gradient(v)", "torch.gradient(v, spacing=2.0)", "torch.gradient(x, dim=1)", "torch.gradient(x, spacing=[1.0, 0.5])",
    "torch.gradient(v, spacing=(torch.tensor([0.0, 1.0, 3.0, 3.5]),))", "torch.gradient(v, edge_order=2)",
    "torch.gradient(v, spacing=(torch.tensor([0.0, 1.0, 3.0, 3.5]),), edge_order=2)", "torch.gradient(m)",
    "torch.empty_strided((2, 3), (1, 2)).stride()", "torch.frobenius_norm(x, [0, 1])", "torch.nuclear_norm(x)", "torch.norm_except_dim(x, 2, 0)",
    "torch.norm_except_dim(x, 2, 1)", "torch.embedding_renorm_(x.clone(), torch.tensor([1]), 0.5, 2.0)", "torch.nn.init.dirac_(torch.ones(4, 2, 3, 3), 2)",
    "torch.nn.init.dirac_(torch.ones(2, 3, 5))", "torch.asarray([1.0, 2.0])", "torch.asarray(k).data_ptr() == k.data_ptr()", "torch.asarray(k, copy=True).data_ptr() == k.data_ptr()",
    "torch.asarray(k, dtype=torch.float64)", "torch.mul(3.0, x)", "torch.add(2, x)", "torch.sub(1, x)", "torch.div(1.0, x)", "torch.mul(2, k)", "torch.add(1.5, k)",
    "torch.can_cast(torch.int64, torch.float32)", "torch.can_cast(torch.float64, torch.int64)", "torch.can_cast(torch.float64, torch.float16)",
    "torch.can_cast(torch.uint8, torch.bool)", "torch.can_cast(torch.bool, torch.uint8)", "torch.typename(x.cpu())", "torch.typename(k.cpu())", "torch.typename(3)",
    "torch.are_deterministic_algorithms_enabled()", "torch.get_deterministic_debug_mode()", "x.storage().tolist()", "x[1].storage().size()", "x[1].storage()[0]",
    "len(k.storage()), k.storage().nbytes(), k.untyped_storage().nbytes(), k.storage().dtype", "x.storage().data_ptr() == x[1].storage().data_ptr()",
    "x.untyped_storage().data_ptr() == x.data_ptr()", "torch.is_storage(x.storage()), torch.is_storage(x)",
    "x.view(torch.int32)", "x.view(torch.uint8)", "x.view(torch.uint8)[:, 4:].view(torch.float32)", "k.view(torch.float64)", "torch.tensor(1.0).view(torch.int32)",
    "x.view(torch.int16).view(torch.float32)", "torch.nn.functional.upsample(x[None], scale_factor=2)", "torch.nn.functional.upsample_bilinear(x[None, None], scale_factor=2)",
]


def plain(value):
    """Tensors of both libraries as lists, with dtype and shape."""
    if isinstance(value, (tern.Tensor, pytorch.Tensor)):
        return str(value.dtype), tuple(value.shape), value.cpu().double().numpy().round(5).tolist()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, (tern.dtype, pytorch.dtype)) else value


class Functions(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)

    def test_as_pytorch(self):
        def run(package, text):
            x = package.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
            place = {"torch": package, "x": x, "v": package.tensor([1.0, 4.0, 2.0, 8.0]), "k": package.tensor([1, 5, 2, 7]), "m": x.t() @ x}
            return plain(eval(text, place))

        for text in SAME:
            with self.subTest(text):
                ours = run(tern, text)
                try:
                    theirs = run(pytorch, text)
                except AttributeError:
                    continue  # of a newer PyTorch
                self.assertEqual(ours, theirs)

    def test_of_newer_versions(self):
        self.assertEqual([x.tolist() for x in tern.unravel_index(tern.tensor([1, 5]), (2, 4))], [[0, 1], [1, 1]])

    def test_errors(self):
        v = tern.ones(3)
        for call, kind, words in ((lambda: tern.asarray([1.0], copy=False), ValueError, "can not have the memory"),
                                  (lambda: tern.vander(tern.ones(2, 2)), tern.ShapeError, "one dimension"),
                                  (lambda: tern.gradient(v, edge_order=3), ValueError, "edge_order"),
                                  (lambda: tern.gradient(v[:1]), ValueError, "at least 2 points"),
                                  (lambda: tern.gradient(v, spacing=[1.0, 2.0]), ValueError, "2 spacings"),
                                  (lambda: tern.nn.init.dirac_(v), ValueError, "3, 4, or 5"),
                                  (lambda: v.view(tern.float64), tern.ShapeError, "bytes"), (lambda: v.sum().view(tern.uint8), tern.ShapeError, "bytes"),
                                  (lambda: v.storage().resize_(9), NotImplementedError, "keeps its size"),
                                  (lambda: tern.set_default_tensor_type("torch.Tensors"), TypeError, "invalid type"),
                                  (lambda: tern.set_deterministic_debug_mode("loud"), ValueError, "default, warn, error")):
            with self.assertRaisesRegex(kind, words):
                call()

    def test_settings(self):
        self.addCleanup(tern.use_deterministic_algorithms, False)
        tern.set_deterministic_debug_mode("warn")
        self.assertEqual((tern.are_deterministic_algorithms_enabled(), tern.get_deterministic_debug_mode()), (True, 1))
        tern.use_deterministic_algorithms(True)
        self.assertEqual(tern.get_deterministic_debug_mode(), 2)
        self.addCleanup(tern.set_default_dtype, tern.float32)
        tern.set_default_tensor_type(tern.DoubleTensor)
        self.assertEqual(tern.ones(1).dtype, tern.float64)
        tern.set_default_tensor_type("torch.FloatTensor")
        self.assertEqual(tern.ones(1).dtype, tern.float32)
        self.assertFalse(tern.xpu.is_available() or tern.mps.is_available() or tern.set_flush_denormal(True))

    def test_storage_is_the_tensors_own(self):
        x = tern.tensor([[1.0, 2.0], [3.0, 4.0]])
        points = x[1].storage()
        points[0] = 7.0
        self.assertEqual(x.tolist(), [[7, 2], [3, 4]])
        self.assertEqual(list(points), [7, 2, 3, 4])
        self.assertTrue(points == x.storage() and points != x.clone().storage())
        self.assertEqual(str(points).splitlines()[-1], "[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 4]")
        points.fill_(1)
        self.assertEqual((x.sum().item(), x.untyped_storage().tolist()[:4]), (4, [0, 0, 128, 63]))

    def test_numbers_are_assigned_on_every_device(self):
        if not tern.cuda.is_available():
            self.skipTest("needs a GPU, a simulated one too")
        before = tern.get_default_device()
        self.addCleanup(tern.set_default_device, before)
        for default, own in (("cuda:0", "cpu"), ("cpu", "cuda:0")):
            tern.set_default_device(default)
            x = tern.zeros(3, device=own)
            x[x == 0] = 2
            x[1] = 5.0
            self.assertEqual(x.tolist(), [2, 5, 2])


if __name__ == "__main__":
    unittest.main()

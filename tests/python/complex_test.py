"""Complex numbers and torch.fft in Python: numbers, attributes, arrays, networks that use them beside PyTorch's, files."""

import os
import tempfile
import unittest

import numpy as np
import torch

import tern


def rotary(module, x):
    """Rotary position embeddings as Llama computes them."""
    angles = module.outer(module.arange(x.shape[1]).float(), 1.0 / 100 ** (module.arange(0, 4).float() / 4))
    turns = module.polar(module.ones_like(angles), angles)
    pairs = module.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return module.view_as_real(pairs * turns.view(1, x.shape[1], 1, 4)).flatten(3)


class Spectral(tern.nn.Module):
    """The layer of Fourier neural operators."""
    module = tern

    def __init__(self, weight):
        super().__init__()
        self.weight = self.module.nn.Parameter(weight)

    def forward(self, x):
        spectrum = self.module.fft.rfft2(x)
        out = self.module.zeros(x.shape[0], self.weight.shape[1], x.shape[2], x.shape[3] // 2 + 1, dtype=self.module.cfloat)
        out[:, :, :3, :3] = self.module.einsum("bixy,ioxy->boxy", spectrum[:, :, :3, :3], self.weight)
        return self.module.fft.irfft2(out, s=x.shape[-2:])


class SpectralOfTorch(torch.nn.Module):
    module = torch
    __init__ = torch.nn.Module.__init__
    forward = Spectral.forward


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.complex64, generator=torch.Generator().manual_seed(seed))


def given(x):
    return tern.tensor(x.numpy())


def close(actual, expected, tolerance=2e-5):
    return np.allclose(actual.detach().cpu().numpy(), expected.detach().numpy(), tolerance, tolerance)


class Numbers(unittest.TestCase):
    def test_of_python(self):
        x = tern.tensor([1 + 2j, 3.0])
        self.assertEqual((x.dtype, x.tolist(), x[0].item(), complex(x[1])), (tern.complex64, [1 + 2j, 3 + 0j], 1 + 2j, 3 + 0j))
        self.assertEqual((x * 2j).tolist(), [-4 + 2j, 6j])
        self.assertEqual((1j * tern.ones(2)).dtype, tern.complex64)
        self.assertEqual((tern.ones(2, dtype=tern.float64) + 1j).dtype, tern.complex128)
        self.assertEqual(tern.full((1,), 1j).tolist(), [1j])
        self.assertEqual(tern.tensor(np.complex64(1 + 1j)).item(), 1 + 1j)
        self.assertEqual(str(x), "tensor([1.+2.j, 3.+0.j])" if x.is_cpu else str(x))
        with self.assertRaises(ValueError):
            tern.ones(2).clamp(min=1j)
        with self.assertRaises(tern.DTypeError):
            x.max()
        with self.assertRaises(TypeError):
            range(3)[x[0]]

    def test_attributes(self):
        x = tern.tensor([[1 + 2j, 3 - 1j]])
        self.assertEqual((x.real.tolist(), x.imag.tolist()), ([[1, 3]], [[2, -1]]))
        x.real = tern.zeros(1, 2)
        x.imag[0, 1] = 5
        self.assertEqual(x.tolist(), [[2j, 5j]])
        self.assertEqual((x.mH.tolist(), x.H.tolist(), x.conj().tolist()), ([[-2j], [-5j]], [[-2j], [-5j]], [[-2j, -5j]]))
        self.assertTrue(x.is_complex() and not x.is_floating_point() and not x.is_conj())
        with self.assertRaises(tern.DTypeError):
            tern.ones(2).imag

    def test_arrays(self):
        for dtype in (np.complex64, np.complex128):
            a = np.array([1 + 2j, 3], dtype)
            x = tern.from_numpy(a)
            if x.is_cpu:
                x[0] = 5j
                self.assertEqual(a[0], 5j)
            self.assertEqual(x.cpu().numpy().dtype, dtype)

    def test_errors_of_backward(self):
        x = tern.tensor([1 + 2j], requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "real scalar outputs"):
            (x * x).sum().backward()
        (x * x).sum().backward(tern.tensor(1 + 0j))
        self.assertEqual(x.grad.tolist(), [2 - 4j])


class Networks(unittest.TestCase):
    def test_rotary_embeddings(self):
        x = torch.randn(2, 5, 3, 8, generator=torch.Generator().manual_seed(1))
        self.assertTrue(close(rotary(tern, given(x)), rotary(torch, x)))

    def test_spectral_layers_learn_as_in_torch(self):
        for name, options in (("Adam", {"lr": 0.01}), ("SGD", {"lr": 0.01, "momentum": 0.9}), ("AdamW", {"lr": 0.01}), ("RMSprop", {"lr": 0.01}),
                              ("Adagrad", {"lr": 0.01})):
            with self.subTest(optimizer=name):
                weight, x = numbers(2, 4, 3, 3), torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(2))
                theirs = SpectralOfTorch()
                theirs.weight = torch.nn.Parameter(weight.clone())
                ours = Spectral(given(weight))
                losses = []
                for module, net, data in ((tern, ours, given(x)), (torch, theirs, x)):
                    optimizer = getattr(module.optim, name)(net.parameters(), **options)
                    for _ in range(5):
                        optimizer.zero_grad()
                        loss = net(data).pow(2).mean()
                        loss.backward()
                        optimizer.step()
                    losses.append(loss.item())
                self.assertAlmostEqual(losses[0], losses[1], places=4)
                self.assertTrue(close(ours.weight, theirs.weight, 1e-3))
                self.assertEqual(ours.weight.grad.dtype, tern.complex64)

    def test_clipping(self):
        weight = numbers(4)
        p, q = tern.nn.Parameter(given(weight)), torch.nn.Parameter(weight.clone())
        p.grad, q.grad = given(weight), weight.clone()
        self.assertAlmostEqual(tern.nn.utils.clip_grad_norm_([p], 0.5).item(), torch.nn.utils.clip_grad_norm_([q], 0.5).item(), places=4)
        self.assertTrue(close(p.grad, q.grad))

    def test_files(self):
        net = Spectral(given(numbers(2, 4, 3, 3)))
        optimizer = tern.optim.Adam(net.parameters(), lr=0.01)
        net(tern.randn(1, 2, 8, 8)).sum().backward()
        optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.pt")
            tern.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
            theirs = torch.load(path, map_location="cpu")
            self.assertTrue(close(net.weight, theirs["net"]["weight"]))
            self.assertEqual(theirs["optimizer"]["state"][0]["exp_avg"].dtype, torch.complex64)
            again = Spectral(given(numbers(2, 4, 3, 3, seed=9)))
            again.load_state_dict(tern.load(path)["net"])
            self.assertEqual(again.weight.tolist(), net.weight.tolist())


class Transforms(unittest.TestCase):
    def test_convolution_by_spectra(self):
        x, kernel = tern.randn(50), tern.randn(7)
        product = tern.fft.irfft(tern.fft.rfft(x, 56) * tern.fft.rfft(kernel, 56), 56)
        direct = tern.nn.functional.conv1d(x.view(1, 1, -1), kernel.flip(0).view(1, 1, -1), padding=6).flatten()
        self.assertTrue(tern.allclose(product, direct, atol=1e-4))

    def test_signal_and_back(self):
        x = tern.randn(2, 400)
        spectra = x.stft(64, hop_length=16, window=tern.hann_window(64), return_complex=True)
        self.assertEqual(tuple(spectra.shape), (2, 33, 26))
        self.assertTrue(tern.allclose(spectra.istft(64, hop_length=16, window=tern.hann_window(64), length=400), x, atol=1e-5))

    def test_names_and_errors(self):
        self.assertLessEqual({name for name in dir(torch.fft) if "fft" in name and not name.startswith("_")}, set(dir(tern.fft)))
        with self.assertRaises(tern.DTypeError):
            tern.fft.rfft(tern.ones(3, dtype=tern.cfloat))
        with self.assertRaisesRegex(ValueError, "normalization"):
            tern.fft.fft(tern.ones(3), norm="none")
        with self.assertRaises(IndexError):
            tern.fft.fft(tern.ones(3), dim=1)

    def test_autocast(self):
        with tern.autocast(tern.get_default_device().type, dtype=tern.bfloat16):
            self.assertEqual(tern.fft.rfft(tern.ones(4, 4, dtype=tern.bfloat16)).dtype, tern.complex64)


if __name__ == "__main__":
    unittest.main()

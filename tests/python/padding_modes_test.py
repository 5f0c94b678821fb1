"""Convolutions with other paddings than zeros: values, gradients, texts, errors, and whole models in files, beside PyTorch's."""

import io
import itertools
import unittest

import torch as pytorch

import tern

OPTIONS = [{"padding": 2}, {"padding": "same"}, {"padding": "same", "dilation": 2}, {"padding": "valid"}, {"padding": 1, "stride": 2,
    "groups": 2, "bias": False}]


class PaddingModes(unittest.TestCase):
    def pair(self, dims, mode, options):
        name = f"Conv{dims}d"
        ours, theirs = (getattr(library.nn, name)(2, 4, 3, padding_mode=mode, **options) for library in (tern, pytorch))
        theirs.load_state_dict({key: pytorch.tensor(value.tolist()) for key, value in ours.state_dict().items()})
        return ours, theirs

    def test_values_and_gradients(self):
        for dims, mode, options in itertools.product((1, 2, 3), ("zeros", "reflect", "replicate", "circular"), OPTIONS):
            with self.subTest(dims=dims, mode=mode, **options):
                ours, theirs = self.pair(dims, mode, options)
                self.assertEqual((repr(ours), ours.padding_mode), (repr(theirs), mode))
                numbers = pytorch.randn(2, 2, *(7, 6, 5)[:dims])
                results = []
                for library, layer in ((tern, ours), (pytorch, theirs)):
                    x = library.tensor(numbers.tolist()).requires_grad_()
                    y = layer(x)
                    y.square().sum().backward()
                    results.append([pytorch.tensor(t.tolist()) for t in (y, x.grad, layer.weight.grad)])
                for a, b in zip(*results):
                    pytorch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)

    def test_files(self):
        ours, theirs = self.pair(2, "circular", {"padding": 1})
        numbers = pytorch.randn(1, 2, 5, 5)
        expected = theirs(numbers)
        for writer, layer, reader in ((pytorch, theirs, tern), (tern, ours, pytorch), (tern, ours, tern)):
            file = io.BytesIO()
            writer.save(layer, file)
            file.seek(0)
            place = {"weights_only": False, "map_location": tern.get_default_device()} if reader is tern else {"map_location": "cpu"}
            read = reader.load(file, **place)
            self.assertEqual(read.padding_mode, "circular")
            pytorch.testing.assert_close(pytorch.tensor(read(reader.tensor(numbers.tolist())).tolist()), expected, rtol=1e-4, atol=1e-5)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "padding_mode must be one of .* but got padding_mode='mirror'"):
            tern.nn.Conv2d(1, 1, 3, padding_mode="mirror")
        with self.assertRaisesRegex(RuntimeError, "(?i)padding size"):
            tern.nn.Conv1d(1, 1, 3, padding=4, padding_mode="reflect")(tern.ones(1, 1, 3))


if __name__ == "__main__":
    unittest.main()

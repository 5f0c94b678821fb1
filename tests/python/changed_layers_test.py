"""Settings of layers that are changed after these were made: as if they had been made so, and written as PyTorch writes them."""

import pickle
import re
import unittest

import torch as pytorch

import tern
from tern import nn

# A layer, what is changed, the layer that has been made so, and the shape of its input.
ROWS = [
    ("BatchNorm2d(3)", {"eps": 0.5, "momentum": 0.3}, "BatchNorm2d(3, eps=0.5, momentum=0.3)", (2, 3, 4, 4)),
    ("BatchNorm1d(3)", {"momentum": None}, "BatchNorm1d(3, momentum=None)", (4, 3)),
    ("InstanceNorm2d(3)", {"eps": 0.5}, "InstanceNorm2d(3, eps=0.5)", (2, 3, 4, 4)),
    ("LayerNorm(4)", {"eps": 0.5}, "LayerNorm(4, eps=0.5)", (2, 4)), ("GroupNorm(1, 3)", {"eps": 0.5}, "GroupNorm(1, 3, eps=0.5)", (2, 3, 4)),
    ("Conv2d(2, 3, 3)", {"stride": (2, 1), "padding": (1, 0)}, "Conv2d(2, 3, 3, stride=(2, 1), padding=(1, 0))", (1, 2, 9, 9)),
    ("Conv2d(2, 3, 3)", {"padding": "same", "dilation": (2, 2)}, "Conv2d(2, 3, 3, padding='same', dilation=2)", (1, 2, 9, 9)),
    ("Conv1d(2, 3, 3)", {"stride": (2,)}, "Conv1d(2, 3, 3, stride=2)", (1, 2, 9)),
    ("ConvTranspose2d(2, 3, 3, stride=2)", {"output_padding": (1, 1), "padding": (1, 1)}, "ConvTranspose2d(2, 3, 3, 2, 1, 1)", (1, 2, 5, 5)),
    ("MaxPool2d(2)", {"kernel_size": 3, "stride": 1, "padding": 1}, "MaxPool2d(3, 1, 1)", (1, 2, 9, 9)),
    ("MaxPool2d(2)", {"stride": (1, 2), "ceil_mode": True}, "MaxPool2d(2, (1, 2), ceil_mode=True)", (1, 2, 9, 9)),
    ("AvgPool2d(2)", {"kernel_size": (3, 3), "stride": (2, 2)}, "AvgPool2d((3, 3), (2, 2))", (1, 2, 9, 9)),
    ("AvgPool2d(3, 2)", {"count_include_pad": False, "padding": 1}, "AvgPool2d(3, 2, 1, count_include_pad=False)", (1, 2, 9, 9)),
    ("LPPool2d(2, 3)", {"stride": (1, 1)}, "LPPool2d(2, 3, (1, 1))", (1, 2, 9, 9)),
    ("AdaptiveAvgPool2d(1)", {"output_size": (2, 3)}, "AdaptiveAvgPool2d((2, 3))", (1, 2, 9, 9)),
    ("AdaptiveMaxPool1d(1)", {"output_size": 4}, "AdaptiveMaxPool1d(4)", (1, 2, 9)),
    ("Upsample(scale_factor=2)", {"mode": "bilinear", "align_corners": True}, "Upsample(scale_factor=2, mode='bilinear', align_corners=True)", (1, 2, 4, 4)),
    ("Upsample(scale_factor=2.0)", {"scale_factor": 3.0}, "Upsample(scale_factor=3.0)", (1, 2, 4, 4)),
    ("LSTM(4, 3, batch_first=True)", {"batch_first": False}, "LSTM(4, 3, batch_first=False)", (2, 5, 4)),
    ("LeakyReLU()", {"negative_slope": 0.5}, "LeakyReLU(0.5)", (2, 3)), ("Softmax(0)", {"dim": 1}, "Softmax(1)", (2, 3)),
    ("Dropout(0.5)", {"p": 0.0}, "Dropout(0.0)", (2, 3)), ("Flatten()", {"start_dim": 0}, "Flatten(0)", (2, 3)),
]
# Of losses, between two tensors.
LOSSES = [
    ("MSELoss()", {"reduction": "sum"}, "MSELoss(reduction='sum')"), ("BCEWithLogitsLoss()", {"reduction": "none"}, "BCEWithLogitsLoss(reduction='none')"),
    ("SmoothL1Loss()", {"beta": 0.1, "reduction": "sum"}, "SmoothL1Loss(reduction='sum', beta=0.1)"), ("HuberLoss()", {"delta": 0.2}, "HuberLoss(delta=0.2)"),
    ("CrossEntropyLoss()", {"label_smoothing": 0.3, "reduction": "sum"}, "CrossEntropyLoss(reduction='sum', label_smoothing=0.3)"),
]
# What stands in a layer and its text as it was given: numbers, or tuples.
GIVEN = [
    ("MaxPool2d((3, 3), (2, 2))", "kernel_size stride padding"), ("MaxPool2d(3, 2)", "kernel_size stride padding"), ("MaxPool2d((2, 2))", "kernel_size stride"),
    ("AvgPool2d((2, 2))", "kernel_size stride"), ("AvgPool3d((2, 2, 2))", "kernel_size stride"), ("AdaptiveAvgPool2d((1, 1))", "output_size"),
    ("AdaptiveAvgPool2d(1)", "output_size"), ("AdaptiveAvgPool2d((None, 7))", "output_size"), ("AdaptiveMaxPool3d((2, 2, 2))", "output_size"),
    ("LPPool2d(2, (3, 3))", "kernel_size"), ("Unfold((2, 2), padding=(1, 1))", "kernel_size padding"), ("Unfold(2)", "kernel_size stride"),
    ("Conv2d(1, 1, 3, padding=1)", "kernel_size stride padding dilation"), ("Conv2d(1, 1, (3, 1))", "kernel_size padding"),
]


def made(package, text):
    return eval(f"nn.{text}", {"nn": package.nn})


def changed(package, text, changes):
    layer = made(package, text)
    for name, value in changes.items():
        setattr(layer, name, value)
    return layer


def text_of(layer):
    """As all versions of PyTorch write it."""
    return re.sub(r", bias=(True|False)|'", "", str(layer))


def first(result):
    return result[0] if isinstance(result, tuple) else result


class Changes(unittest.TestCase):
    def test_layers(self):
        for text, changes, wanted, shape in ROWS:
            with self.subTest(text, changes=changes):
                layer, fresh, theirs = changed(tern, text, changes), made(tern, wanted), changed(pytorch, text, changes)
                fresh.load_state_dict(layer.state_dict())
                x = tern.rand(shape)
                for _ in range(2):
                    self.assertTrue(tern.equal(first(layer(x)), first(fresh(x))))
                self.assertEqual(text_of(layer), text_of(theirs))
                for name in changes:
                    self.assertEqual(getattr(layer, name), getattr(theirs, name))
                self.assertEqual(str(pickle.loads(pickle.dumps(layer))), str(layer))

    def test_losses(self):
        x, y = tern.rand(3, 4), tern.rand(3, 4)
        for text, changes, wanted in LOSSES:
            with self.subTest(text):
                self.assertTrue(tern.equal(changed(tern, text, changes)(x, y), made(tern, wanted)(x, y)))

    def test_what_was_given(self):
        for text, names in GIVEN:
            with self.subTest(text):
                ours, theirs = made(tern, text), made(pytorch, text)
                self.assertEqual(text_of(ours), text_of(theirs))
                for name in names.split():
                    self.assertEqual(getattr(ours, name), getattr(theirs, name), name)

    def test_what_follows_from_tensors(self):
        layer = nn.Linear(3, 2)
        layer.weight = nn.Parameter(tern.ones(2, 5))
        layer.in_features = 5
        self.assertEqual((layer.in_features, layer(tern.ones(1, 5)).shape), (5, (1, 2)))
        layer = nn.Embedding(4, 2)
        layer.num_embeddings = 9
        self.assertEqual(layer.num_embeddings, 4)

    def test_errors_of_the_next_call(self):
        x = tern.rand(1, 2, 6, 6)
        for text, changes in (("MaxPool2d(2)", {"kernel_size": 0}), ("MaxPool2d(2)", {"padding": 2}), ("MaxPool2d(2)", {"stride": (0, 1)}),
                              ("AvgPool2d(2)", {"kernel_size": (-1, 1)}), ("Conv2d(2, 2, 3)", {"stride": (0, 0)}), ("Conv2d(2, 2, 3)", {"groups": 0}),
                              ("Conv2d(2, 2, 3)", {"groups": 3}), ("Conv2d(2, 2, 3)", {"dilation": (0, 1)}), ("Conv2d(2, 2, 3)", {"padding": (-1, 0)}),
                              ("ConvTranspose2d(2, 2, 3)", {"output_padding": (5, 5)}), ("AdaptiveAvgPool2d(1)", {"output_size": -3}),
                              ("Upsample(scale_factor=2)", {"scale_factor": -1.0}), ("Upsample(scale_factor=2)", {"mode": "loud"}),
                              ("LPPool2d(2, 2)", {"stride": (0, 0)}), ("Unfold(2)", {"stride": (0, 0)})):
            with self.subTest(text, changes=changes), self.assertRaises(tern.Error):
                changed(tern, text, changes)(x)
        for name, value in (("stride", "wide"), ("stride", (1, 2, 3)), ("groups", 1.5), ("padding", None)):
            with self.subTest(name, value=value), self.assertRaises(TypeError):
                changed(tern, "Conv2d(2, 2, 3)", {name: value})
        with self.assertRaises(AttributeError):
            nn.LSTM(2, 3).num_layers = 4

    def test_attributes_before_init(self):
        class Early(nn.Module):
            def __init__(self, width):
                self.width, self.names = width, ["a"]
                super().__init__()
                self.layer = nn.Linear(self.width, 1)

        net = Early(3)
        self.assertEqual((net.width, net.names, list(net.state_dict())), (3, ["a"], ["layer.weight", "layer.bias"]))

        class TooEarly(nn.Module):
            def __init__(self):
                self.layer = nn.Linear(1, 1)

        with self.assertRaisesRegex(AttributeError, r"super\(\).__init__\(\) must be called in TooEarly"):
            TooEarly()


if __name__ == "__main__":
    unittest.main()

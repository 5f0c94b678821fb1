"""How tensors lie in memory: memory formats, layouts and pinned memory, as programs ask for them."""

import unittest

import tern as torch
from tern import nn

# Of x, which is [2, 3, 4, 5] and row-major.
STRIDES = [
    ("x.contiguous(memory_format=torch.channels_last)", (60, 1, 15, 3)),
    ("x.to(memory_format=torch.channels_last)", (60, 1, 15, 3)),
    ("x.to('cpu', torch.float64, memory_format=torch.channels_last)", (60, 1, 15, 3)),
    ("x.clone(memory_format=torch.channels_last)", (60, 1, 15, 3)),
    ("x.contiguous(memory_format=torch.channels_last).contiguous()", (60, 20, 5, 1)),
    ("x.to(memory_format=torch.preserve_format)", (60, 20, 5, 1)),
    ("x[..., None].to(memory_format=torch.channels_last_3d)", (60, 1, 15, 3, 3)),
    ("torch.empty_like(x, memory_format=torch.channels_last)", (60, 1, 15, 3)),
    ("torch.empty(2, 3, 4, 5, memory_format=torch.channels_last)", (60, 1, 15, 3)),
    ("torch.zeros_like(x, memory_format=torch.preserve_format, layout=torch.strided, pin_memory=False)", (60, 20, 5, 1)),
    ("nn.Conv2d(3, 2, 1).to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))", (40, 20, 5, 1)),
]
ERRORS = [
    ("x[0].to(memory_format=torch.channels_last)", torch.ShapeError, r"4 dimensions, but this one is \[3, 4, 5\]"),
    ("x.contiguous(memory_format=torch.preserve_format)", ValueError, "keeps what is there"),
    ("torch.zeros(2, layout=torch.sparse_coo)", NotImplementedError, "no tensors of the kind torch.sparse_coo"),
    ("torch.zeros(2, memory_layout=1)", TypeError, ""),
]


class MemoryFormats(unittest.TestCase):
    def test_strides(self):
        x = torch.rand(2, 3, 4, 5)
        for text, strides in STRIDES:
            with self.subTest(text):
                y = eval(text)
                self.assertEqual(y.stride(), strides)
                if text.startswith("x.") and "3d" not in text:
                    self.assertTrue(torch.equal(y.float(), x))

    def test_questions(self):
        x = torch.rand(2, 3, 4, 5)
        y = x.to(memory_format=torch.channels_last)
        formats = torch.contiguous_format, torch.channels_last, torch.channels_last_3d
        self.assertEqual([x.is_contiguous(memory_format=one) for one in formats], [True, False, False])
        self.assertEqual([y.is_contiguous(memory_format=one) for one in formats], [False, True, False])
        self.assertIs(y.to(memory_format=torch.channels_last), y)
        self.assertEqual((repr(torch.channels_last), isinstance(torch.channels_last, torch.memory_format)), ("torch.channels_last", True))
        self.assertEqual((x.layout, isinstance(x.layout, torch.layout)), (torch.strided, True))

    def test_errors(self):
        x = torch.rand(2, 3, 4, 5)
        for text, kind, words in ERRORS:
            with self.subTest(text), self.assertRaisesRegex(kind, words):
                eval(text, {"x": x, "torch": torch})


if __name__ == "__main__":
    unittest.main()

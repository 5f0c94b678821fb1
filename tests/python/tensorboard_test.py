"""tern.utils.tensorboard: files are decoded here, as TensorFlow's formats say; histograms beside NumPy's."""

import glob
import os
import struct
import tempfile
import unittest

import numpy as np
import tern
from tern import io
from tern.utils.tensorboard import SummaryWriter


def fields(data):
    """[(number, value)] of a protobuf message: ints, and bytes for all else."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def values_in(folder):
    """[(tag, step, time, {field: value})] of all events in a folder."""
    found = []
    (path,) = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
    with open(path, "rb") as file:
        data = file.read()
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        event, data = dict(fields(data[12:12 + size])), data[16 + size:]
        for _, value in fields(event.get(5, b"")):
            value = dict(fields(value))
            found.append((value.pop(1).decode(), event[2], struct.unpack("<d", event[1])[0], value))
    return found


def doubles(data):
    return np.frombuffer(data, "<f8")


class Writer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_scalars(self):
        with SummaryWriter(self.folder) as writer:
            writer.add_scalar("loss/train", 0.5, 3, walltime=12.5)
            writer.add_scalar("a tag!", tern.tensor(2.0), tern.tensor(4))
            writer.add_scalar("plain", np.float64(1.5))
            writer.add_scalars("both", {"a": 1, "b": 2.0}, 7)
            self.assertEqual(writer.get_logdir(), self.folder)
        found = values_in(self.folder)
        self.assertEqual([(tag, step, struct.unpack("<f", value[2])[0]) for tag, step, _, value in found],
                         [("loss/train", 3, 0.5), ("a_tag_", 4, 2), ("plain", 0, 1.5)])
        self.assertEqual(found[0][2], 12.5)
        self.assertGreater(found[1][2], 1.6e9)
        for name, number in (("a", 1), ("b", 2)):
            ((tag, step, _, value),) = values_in(os.path.join(self.folder, f"both_{name}"))
            self.assertEqual((tag, step, struct.unpack("<f", value[2])[0]), ("both", 7, number))

    def test_histogram(self):
        limits, v = [], 1e-12
        while v < 1e20:
            limits.append(v)
            v *= 1.1
        limits = [-x for x in limits[::-1]] + [0] + limits
        for values in ([0.5], [-3.0, 0.0, 0.25, 0.25, 1e6], np.sin(np.arange(1000.0)), [1, 2, 3], [float("nan"), 2.0, float("inf")]):
            with self.subTest(values=values), tempfile.TemporaryDirectory() as folder:
                with SummaryWriter(folder) as writer:
                    writer.add_histogram("h", tern.tensor(values), 1)
                ((_, _, _, value),) = values_in(folder)
                parts = dict(fields(value[5]))
                low, high, count, total, squares = (struct.unpack("<d", parts[i])[0] for i in range(1, 6))
                given = tern.tensor(values).double().cpu().numpy()  # as float32 has them
                given = given[np.isfinite(given)]
                np.testing.assert_allclose((low, high, count, total, squares),
                                           (given.min(), given.max(), len(given), given.sum(), (given ** 2).sum()), rtol=1e-12, atol=1e-12)
                counts, _ = np.histogram(given, limits)
                first, last = np.nonzero(counts)[0][[0, -1]]
                np.testing.assert_array_equal(doubles(parts[7]), [0, *counts[first:last + 1]])
                np.testing.assert_array_equal(doubles(parts[6]), limits[first:last + 2])

    def test_pictures(self):
        picture = tern.arange(60).reshape(3, 4, 5).to(tern.uint8)
        calls = [
            ("add_image", picture, {}, picture), ("add_image", picture.permute(1, 2, 0), {"dataformats": "HWC"}, picture),
            ("add_image", picture[0], {"dataformats": "HW"}, picture[:1]), ("add_image", picture.float() / 255, {}, picture),
            ("add_image", picture.cpu().numpy(), {}, picture),
            ("add_images", tern.stack([picture, picture + 1]), {}, tern.cat([picture, picture + 1], 2)),
            ("add_images", picture[None].permute(0, 2, 3, 1), {"dataformats": "NHWC"}, picture)]
        with SummaryWriter(self.folder) as writer:
            for name, given, options, _ in calls:
                getattr(writer, name)("p", given, 2, **options)
        for (name, _, options, wanted), (tag, step, _, value) in zip(calls, values_in(self.folder)):
            parts = dict(fields(value[4]))
            self.assertEqual((tag, step, parts[1], parts[2], parts[3]), ("p", 2, *wanted.shape[1:], wanted.shape[0]), (name, options))
            png = tern.frombuffer(bytearray(parts[4]), dtype=tern.uint8)
            self.assertEqual(io.decode_image(png).tolist(), wanted.tolist(), (name, options))

    def test_text(self):
        with SummaryWriter(self.folder) as writer:
            writer.add_text("notes", "**bold** \u00e9", 5)
        ((tag, step, _, value),) = values_in(self.folder)
        self.assertEqual((tag, step), ("notes/text_summary", 5))
        tensor, plugin = dict(fields(value[8])), dict(fields(dict(fields(value[9]))[1]))
        self.assertEqual((tensor[1], tensor[8].decode(), plugin[1]), (7, "**bold** \u00e9", b"text"))

    def test_files(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        writer = SummaryWriter(comment="-run")
        self.assertTrue(writer.log_dir.startswith("runs/") and writer.log_dir.endswith("-run") and os.path.isdir(writer.log_dir))
        writer.add_scalar("x", 1)
        writer.flush()
        self.assertEqual(len(values_in(writer.log_dir)), 1)
        writer.close()
        writer.close()
        writer.add_scalar("x", 1)  # opens another file
        self.assertEqual(len(os.listdir(writer.log_dir)), 2)
        writer.close()

    def test_errors(self):
        writer = SummaryWriter(self.folder)
        for call, error, words in (
                (lambda: writer.add_scalar("x", tern.zeros(2)), Exception, ""),
                (lambda: writer.add_scalar("x", "text"), ValueError, "text"),
                (lambda: writer.add_histogram("x", tern.zeros(0)), ValueError, "none of the 0 values"),
                (lambda: writer.add_histogram("x", [float("nan")]), ValueError, "none of the 1 values is finite"),
                (lambda: writer.add_histogram("x", [1.0], bins="auto"), NotImplementedError, "bins"),
                (lambda: writer.add_image("x", tern.zeros(4, 4)), ValueError, r"'CHW' does not fit a tensor \[4, 4\]"),
                (lambda: writer.add_image("x", tern.zeros(4, 4, 2), dataformats="HWC"), tern.ShapeError, "2, 4, 4"),
                (lambda: writer.add_image("x", tern.zeros(3, 4, 4, dtype=tern.int64)), tern.DTypeError, "int64"),
                (lambda: writer.add_text("x", 3), TypeError, "")):
            with self.assertRaisesRegex(error, words):
                call()
        with self.assertRaises(OSError):
            SummaryWriter("/proc/none")


if __name__ == "__main__":
    unittest.main()

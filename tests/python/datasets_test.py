"""tern.datasets and tern.io: sets read from files that are made here, with transforms of the extension and of Python, in DataLoaders
with and without workers; and reading and writing of pictures."""

import gzip
import pathlib
import struct
import tempfile
import unittest

import numpy as np
import tern
from tern import datasets, io, transforms as T, utils
from tern.utils.data import ConcatDataset, DataLoader, Dataset, Subset, random_split

SETS = [datasets.MNIST, datasets.FashionMNIST, datasets.KMNIST]


def numbers(*shape, modulus=256):
    return (np.arange(np.prod(shape), dtype=np.int64).reshape(shape) * 7 % modulus).astype(np.uint8)


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def native(dataset):
    return DataLoader(dataset)._engine is not None


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write_idx(self, folder, size=6, part="train"):
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        images, labels = numbers(size, 4, 5), numbers(size, modulus=10)
        (self.root / folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (self.root / folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
        return images, labels


class Sets(Files):
    def test_idx(self):
        for kind in SETS:
            images, labels = self.write_idx(f"{kind.__name__}/raw")
            data = kind(self.root, download=True)
            self.assertEqual((len(data), len(data.classes), data.train), (6, 10, True))
            np.testing.assert_array_equal(data.data.numpy(), images)
            self.assertEqual(data.targets.tolist(), labels.tolist())
            picture, label = data[-1]
            np.testing.assert_array_equal(picture.numpy(), images[-1:])
            self.assertEqual((picture.dtype, label, type(label)), (tern.uint8, int(labels[-1]), int))
            self.assertEqual(data.class_to_idx[data.classes[3]], 3)
            with self.assertRaisesRegex(IndexError, "6 is out of range for 6 samples"):
                data[6]
            self.assertEqual(len(list(data)), 6)

    def test_files_that_are_not_there(self):
        for kind, words in [(kind, "t10k-images-idx3-ubyte") for kind in SETS] + [
                (datasets.CIFAR10, "test_batch.bin of cifar-10-binary"), (datasets.CIFAR100, "test.bin of cifar-100-binary")]:
            with self.subTest(kind), self.assertRaisesRegex(tern.DataError, f"downloads nothing: put .*{words}.* into '{self.root}'"):
                kind(self.root, train=False, download=True)
            with self.assertRaisesRegex(tern.DataError, "no file") as caught:
                kind(str(self.root), False)
            self.assertNotIn("downloads", str(caught.exception))
        with self.assertRaisesRegex(OSError, "nowhere"):
            datasets.ImageFolder(self.root / "nowhere")

    def test_cifar(self):
        records = numbers(6, 3073)
        records[:, 0] = [3, 1, 4, 1, 5, 9]
        for part in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"):
            (self.root / f"{part}.bin").write_bytes(records.tobytes())
        data = datasets.CIFAR10(self.root, transform=T.ToTensor())
        self.assertEqual((len(data), data.classes[3], data.targets[:6].tolist()), (30, "cat", [3, 1, 4, 1, 5, 9]))
        np.testing.assert_array_equal(data[1][0].numpy(), records[1, 1:].reshape(3, 32, 32).astype(np.float32) / np.float32(255))
        self.assertEqual(len(datasets.CIFAR10(self.root, train=False)), 6)
        fine = np.concatenate([np.array([[2], [19]] * 3, np.uint8), numbers(6, 3073, modulus=100)], axis=1)
        (self.root / "train.bin").write_bytes(fine.tobytes())
        for coarse, classes, column in ((False, 100, 1), (True, 20, 0)):
            data = datasets.CIFAR100(self.root, coarse=coarse)
            self.assertEqual((len(data.classes), data.targets.tolist()), (classes, fine[:, column].tolist()))

    def test_folder(self):
        for place, name in enumerate(("cat/b.png", "ant/x/a.png", "cat/a.png", "cat/notes.txt")):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            io.write_png(tern.full((3, 4, 5), 10 * place, dtype=tern.uint8, device="cpu"), path)
        data = datasets.ImageFolder(self.root, T.CenterCrop(2))
        self.assertEqual((data.classes, data.class_to_idx, data.targets), (["ant", "cat"], {"ant": 0, "cat": 1}, [0, 1, 1]))
        self.assertEqual([pathlib.Path(path).name for path, _ in data.imgs], ["a.png", "a.png", "b.png"])
        self.assertEqual([(x.shape, x.max().item(), y) for x, y in data], [((3, 2, 2), 10, 0), ((3, 2, 2), 20, 1), ((3, 2, 2), 0, 1)])
        x, y = next(iter(DataLoader(data, batch_size=3, num_workers=2)))
        self.assertEqual((x.shape, y.tolist()), ((3, 3, 2, 2), [0, 1, 1]))
        own = datasets.ImageFolder(self.root, loader=lambda path: pathlib.Path(path).name)
        self.assertEqual((own[1], native(own), native(data)), (("a.png", 1), False, True))

    def test_generated(self):
        data = datasets.Digits(size=12, transform=T.ToTensor())
        self.assertEqual((data.data.shape, data.targets.tolist()[:3], data[4][0].shape, data[4][1]), ((12, 28, 28), [0, 1, 2], (1, 28, 28), 4))
        fake = datasets.FakeData(5, (3, 8, 8), 4, T.ToTensor())
        self.assertTrue(tern.equal(fake[2][0], fake[2][0]) and not tern.equal(fake[2][0], fake[3][0]))
        self.assertEqual(len(list(fake)), 5)


class Transformed(Files):
    def loaded(self, dataset, **options):
        return [[part.tolist() for part in batch] for batch in DataLoader(dataset, batch_size=4, **options)]

    def test_normalised_in_one_pass(self):
        images, _ = self.write_idx("raw")
        for transform in (T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.25,))]),
                          T.Compose([T.Compose([T.ToTensor()]), T.Normalize(0.5, 0.25)]),
                          T.Compose([T.RandomVerticalFlip(0), T.ToTensor(), T.Normalize([0.5], [0.25])])):
            data = datasets.MNIST(self.root, transform=transform)
            wanted = (images[:, None].astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.25)
            self.assertTrue(native(data))
            np.testing.assert_array_equal(next(iter(DataLoader(data, batch_size=6)))[0].numpy(), wanted)
            np.testing.assert_array_equal(data[2][0].numpy(), wanted[2])

    def test_ways_give_the_same(self):
        """By the extension, by Python for each sample, and by the extension's batches for a sampler of Python's."""
        steps = [T.Pad(2), T.CenterCrop(5), T.ToTensor()]
        by_extension = datasets.Digits(size=10, transform=T.Compose(steps))
        in_python = datasets.Digits(size=10, transform=T.Compose([*steps, lambda x: x]))
        self.assertEqual((native(by_extension), native(in_python)), (True, False))
        wanted = self.loaded(by_extension)
        self.assertEqual(wanted[0][1], [0, 1, 2, 3])
        for data in (by_extension, in_python):
            for options in ({}, {"num_workers": 2}, {"sampler": list(range(10))}):
                self.assertEqual(self.loaded(data, **options), wanted)

    def test_random_changes(self):
        data = datasets.Digits(size=8, transform=T.Compose([T.RandomCrop(28, padding=4), T.ToTensor()]))
        tern.manual_seed(1)
        first = [data[3][0] for _ in range(4)]
        self.assertTrue(any(not tern.equal(x, first[0]) for x in first))
        tern.manual_seed(1)
        self.assertTrue(all(tern.equal(x, data[3][0]) for x in first))
        for options in ({}, {"sampler": list(range(8))}):
            runs = [[self.loaded(data, num_workers=workers, seed=5, **options)] for workers in (0, 3)]
            self.assertEqual(*runs)
            loader = DataLoader(data, batch_size=8, seed=5, **options)
            self.assertFalse(tern.equal(next(iter(loader))[0], next(iter(loader))[0]))  # another epoch

    def test_parts_are_read_by_the_extension(self):
        data = datasets.Digits(size=10)
        part, rest = random_split(data, [7, 3])
        joined = ConcatDataset([rest, Subset(data, [1, -1])])
        self.assertTrue(native(part) and native(joined))
        self.assertEqual(sum((batch[1] for batch in self.loaded(joined)), []), [data[i][1] for i in rest.indices] + [1, 9])
        self.assertFalse(native(Subset([1, 2], [0])) or native(ConcatDataset([data, [(data[0][0], 3)]])))

    def test_functions_of_python(self):
        data = datasets.Digits(size=6, target_transform=lambda label: label * 10)
        self.assertEqual((data[3][1], native(data), self.loaded(data)[1][1]), (30, False, [40, 50]))
        self.assertEqual(self.loaded(Subset(data, [1]))[0][1], [10])

        class Own(datasets.Digits):
            def __getitem__(self, index):
                return super().__getitem__(index)[1] + 100

        self.assertEqual([batch.tolist() for batch in DataLoader(Own(size=3), batch_size=3)], [[100, 101, 102]])
        for workers in (0, 2):
            with self.assertRaisesRegex(ZeroDivisionError, "zero"):
                self.loaded(datasets.Digits(size=6, transform=lambda x: 1 // 0), num_workers=workers)
        with self.assertRaisesRegex(ValueError, "sample 0.*RandomCrop"):
            self.loaded(datasets.Digits(size=6, transform=T.RandomCrop(40)))

    def test_a_transform_can_be_changed(self):
        data = datasets.Digits(size=4, transform=T.ToTensor())
        loader = DataLoader(data, batch_size=4)
        self.assertEqual(next(iter(loader))[0].dtype, tern.float32)
        for transform, kind in ((None, tern.uint8), (lambda x: x.long(), tern.int64), (T.ToTensor(), tern.float32)):
            data.transform = transform
            self.assertEqual(next(iter(loader))[0].dtype, kind)
            self.assertIs(data.transform, transform)
        self.assertIn("ToTensor()", repr(data))
        self.assertIsInstance(data, Dataset)


class Pictures(Files):
    def test_files(self):
        picture, path = tern.tensor(numbers(3, 5, 4), device="cpu"), self.root / "x.png"
        io.write_png(picture, path)
        grey = tern.tensor(numbers(1, 5, 4), device="cpu")
        for mode, channels in ((io.ImageReadMode.UNCHANGED, 3), ("RGB", 3), ("gray", 1)):
            self.assertEqual(io.read_image(path, mode).shape, (channels, 5, 4))
        self.assertTrue(tern.equal(io.read_image(str(path)), picture))
        self.assertTrue(tern.equal(io.decode_image(io.read_file(path)), picture))
        self.assertTrue(tern.equal(io.decode_png(io.encode_png(grey)), grey))
        self.assertTrue(tern.equal(io.decode_image(io.encode_png(grey), io.ImageReadMode.RGB), grey.repeat(3, 1, 1)))
        io.write_file(self.root / "y.png", io.encode_png(picture.float() / 255))
        self.assertTrue(tern.equal(io.read_image(self.root / "y.png"), picture))

    def test_errors(self):
        for call, error, words in (
                (lambda: io.read_image(self.root / "none.png"), OSError, "none.png"),
                (lambda: io.read_image("x", "CMYK"), ValueError, "'CMYK'.*UNCHANGED, GRAY, RGB"),
                (lambda: io.decode_image(tern.zeros(4)), TypeError, "uint8 tensor with 1 dimension, got float32"),
                (lambda: io.decode_image(tern.zeros(4, dtype=tern.uint8, device="cpu")), tern.DataError, "decode_image"),
                (lambda: io.encode_png(tern.zeros(2, 3, 3, device="cpu")), tern.ShapeError, "2, 3, 3"),
                (lambda: io.encode_png(tern.zeros(3, 3, dtype=tern.int64, device="cpu")), tern.DTypeError, "int64"),
                (lambda: io.write_png(tern.zeros(1, 3, 3, device="cpu"), self.root / "no/x.png"), OSError, "no/x.png")):
            with self.assertRaisesRegex(error, words):
                call()

    def test_grid(self):
        pictures = tern.arange(5 * 2 * 3).reshape(5, 1, 2, 3).float()
        grid = utils.make_grid(pictures, nrow=3, padding=1, pad_value=-1).cpu().numpy()
        self.assertEqual(grid.shape, (3, 7, 13))
        wanted = np.full((7, 13), -1, np.float32)
        for place in range(5):
            top, left = 1 + place // 3 * 3, 1 + place % 3 * 4
            wanted[top:top + 2, left:left + 3] = pictures[place, 0].cpu().numpy()
        for channel in grid:
            np.testing.assert_array_equal(channel, wanted)
        unit = utils.make_grid([pictures[0], pictures[4]], padding=0, normalize=True)
        self.assertEqual((unit.min().item(), unit.max().item(), unit.shape), (0, 1, (3, 2, 6)))
        self.assertEqual(utils.make_grid(pictures[:1]).shape, (3, 2, 3))
        with self.assertRaisesRegex(TypeError, r"got \[3\]"):
            utils.make_grid(tern.zeros(3))
        utils.save_image(pictures / 30, self.root / "grid.png")
        self.assertEqual(io.read_image(self.root / "grid.png").shape, (3, 6, 27))


if __name__ == "__main__":
    unittest.main()

"""Sets of pictures, with torchvision's names and arguments.

A sample is a picture and the number of its class. Without a transform the picture is a uint8 tensor [channels, height, width]. With
transforms of tern.transforms a DataLoader reads the sets without Python; with functions of Python as `transform` or
`target_transform` it calls them for each sample. Files are read, not downloaded.
"""

from tern import _C
from tern.transforms.compose import extension_steps
from tern.utils.data.dataset import Dataset


def _read_again(kind, args, options, attributes):
    dataset = kind(*args, **options)
    vars(dataset).update(attributes)
    dataset.transform = dataset.transform
    return dataset


def _transformed(dataset, picture, label):
    return (dataset.transform(picture) if dataset.transform else picture,
            dataset.target_transform(label) if dataset.target_transform else label)


class _Pictures:
    """What the sets share: transforms, which may be changed, and samples."""

    def __new__(cls, *args, **options):
        made = super().__new__(cls)
        made._made_with = args, options
        return made

    def __reduce__(self):
        """For pickle and copies: the set is read again, and gets the attributes that this one has."""
        args, options = self._made_with
        return _read_again, (type(self), args, options, dict(vars(self)))

    def __init__(self, transform, target_transform, *made_of):
        super().__init__(*made_of)
        self.target_transform = target_transform
        self.transform = transform

    @property
    def transform(self):
        return self._transform

    @transform.setter
    def transform(self, transform):
        steps = [] if transform is None else extension_steps(transform)
        self._in_python, self._transform = steps is None, transform
        self._set_steps(*_as_options(steps or []))

    def __getitem__(self, index):
        picture, label = self._sample(index, self._transform is not None)
        if self._in_python:
            picture = self._transform(picture)
        return picture, self.target_transform(label) if self.target_transform else label

    loader = None

    @property
    def _gives_the_same(self):
        """Whether the part of the extension gives these samples too: not so for classes with a __getitem__ of their own."""
        return (not self._in_python and self.target_transform is None and self.loader is None
                and type(self).__getitem__.__module__ == __name__)

    @property
    def class_to_idx(self):
        return {name: label for label, name in enumerate(self.classes)}

    def __repr__(self):
        return f"Dataset {type(self).__name__}\n    Number of datapoints: {len(self)}" + (
            f"\n    Root location: {self.root}" if hasattr(self, "root") else "") + (
            f"\n    Transform: {self._transform!r}" if self._transform else "")


def _as_options(steps):
    """Steps as the sets have them, who turn bytes into normalised floats in one pass: (transforms of bytes, whether floats, mean, std)."""
    number = [[float(n) for n in (x if isinstance(x, tuple) else [x])] for x in (steps[-1].mean, steps[-1].std)] \
        if steps and type(steps[-1]) is _C.Normalize else [[], []]
    before = steps[:-1] if number[0] else steps
    if before and type(before[-1]) is _C.ToTensor:
        return before[:-1], True, *number
    return steps, False, [], []


class _FromFiles(_Pictures):
    """Sets in memory of files in the folder `root`."""

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False, *more):
        try:
            super().__init__(transform, target_transform, str(root), train, *more)
        except _C.DataError as error:
            if not download:
                raise
            raise _C.DataError(f"{error}. Tern downloads nothing: put {self._files} into '{root}', or set download=False where they "
                               "are elsewhere") from None
        self.root, self.train = root, train

    @property
    def targets(self):
        return self._labels

    train_labels = test_labels = targets

    @property
    def data(self):
        """The bytes of all pictures."""
        return self._images


class _Idx(_FromFiles):
    _files = ("train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (each may be gzipped, "
              "with .gz)")

    @property
    def data(self):
        """uint8 [size, height, width]."""
        return self._images[:, 0]

    train_data = test_data = data


class MNIST(_Idx, _C._MNIST):
    """Handwritten digits 28x28. `root` holds the four idx files, in itself, in raw/ or in MNIST/raw/."""


class FashionMNIST(_Idx, _C._FashionMNIST):
    """Clothes 28x28, in files as MNIST's, also in FashionMNIST/raw/."""


class KMNIST(_Idx, _C._KMNIST):
    """Characters of old Japanese script 28x28, in files as MNIST's, also in KMNIST/raw/."""


class CIFAR10(_FromFiles, _C._CIFAR10):
    """Colour pictures 32x32 of ten classes. `root` holds the files of the binary version, in itself or in cifar-10-batches-bin/."""
    _files = "data_batch_1.bin to data_batch_5.bin and test_batch.bin of cifar-10-binary.tar.gz"


class CIFAR100(_FromFiles, _C._CIFAR100):
    """The same of a hundred classes, or with `coarse` of twenty, in cifar-100-binary/."""
    _files = "train.bin and test.bin of cifar-100-binary.tar.gz"

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False, *, coarse=False):
        super().__init__(root, train, transform, target_transform, download, coarse)


class Digits(_Pictures, _C._Digits):
    """Pictures [1, 28, 28] of digits in the manner of MNIST, generated: nothing is read. The first ones of a longer set are the same."""

    def __init__(self, train=True, size=None, seed=0, transform=None, target_transform=None):
        super().__init__(transform, target_transform, train, size, seed)
        self.train = train

    targets, data = _FromFiles.targets, _Idx.data


class ImageFolder(_Pictures, _C._ImageFolder):
    """Pictures (.png, .jpg, .jpeg) in root/CLASS/, at any depth; classes in the order of their names. `loader` reads a picture of a
    path, by default as RGB."""

    def __init__(self, root, transform=None, target_transform=None, loader=None):
        self.loader = loader
        super().__init__(transform, target_transform, str(root))
        self.root = root

    def __getitem__(self, index):
        if self.loader is None:
            return super().__getitem__(index)
        path, label = self.samples[index]
        picture = self.loader(path)
        return _transformed(self, picture, label)

    @property
    def imgs(self):
        return self.samples

    @property
    def targets(self):
        return [label for _, label in self.samples]


class FakeData(Dataset):
    """Pictures of random bytes with random labels; each sample is the same in every run."""

    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10, transform=None, target_transform=None, random_offset=0):
        self.size, self.image_size, self.num_classes, self.random_offset = size, tuple(image_size), num_classes, random_offset
        self.transform, self.target_transform = transform, target_transform

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if not 0 <= index < self.size:
            raise IndexError(f"FakeData index out of range: {index} of {self.size}")
        generator = _C.Generator().manual_seed(index + self.random_offset)
        picture = _C.randint(0, 256, self.image_size, generator=generator, dtype=_C.uint8, device="cpu")
        label = _C.randint(0, self.num_classes, (), generator=generator, device="cpu").item()
        return _transformed(self, picture, label)

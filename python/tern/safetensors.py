"""safetensors files, with the names and arguments of safetensors.torch."""

import os

from tern import _C


def save_file(tensors, filename, metadata=None):
    """A dict of tensors, with texts about them."""
    _C._save_safetensors(tensors, os.fspath(filename), _texts(metadata))


def load_file(filename, device="cpu", *, mmap=False):
    return load_file_with_metadata(filename, device, mmap=mmap)[0]


def load_file_with_metadata(filename, device="cpu", *, mmap=False):
    """The dict of tensors, and the dict of texts."""
    os.stat(filename)  # raises what Python raises for a file that is not there
    return _C._load_safetensors(os.fspath(filename), device, mmap)


def save(tensors, metadata=None):
    return _C._safetensors_to_bytes(tensors, _texts(metadata))


def load(data):
    return _C._safetensors_from_bytes(data, "cpu")[0]


def _texts(metadata):
    return {"format": "pt"} if metadata is None else metadata

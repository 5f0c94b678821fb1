"""Models and weights of the hub are not fetched, since Tern opens no connections of its own; weights that are in its folder are loaded."""

import os
import re
from urllib.parse import urlparse

from tern import serialization

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_chosen = []


def get_dir():
    """The folder of the hub: what set_dir() has said, else hub in TORCH_HOME, else in XDG_CACHE_HOME/torch or ~/.cache/torch."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return _chosen[-1] if _chosen else os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME", f"{cache}/torch")), "hub")


def set_dir(d):
    _chosen[:] = [os.path.expanduser(d)]


def load(repo_or_dir, model, *args, **options):
    raise NotImplementedError(f"hub.load: '{model}' of '{repo_or_dir}' is not fetched: download its weights and load() them")


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=True):
    """The file of that name in the folder, where it is."""
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise NotImplementedError(f"hub.load_state_dict_from_url: nothing is downloaded: fetch {url} as {path}, or load() the file")
    return serialization.load(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    raise NotImplementedError(f"hub.download_url_to_file: nothing is downloaded: fetch {url} as {dst}")

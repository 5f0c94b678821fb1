"""Models and weights of the hub are not fetched: Tern opens no connections of its own."""


def load(repo_or_dir, model, *args, **options):
    raise NotImplementedError(f"hub.load: '{model}' of '{repo_or_dir}' is not fetched: download its weights and load() them")


def load_state_dict_from_url(url, *args, **options):
    raise NotImplementedError(f"hub.load_state_dict_from_url: nothing is downloaded: fetch {url} and load() the file")

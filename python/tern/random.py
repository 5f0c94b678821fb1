"""The state of the default generator."""

import contextlib

from tern._C import get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: F401


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, **options):
    """What is drawn in this context leaves the default generator as it was: there is one for all devices."""
    if not enabled:
        yield
        return
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)

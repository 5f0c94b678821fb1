"""What programs ask of torch.compiler: nothing is compiled here, and functions stay as they are."""

from tern.jit import _itself


def is_compiling():
    return False


is_dynamo_compiling = is_exporting = is_compiling


compile = disable = allow_in_graph = assume_constant_result = _itself


def substitute_in_graph(original_fn, **options):
    """A decorator for what stands in a graph for the function; there is no graph."""
    return _itself


def reset():
    """Nothing has been compiled."""


def set_stance(stance="default", **options):
    """Nothing will be."""


def cudagraph_mark_step_begin():
    """Graphs are recorded where a program asks for it alone: tern.capture()."""

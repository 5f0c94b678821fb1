"""Programs that ask for TorchScript run as they are: nothing is compiled. Scripts are read (tern.load
gives their parameters), not written."""

from tern import _C


def script(obj=None, *args, **options):
    """The function, class or model itself."""
    return obj


def trace(func, example_inputs=None, **options):
    """The function or model itself, of which nothing is recorded."""
    return func


trace_module = trace


def _itself(function=None, **options):
    return function if callable(function) else (lambda decorated: decorated)


ignore = unused = export = interface = script_method = _itself
def annotate(the_type, the_value):
    """The value."""
    return the_value


ScriptModule = _C.Module
ScriptFunction = type(_itself)


def is_scripting():
    return False


is_tracing = is_scripting


def save(m, f, **options):
    raise NotImplementedError("jit.save: Tern writes no TorchScript: save(m.state_dict(), path), or save(m, path) for the whole model")


def load(f, map_location=None, **options):
    raise NotImplementedError("jit.load: Tern does not run TorchScript: load(path) gives its parameters as a state dict")

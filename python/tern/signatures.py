"""Signatures of the extension's classes, for inspect.signature(): what pybind11 writes into the documentation of __init__, read back."""

import ast
import inspect

from tern import _C


def _arguments_in(text):
    """The arguments of "__init__(self: Linear, in_features: int, bias: bool = True) -> None", apart."""
    depth, parts = 0, [""]
    for letter in text[text.index("(") + 1:]:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return [part.strip() for part in parts[1:]]  # without self
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return []


def _parameter(text, kind):
    name, _, rest = text.partition(":")
    default = inspect.Parameter.empty
    if " = " in rest:
        value = rest.rpartition(" = ")[2]
        try:
            default = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            default = value
    return inspect.Parameter(name.strip(), kind, default=default)


def _signature(cls):
    kind, parameters = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
    for text in _arguments_in(cls.__init__.__doc__ or "__init__()"):
        if text == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif not text.startswith("*"):
            parameters.append(_parameter(text, kind))
    return inspect.Signature(parameters)


class _Lazy:
    """The attribute __signature__ of one class; classes derived from it have their own __init__."""

    def __init__(self, cls):
        self._cls = cls

    def __get__(self, instance, owner):
        if instance is not None or (owner is not self._cls and owner.__init__ is not self._cls.__init__):
            raise AttributeError("__signature__")
        return _signature(self._cls)


for _value in list(vars(_C).values()):
    if isinstance(_value, type) and issubclass(_value, (_C.Module, _C.Optimizer)):
        _value.__signature__ = _Lazy(_value)

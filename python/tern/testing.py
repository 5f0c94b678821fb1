"""assert_close of torch.testing."""

from tern import _C

# Relative and absolute differences that are let pass, by dtype.
_TOLERANCES = {_C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5), _C.float32: (1.3e-6, 1e-5), _C.float64: (1e-7, 1e-7)}


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):
    """Raises AssertionError unless both have the same structure and numbers that differ by at most atol + rtol * |expected|: tensors,
    numbers, and lists and dicts of them."""
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    _compare(actual, expected, "", rtol, atol, equal_nan, check_device, check_dtype, check_stride, msg)


def _fail(text, msg):
    raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg)


def _compare(actual, expected, place, *options):
    rtol, atol, equal_nan, check_device, check_dtype, check_stride, msg = options
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or set(actual) != set(expected):
            _fail(f"The keys of the mappings{place} do not match", msg)
        for key in expected:
            _compare(actual[key], expected[key], f"{place}[{key!r}]", *options)
        return
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            _fail(f"The lengths of the sequences{place} do not match", msg)
        for number, (a, b) in enumerate(zip(actual, expected)):
            _compare(a, b, f"{place}[{number}]", *options)
        return
    a, b = (x.detach() if isinstance(x, _C.Tensor) else _C.tensor(x) for x in (actual, expected))
    for what, checked in (("shape", True), ("dtype", check_dtype), ("device", check_device)):
        if checked and getattr(a, what) != getattr(b, what):
            _fail(f"The values for attribute '{what}'{place} do not match: {getattr(a, what)} != {getattr(b, what)}.", msg)
    if check_stride and a.stride() != b.stride():
        _fail(f"The values for attribute 'stride()'{place} do not match: {a.stride()} != {b.stride()}.", msg)
    limits = [_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (a, b)]
    relative, absolute = (max(limits) if rtol is None else (rtol, atol))
    a, b = a.to("cpu", _C.float64), b.to("cpu", _C.float64)
    wrong = ~_C.isclose(a, b, relative, absolute, equal_nan)
    if not wrong.any():
        return
    differences = (a - b).abs()
    count = int(wrong.sum())
    _fail(f"Tensor-likes{place} are not close!\n\nMismatched elements: {count} / {a.numel()} ({100 * count / a.numel():.1f}%)\n"
          f"Greatest absolute difference: {differences.max().item()} (up to {absolute} allowed)\n"
          f"Greatest relative difference: {(differences / b.abs()).nan_to_num().max().item()} (up to {relative} allowed)", msg)

"""Functions of functions: derivatives, and loops over examples, which may stand inside each other.

Derivatives are taken backward on the recorded graph; forward-mode ones (jvp, jacfwd, linearize) are two passes backward, the second through
the first. vmap calls the function once for each example and stacks what it gives: right in all cases, not as fast as batched rules.
"""

import functools
import operator
import threading

from tern import _C
from tern.nn.utils import stateless
from tern.utils import _pytree

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
           "stack_module_state", "vjp", "vmap"]


# ---- what derivatives share

class _Depth(threading.local):
    depth = 0
    leaves = ()


_levels = _Depth()


class _Level:
    """While a function runs to be differentiated: recording is on, and levels inside of others know that they are."""

    def __enter__(self):
        self._recording = _C._set_grad_enabled(True)
        self._outermost = _levels.depth == 0
        if self._outermost:
            _levels.leaves = []
        _levels.depth += 1
        self.leaves = []
        return self

    def __exit__(self, *_):
        _levels.depth -= 1
        _C._set_grad_enabled(self._recording)
        if self._outermost:
            _levels.leaves = ()

    def tracked(self, op, x):
        """The tensor as the function is given it: with a history of its own, which goes on outside where there is one."""
        if not isinstance(x, _C.Tensor):
            raise TypeError(f"{op}: derivatives are by tensors, got '{type(x).__name__}'")
        if not x.is_floating_point():
            raise _C.DTypeError(f"{op}: only floating-point tensors have derivatives, the input is {x.dtype}")
        return x.view_as(x) if self._recording and x.requires_grad else self.leaf(x.detach())

    def leaf(self, x):
        x.requires_grad_()
        self.leaves.append(x)
        _levels.leaves.append(x)
        return x

    def goes_on(self, results):
        """Whether derivatives shall be recorded: where something outside that requires a gradient went into the results."""
        if not self._recording:
            return False
        return not self._outermost or _C._depends_on_others(_requiring(results), _levels.leaves)


def _records(goes_on, level, given):
    """The same for a product that is computed when the level is over, perhaps inside of another."""
    if _levels.depth:
        _levels.leaves += level.leaves
    return _C.is_grad_enabled() and (goes_on or _levels.depth > 0 or bool(_requiring(given)))


def _requiring(tensors):
    return [x for x in tensors if isinstance(x, _C.Tensor) and x.requires_grad]


def _let_go(goes_on, tree):
    return tree if goes_on else _pytree.tree_map_only(_C.Tensor, lambda x: x.detach(), tree)


def _gradients(outputs, inputs, cotangents, goes_on):
    """The gradients by the inputs, zeros where there are none."""
    pairs = [(y, v) for y, v in zip(outputs, cotangents) if y.requires_grad]
    found = [None] * len(inputs)
    if pairs and inputs:
        found = _C.grad([y for y, _ in pairs], inputs, [v for _, v in pairs], retain_graph=True, create_graph=goes_on, allow_unused=True)
    return [_C.zeros_like(x.detach()) if g is None else g for x, g in zip(inputs, found)]


def _chosen(op, argnums, args):
    """The places of the arguments that derivatives are by."""
    if isinstance(argnums, tuple):
        if not argnums:
            raise ValueError(f"{op}: argnums must be non-empty")
    elif isinstance(argnums, bool) or not isinstance(argnums, int):
        raise TypeError(f"{op}: argnum must be int or Tuple of ints, got: {type(argnums)}")
    places = []
    for place in argnums if isinstance(argnums, tuple) else (argnums,):
        if isinstance(place, bool) or not isinstance(place, int):
            raise TypeError(f"{op}: argnum must be int or Tuple of ints, got: {type(place)}")
        if not -len(args) <= place < len(args):
            raise _C.IndexError(f"{op}: Got argnum={place}, but only {len(args)} positional inputs")
        places.append(place % len(args))
    if len(set(places)) != len(places):
        raise ValueError(f"{op}: argnums elements must be unique, got: {argnums}")
    return places


class _Chosen:
    """The arguments that derivatives are by, as flat tensors that are tracked, and the arguments with those in their places."""

    def __init__(self, op, level, argnums, args):
        self.op, self._single = op, not isinstance(argnums, tuple)
        self.args = list(args)
        self.inputs, self._specs = [], []
        for place in _chosen(op, argnums, args):
            leaves, spec = _pytree.tree_flatten(args[place])
            tracked = [level.tracked(op, x) for x in leaves]
            self.args[place] = _pytree.tree_unflatten(tracked, spec)
            self.inputs += tracked
            self._specs.append(spec)

    def built(self, flat):
        """One value for each input, as the arguments are built."""
        rest = iter(flat)
        trees = tuple(_pytree.tree_unflatten([next(rest) for _ in range(spec.num_leaves)], spec) for spec in self._specs)
        return trees[0] if self._single else trees


def _aux_of(op, has_aux, result):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{op}: output of the function should be a tuple: (output, aux) if has_aux is True")
    return result


def _outputs_of(op, output):
    """(the tensors, how they are built) of what a function gave."""
    flat, spec = _pytree.tree_flatten(output)
    for y in flat:
        if not isinstance(y, _C.Tensor):
            raise TypeError(f"{op}: the function must return tensors, got '{type(y).__name__}'")
    if not flat:
        raise TypeError(f"{op}: the function must return at least one tensor")
    return flat, spec


def _flat_like(op, what, values, like, spec, tensors):
    """The values as flat tensors, of which there is one of the same shape for each of the tensors, built as they are. `what` names
    one of the values, `like` what they are built like."""
    flat, its_spec = _pytree.tree_flatten(values)
    if its_spec != spec:
        raise ValueError(f"{op}: the {what}s must be built like the {like}: {spec}, got {its_spec}")
    for v, x in zip(flat, tensors):
        if not isinstance(v, _C.Tensor) or v.shape != x.shape:
            given = tuple(v.shape) if isinstance(v, _C.Tensor) else type(v).__name__
            raise _C.ShapeError(f"{op}: a {what} must be a tensor of its {like.removesuffix('s')}'s shape {tuple(x.shape)}, got {given}")
    return flat


def _named(function):
    """For wrappers of it: its name and documentation, not its attributes, which may be a whole module's."""
    return functools.wraps(function, updated=())


# ---- gradients

def grad_and_value(func, argnums=0, has_aux=False):
    """As grad, the function returns (gradients, value), or (gradients, (value, aux))."""
    @_named(func)
    def wrapper(*args, **kwargs):
        with _Level() as level:
            chosen = _Chosen("grad", level, argnums, args)
            value, aux = _aux_of("grad", has_aux, func(*chosen.args, **kwargs))
            if not isinstance(value, _C.Tensor):
                raise TypeError(f"grad: Expected f(*args) to return a tensor, got type {type(value)}")
            if value.dim():
                raise _C.ShapeError(f"grad: Expected f(*args) to return a scalar tensor, got tensor with {value.dim()} dims. "
                                    "Maybe you wanted to use the vjp or jacrev APIs instead?")
            goes_on = level.goes_on([value])
            gradients = chosen.built(_gradients([value], chosen.inputs, [_C.ones_like(value.detach())], goes_on))
        value, aux = _let_go(goes_on, (value, aux))
        return gradients, ((value, aux) if has_aux else value)

    return wrapper


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradients of `func`, which returns one number as a tensor, by the arguments at `argnums`: one, or a tuple
    of them, each a tensor or a tree of tensors. With `has_aux` func returns (value, aux), and the new function (gradients, aux).

    What requires a gradient outside, an argument or what func uses besides, can be differentiated through the gradients.
    """
    both = grad_and_value(func, argnums, has_aux)

    @_named(func)
    def wrapper(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapper


def vjp(func, *primals, has_aux=False):
    """(what func gives, a function of cotangents, built like that, which gives a tuple with the products of them and the Jacobians by each
    of `primals`); with `has_aux` also what func gave as aux."""
    with _Level() as level:
        chosen = _Chosen("vjp", level, tuple(range(len(primals))), primals)
        output, aux = _aux_of("vjp", has_aux, func(*chosen.args))
        outputs, spec = _outputs_of("vjp", output)
        goes_on = level.goes_on(outputs)

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        flat = _flat_like("vjp", "cotangent", cotangents, "output", spec, outputs)
        on = _records(goes_on, level, flat)
        return chosen.built(_gradients(outputs, chosen.inputs, flat, on if create_graph is None else create_graph))

    shown = _let_go(goes_on, output)
    return (shown, vjp_fn, _let_go(goes_on, aux)) if has_aux else (shown, vjp_fn)


# ---- Jacobians

def _one_hot(x, place):
    basis = _C.zeros(x.numel(), dtype=x.dtype, device=x.device)
    basis[place] = 1
    return basis.view(x.shape)


def _check_chunk_size(op, chunk_size):
    if chunk_size is not None and (isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"{op}: chunk_size should be None or greater than 0. (got {chunk_size})")


def _jacobian(op, func, argnums, has_aux, of_output):
    @_named(func)
    def wrapper(*args, **kwargs):
        with _Level() as level:
            chosen = _Chosen(op, level, argnums, args)
            output, aux = _aux_of(op, has_aux, func(*chosen.args, **kwargs))
            outputs, spec = _outputs_of(op, output)
            goes_on = level.goes_on(outputs)
            jacobians = [chosen.built(of_output(level, y, chosen.inputs, goes_on)) for y in outputs]
        jacobian = _pytree.tree_unflatten(jacobians, spec)
        return (jacobian, _let_go(goes_on, aux)) if has_aux else jacobian

    return wrapper


def _by_rows(level, y, inputs, goes_on):
    rows = [_gradients([y], inputs, [_one_hot(y, place)], goes_on) for place in range(y.numel())]
    if not rows:
        return [_C.zeros(y.shape + x.shape, dtype=x.dtype, device=x.device) for x in inputs]
    return [_C.stack(own).reshape(y.shape + x.shape) for own, x in zip(zip(*rows), inputs)]


def _transposed(level, outputs, inputs):
    """(cotangents u, the products of u and the Jacobians), whose derivative by u, times a tangent, is the product with the tangent."""
    u = [level.leaf(_C.zeros_like(y.detach())) if y.is_floating_point() else None for y in outputs]
    learned = [(y, v) for y, v in zip(outputs, u) if v is not None]
    return u, _gradients([y for y, _ in learned], inputs, [v for _, v in learned], True)


def _pushed(u, products, tangents, outputs, goes_on):
    """The products of the Jacobians and the tangents."""
    places = [place for place, v in enumerate(u) if v is not None]
    found = _gradients(products, [u[place] for place in places], tangents, goes_on)
    result = [_C.zeros_like(y.detach()) for y in outputs]
    for place, tangent in zip(places, found):
        result[place] = tangent
    return result


def _by_columns(level, y, inputs, goes_on):
    u, products = _transposed(level, [y], inputs)
    result = []
    for x, product in zip(inputs, products):
        columns = [_pushed(u, [product], [_one_hot(x, place)], [y], goes_on)[0] for place in range(x.numel())]
        result.append(_C.stack(columns, -1).reshape(y.shape + x.shape) if columns
                      else _C.zeros(y.shape + x.shape, dtype=y.dtype, device=y.device))
    return result


def jacrev(func, argnums=0, has_aux=False, *, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobians of `func` by the arguments at `argnums`, each [shape of the output, shape of the argument]: one
    pass backward for each number of the output. `chunk_size` changes nothing: the passes are one after the other."""
    _check_chunk_size("jacrev", chunk_size)
    return _jacobian("jacrev", func, argnums, has_aux, _by_rows)


def jacfwd(func, argnums=0, has_aux=False, *, chunk_size=None, randomness="error"):
    """The same by columns: a pass for each number of the argument, each a derivative of the pass backward."""
    _check_chunk_size("jacfwd", chunk_size)
    return _jacobian("jacfwd", func, argnums, has_aux, _by_columns)


def hessian(func, argnums=0):
    """A function that gives all second derivatives of `func` by the arguments at `argnums`."""
    return jacrev(jacrev(func, argnums), argnums)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(what func gives of the tuple `primals`, the products of the Jacobians and the tuple `tangents`); with `has_aux` also aux. By two
    passes backward, the second through the first. With `strict` a result that does not depend on the primals is an error."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or not primals:
        raise TypeError("jvp: primals and tangents must be non-empty tuples, one value for each argument of the function")
    with _Level() as level:
        chosen = _Chosen("jvp", level, tuple(range(len(primals))), primals)
        flat = _flat_like("jvp", "tangent", tangents, "primals", _pytree.tree_flatten(primals)[1], chosen.inputs)
        output, aux = _aux_of("jvp", has_aux, func(*chosen.args))
        outputs, spec = _outputs_of("jvp", output)
        if strict and len(_requiring(outputs)) < len(outputs):
            raise RuntimeError("jvp: with strict=True all of the function's results must depend on the primals")
        goes_on = level.goes_on(outputs + flat)
        u, products = _transposed(level, outputs, chosen.inputs)
        pushed = _pytree.tree_unflatten(_pushed(u, products, flat, outputs, goes_on), spec)
    output, aux = _let_go(goes_on, (output, aux))
    return (output, pushed, aux) if has_aux else (output, pushed)


def linearize(func, *primals):
    """(what func gives, a function of tangents, one for each of `primals`, which gives their products with the Jacobians): func is called
    once, each product is one pass."""
    with _Level() as level:
        chosen = _Chosen("linearize", level, tuple(range(len(primals))), primals)
        output = func(*chosen.args)
        outputs, spec = _outputs_of("linearize", output)
        goes_on = level.goes_on(outputs)
        u, products = _transposed(level, outputs, chosen.inputs)
    built = _pytree.tree_flatten(primals)[1]

    def jvp_fn(*tangents):
        flat = _flat_like("linearize", "tangent", tangents, "primals", built, chosen.inputs)
        return _pytree.tree_unflatten(_pushed(u, products, flat, outputs, _records(goes_on, level, flat)), spec)

    return _let_go(goes_on, output), jvp_fn


# ---- examples

def _spread(dims, tree, wrong):
    """One dimension for each leaf of the tree; `dims` may stand for whole branches of it."""
    if dims is None or (isinstance(dims, int) and not isinstance(dims, bool)):
        return [dims] * len(_pytree.tree_leaves(tree))
    its, trees = _pytree._parts(dims), _pytree._parts(tree)
    if its is None or trees is None or any(isinstance(dims, kind) != isinstance(tree, kind) for kind in (tuple, dict)):
        raise wrong()
    if isinstance(dims, dict):
        if dims.keys() != tree.keys():
            raise wrong()
        pairs = [(dims[key], branch) for key, branch in tree.items()]
    elif len(its[0]) != len(trees[0]):
        raise wrong()
    else:
        pairs = zip(its[0], trees[0])
    return [dim for each, branch in pairs for dim in _spread(each, branch, wrong)]


def _examples(name, in_dims, args):
    """(leaves, their spec, a dimension or None for each, the number of examples)."""
    start = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)) or isinstance(in_dims, bool):
        raise ValueError(f"{start}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
                         f"got: {type(in_dims)}.")
    if not args:
        raise ValueError(f"{start}: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
                         "inputs. The latter is unsupported.")
    dims = _spread(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, lambda: ValueError(
        f"{start}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
        f"{_pytree.tree_flatten(in_dims)[1]} but inputs has structure {_pytree.tree_flatten(args)[1]}."))
    leaves, spec = _pytree.tree_flatten(args)
    sizes = []
    for number, (dim, x) in enumerate(zip(dims, leaves)):
        if dim is None:
            continue
        if not isinstance(x, _C.Tensor):
            raise ValueError(f"{start}: Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
                             "arguments, please use None as the respective in_dim")
        if not -x.dim() <= dim < x.dim():
            raise ValueError(f"{start}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {x.dim()} so "
                             f"expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}.")
        dims[number] = dim % x.dim()
        sizes.append(x.shape[dim])
    if not sizes:
        raise ValueError(f"{start}: at least one input must have a dimension to map over, all in_dims are None or belong to empty trees")
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
                         "dimension")
    if not sizes[0]:
        raise ValueError("vmap: the mapped dimension has no examples: the function, which is called once for each, would not be called")
    return leaves, spec, dims, sizes[0]


def _joined(name, out_dims, results):
    """The results of all examples, each with a new dimension."""
    spec = results[0][1]
    for flat, its_spec in results:
        for y in flat:
            if not isinstance(y, _C.Tensor):
                raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)}.")
        if its_spec != spec:
            raise ValueError(f"vmap({name}, ...): `{name}` must return the same structure for all examples, got {spec} and {its_spec}")
    tree = _pytree.tree_unflatten(results[0][0], spec)
    dims = _spread(out_dims, tree, lambda: ValueError(
        f"vmap({name}, ..., out_dims={out_dims}): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
        f"{_pytree.tree_flatten(out_dims)[1]} but outputs has structure {spec}."))
    joined = []
    for dim, own in zip(dims, zip(*(flat for flat, _ in results))):
        if dim is not None:
            joined.append(_C.stack(list(own), dim))
            continue
        if any(y is not own[0] and not _C.equal(y, own[0]) for y in own):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None: the results differ between "
                             "examples")
        joined.append(own[0])
    return _pytree.tree_unflatten(joined, spec)


class _Randomness:
    """What random numbers the examples draw."""

    def __init__(self, kind):
        self._kind = kind
        self._before = None if kind == "different" else _C.get_rng_state()

    def before_example(self, number):
        if self._kind == "same" and number:
            _C.set_rng_state(self._before)

    def after_example(self, number, count):
        if self._kind == "error" and number in (0, count - 1) and not _C.equal(self._before, _C.get_rng_state()):
            raise RuntimeError("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                               "randomness flags on vmap or perform the randomness operation out of vmap")


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that calls `func` for each example along the dimensions `in_dims` of its arguments (None: the whole argument), and stacks
    the results along `out_dims`. Dimensions are one for all, or a tree like the arguments, or results, or the upper part of such. With
    randomness="different" each example draws numbers of its own, with "same" all draw the same, else drawing from the default generator is
    an error. Named arguments are given to all as they are.

    A loop: func may look at the numbers of its example, and `chunk_size` changes nothing.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    _check_chunk_size("vmap", chunk_size)
    name = getattr(func, "__name__", repr(func) if isinstance(func, functools.partial) else type(func).__name__)

    @_named(func)
    def wrapper(*args, **kwargs):
        leaves, spec, dims, count = _examples(name, in_dims, args)
        random, results = _Randomness(randomness), []
        for number in range(count):
            random.before_example(number)
            own = [x if dim is None else x.select(dim, number) for x, dim in zip(leaves, dims)]
            results.append(_pytree.tree_flatten(func(*_pytree.tree_unflatten(own, spec), **kwargs)))
            random.after_example(number, count)
        return _joined(name, out_dims, results)

    return wrapper


# ---- modules

def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """As nn.utils.stateless.functional_call, with one dict of tensors, or several whose names differ."""
    given = parameter_and_buffer_dicts
    if isinstance(given, (list, tuple)):
        given = {}
        for one in parameter_and_buffer_dicts:
            if not isinstance(one, dict):
                raise TypeError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
            for name in one:
                if name in given:
                    raise ValueError(f"{name} appeared in multiple dictionaries; behavior of functional call is ambiguous")
            given.update(one)
    elif not isinstance(given, dict):
        raise TypeError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}")
    return stateless.functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def _stacked(name, tensors):
    learned = [x.requires_grad for x in tensors]
    if any(learned) != all(learned):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return _C.stack([x.detach() for x in tensors]).requires_grad_(all(learned))


def stack_module_state(models):
    """(parameters, buffers) of several modules of one class, as dicts from names to tensors with a first dimension for the modules: what
    vmap of functional_call takes. The stacked parameters are new leaves."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    stacked = []
    for tensors_of in (operator.methodcaller("named_parameters"), operator.methodcaller("named_buffers")):
        dicts = [dict(tensors_of(model)) for model in models]
        if any(own.keys() != dicts[0].keys() for own in dicts):
            raise RuntimeError("stack_module_state: Expected all models to have the same names of parameters and buffers.")
        stacked.append({name: _stacked(name, [own[name] for own in dicts]) for name in dicts[0]})
    return tuple(stacked)


def functionalize(func, *, remove="mutations"):
    """The function itself: PyTorch's takes changes in place out of what it traces, here nothing is traced."""
    return func

"""Modules under the names that programs import from PyTorch, where the files here are divided otherwise: torch.nn.modules.batchnorm,
torch.utils.data.dataloader, torch.cuda.amp and so on. Each is a name for things that stand elsewhere."""

import functools
import sys
import types
import typing

import tern
from tern import _C, amp, autograd, cuda, nn, optim, tensor_types, utils
from tern.nn import functional, parallel


class _Kind(type):
    """A class that stands for several, for isinstance() and issubclass()."""

    def __instancecheck__(cls, value):
        return isinstance(value, cls.of)

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.of)


def _kind(name, pattern):
    """Layers that PyTorch derives from one class, here by their names."""
    return _Kind(name, (), {"of": tuple(layer for word, layer in vars(nn).items() if isinstance(layer, type) and pattern(word))})


_made = set()


def alias(name, same):
    """Registers what there is as the module tern.<name> too."""
    parent, _, last = name.rpartition(".")
    place = sys.modules[f"tern.{parent}" if parent else "tern"]
    sys.modules[f"tern.{name}"] = same
    if last not in vars(place) or place in _made:
        setattr(place, last, same)


def module(name, **names):
    """Registers the module tern.<name> with these names."""
    made = types.ModuleType(f"tern.{name}", f"Names of torch.{name}.")
    made.__dict__.update(names)
    alias(name, made)
    _made.add(made)
    return made


def _repeated(count):
    return lambda x: tuple(x) if isinstance(x, (tuple, list)) else (x,) * count


_tuples = {"_single": _repeated(1), "_pair": _repeated(2), "_triple": _repeated(3), "_quadruple": _repeated(4)}
_bases = {
    "_BatchNorm": _C._BatchNorm, "_NormBase": _C._NormBase,
    "_ConvNd": _kind("_ConvNd", lambda word: word.removeprefix("Lazy").startswith("Conv")),
    "_ConvTransposeNd": _kind("_ConvTransposeNd", lambda word: "ConvTranspose" in word),
    "_InstanceNorm": _kind("_InstanceNorm", lambda word: "InstanceNorm" in word),
    "_DropoutNd": _kind("_DropoutNd", lambda word: "Dropout" in word),
    "_Loss": _kind("_Loss", lambda word: word.endswith("Loss")),
    "_MaxPoolNd": _kind("_MaxPoolNd", lambda word: word.startswith("MaxPool")),
    "_AvgPoolNd": _kind("_AvgPoolNd", lambda word: word.startswith("AvgPool")),
}
_all = module("nn.modules", **{word: value for word, value in vars(nn).items() if not word.startswith("_")}, **_bases)
for _name in ("activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm lazy linear loss "
              "module normalization padding pixelshuffle pooling rnn sparse transformer upsampling").split():
    alias(f"nn.modules.{_name}", _all)
module("nn.modules.utils", **_tuples)
module("nn.parallel.data_parallel", DataParallel=parallel.DataParallel)
module("nn.parallel.replicate", replicate=parallel.replicate)
module("nn.parallel.scatter_gather", scatter=parallel.scatter, gather=parallel.gather)
module("nn.parallel.parallel_apply", parallel_apply=parallel.parallel_apply)
module("nn.utils.clip_grad", **{name: getattr(nn.utils, name) for name in ("clip_grad_norm_", "clip_grad_value_")})
module("nn.utils.fusion", **{name: getattr(nn.utils, name) for name in ("fuse_conv_bn_eval", "fuse_linear_bn_eval")})
module("nn.utils.convert_parameters", **{name: getattr(nn.utils, name) for name in ("parameters_to_vector", "vector_to_parameters")})
module("nn.utils.weight_norm", weight_norm=nn.utils.weight_norm)
module("nn.utils.spectral_norm", spectral_norm=nn.utils.spectral_norm)
module("utils.data.dataloader", DataLoader=utils.data.DataLoader, default_collate=utils.data.default_collate,
       get_worker_info=utils.data.get_worker_info)
module("utils.data._utils")
module("utils.data._utils.collate", default_collate=utils.data.default_collate, default_convert=utils.data.default_convert)
module("amp.autocast_mode", autocast=amp.autocast)
module("amp.grad_scaler", GradScaler=amp.GradScaler)
for _name in ("nn.parameter", "nn.parallel.comm", "cuda.amp", *(f"backends.{name}" for name in "cudnn cuda mps mkldnn mkl openmp".split())):
    sys.modules[f"tern.{_name}"] = functools.reduce(getattr, _name.split("."), tern)
module("cuda.amp.grad_scaler", GradScaler=amp.GradScaler)
module("cuda.amp.autocast_mode", autocast=cuda.amp.autocast, custom_fwd=amp.custom_fwd, custom_bwd=amp.custom_bwd)
module("autograd.variable", Variable=autograd.Variable)
alias("autograd.grad_mode", autograd)
for _name in "adadelta adagrad adam adamax adamw asgd lbfgs nadam radam rmsprop rprop sgd".split():
    alias(f"optim.{_name}", optim)
module("jit.annotations", **{name: getattr(typing, name) for name in "Any Dict Final List NamedTuple Optional Tuple Union".split()})
module("version", __version__=tern.__version__, cuda=None, hip=None, git_version=tern.__version__)
alias("functional", functional)
for _name, _type in tensor_types.types_of("cpu").items():
    setattr(tern, _name, _type)
for _name, _type in tensor_types.types_of("cuda").items():
    setattr(cuda, _name, _type)

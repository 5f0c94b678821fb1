"""Tern in the place of PyTorch and torchvision, for programs that are not to be changed and for the packages that they use:

    python -m tern.as_torch train.py --epochs 3        # or -m package, or -c "code"

From then on `import torch` gives Tern, with the version of PyTorch whose names it has. In a program of one's own `import
tern.as_torch`, before anything that imports PyTorch, does the same."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import multiprocessing
import multiprocessing.spawn
import runpy
import sys
import types

import tern

VERSIONS = {"torch": f"2.9.0+tern.{tern.__version__}", "torchvision": f"0.24.0+tern.{tern.__version__}"}
_VISION = {"transforms": "transforms", "models": "models", "datasets": "datasets", "ops": "ops", "utils": "utils.images", "io": "io"}


class _Loader(importlib.abc.Loader):
    """Gives a module that there is already."""

    def __init__(self, module):
        self.module, self.spec = module, getattr(module, "__spec__", None)

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec  # its own, which the import has replaced


class _Distribution(importlib.metadata.Distribution):
    """What importlib.metadata tells of a package."""

    def __init__(self, name):
        self.text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSIONS[name]}\n"

    def read_text(self, filename):
        return self.text if filename == "METADATA" else None

    def locate_file(self, path):
        return path


def _vision():
    """torchvision, whose parts are imported when they are asked for."""
    made = types.ModuleType("torchvision", "torchvision's names, of Tern.")
    made.__path__, made.__version__ = [], VERSIONS["torchvision"]
    made.__getattr__ = lambda name: importlib.import_module(f"torchvision.{name}") if name in _VISION else _lacks(name)
    return made


def _lacks(name):
    raise AttributeError(f"module 'torchvision' has no attribute '{name}'")


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        package, _, rest = fullname.partition(".")
        if package not in VERSIONS:
            return None
        if package == "torch":
            own = f"tern.{rest}" if rest else "tern"
        else:
            first, _, below = rest.partition(".")
            own = ".".join(filter(None, ("tern", _VISION.get(first, first), below)))
        try:
            module = _vision() if fullname == "torchvision" else importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name and own.startswith(error.name):
                return None
            raise
        return importlib.machinery.ModuleSpec(fullname, _Loader(module), is_package=hasattr(module, "__path__"))

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        return [_Distribution(name) for name in VERSIONS if context.name in (None, name)]


def _install_in_processes():
    """The same in processes that multiprocessing starts: they import the program anew."""
    begins = "import importlib.util; importlib.util.find_spec('tern') and __import__('tern.as_torch'); "
    command_line = multiprocessing.spawn.get_command_line

    def with_tern(**settings):
        command = command_line(**settings)
        if "-c" in command:
            at = command.index("-c") + 1
            command[at] = begins + command[at]
        return command

    multiprocessing.spawn.get_command_line = with_tern
    multiprocessing.set_forkserver_preload([__name__, "__main__"])


def install():
    """Lets `import torch` and `import torchvision` give Tern from now on. ImportError where PyTorch itself is imported already."""
    if sys.modules.get("torch", tern) is not tern:
        raise ImportError("as_torch: PyTorch itself is imported already: import tern.as_torch before it")
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        tern.__version__ = VERSIONS["torch"]
        sys.meta_path.insert(0, Finder())
        # Some of these are names for what stands in modules that are no packages, where no finder is asked.
        own = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "tern"}
        sys.modules.update({"torch" + name[len("tern"):]: module for name, module in own.items()})
        _install_in_processes()


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m tern.as_torch program.py [arguments]\n       python -m tern.as_torch -m module [arguments]\n"
              "       python -m tern.as_torch -c code [arguments]\n\nRuns it with Tern in the place of PyTorch and torchvision.")
        return 0 if arguments else 2
    first, *rest = arguments
    if first in ("-m", "-c"):
        if not rest:
            print(f"as_torch: {first} needs {'a module' if first == '-m' else 'code'}", file=sys.stderr)
            return 2
        what, *rest = rest
        sys.argv = [first, *rest]
        sys.path.insert(0, "")
        if first == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
        return 0
    sys.argv = [first, *rest]
    sys.path.insert(0, first.rpartition("/")[0])
    runpy.run_path(first, run_name="__main__")
    return 0


if __name__ == "__main__":
    from tern import as_torch  # installs it, under its own name
    sys.exit(as_torch.main(sys.argv[1:]))
install()

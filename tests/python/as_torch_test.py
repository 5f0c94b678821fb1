"""Programs that import PyTorch, run with Tern in its place."""

import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = """
import sys
import importlib, importlib.metadata, importlib.util
import torch, torchvision
import torch.nn as nn
import torch.utils.data
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR
from torchvision import transforms
from torchvision.models import resnet18
import used
assert torch.__name__ == "tern" and used.torch is torch and torchvision.transforms is transforms
assert importlib.metadata.version("torch") == torch.__version__ and importlib.util.find_spec("torch") is not None
assert importlib.metadata.version("torchvision") == torchvision.__version__
assert nn.__spec__.name == "tern.nn" and torch.nn is nn
assert tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 0)
for absent in "torch.nested", "torchvision.tv_tensors":
    try:
        importlib.import_module(absent)
    except ModuleNotFoundError as error:
        assert error.name == absent, error.name
    else:
        raise AssertionError(absent)
print(sys.argv[1:], __name__, F.relu(torch.tensor([-1.0, 2.0])).tolist())
"""


STARTS = """
import sys
import torch
import torch.multiprocessing as mp


def add_one(x, results):
    results.put(((x + 1).tolist(), torch.__name__, torch.ones(1, dtype=torch.int64).item()))


if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    results = context.Queue()
    process = context.Process(target=add_one, args=(torch.tensor([1.0, 2.0]), results))
    process.start()
    print(*results.get(timeout=60))
    process.join()
"""


class AsTorch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, text in (("program.py", PROGRAM), ("used.py", "import torch\n")):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(text)

    def run_python(self, *arguments):
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=self.folder)

    def test_ways_to_run(self):
        expected = "['a', '-b'] __main__ [0.0, 2.0]\n"
        for how in ([os.path.join(self.folder, "program.py")], ["program.py"], ["-m", "program"], ["-c", PROGRAM]):
            done = self.run_python("-m", "tern.as_torch", *how, "a", "-b")
            self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
        done = self.run_python("-c", "import tern.as_torch\n" + PROGRAM, "a", "-b")
        self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)

    def test_processes_that_the_program_starts(self):
        with open(os.path.join(self.folder, "starts.py"), "w") as file:
            file.write(STARTS)
        for method in "spawn", "forkserver", "fork":
            done = self.run_python("-m", "tern.as_torch", "starts.py", method)
            self.assertEqual((done.returncode, done.stdout), (0, "[2.0, 3.0] tern 1\n"), done.stderr)

    def test_other_ends(self):
        for arguments, code, words in ((["--help"], 0, "usage: python -m tern.as_torch"), ([], 2, "usage"), (["-m"], 2, "needs a module"),
                                       (["-c", "import sys; sys.exit(3)"], 3, ""), (["-c", "1 / 0"], 1, "ZeroDivisionError"),
                                       (["nowhere.py"], 1, "nowhere.py")):
            done = self.run_python("-m", "tern.as_torch", *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stdout + done.stderr)

    def test_pytorch_itself_stays_itself(self):
        done = self.run_python("-c", "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import tern.as_torch")
        self.assertIn("ImportError: as_torch: PyTorch itself is imported already", done.stderr)
        done = self.run_python("-c", "import tern; print(tern.__version__)")
        self.assertNotIn("+tern", done.stdout)


if __name__ == "__main__":
    unittest.main()

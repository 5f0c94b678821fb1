"""State dicts of modules with ways of their own: methods written anew, extra state, hooks; the same classes with PyTorch."""

import collections
import io
import unittest

import torch as pytorch

import tern


def classes(torch):
    nn = torch.nn

    class Renamed(nn.Linear):
        """In files its weight is called w."""

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "w"] = destination.pop(prefix + "weight")

        def _load_from_state_dict(self, state_dict, prefix, *args):
            if prefix + "w" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, *args)

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))
            self.calls = 0

        def get_extra_state(self):
            return {"calls": self.calls}

        def set_extra_state(self, state):
            self.calls = state["calls"]

    class Empty(nn.Module):
        """Saves nothing."""

        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(1, 1)

        def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
            return destination

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = Renamed(2, 2)
            self.body = nn.Sequential(nn.BatchNorm1d(2), Counter())

    return Renamed, Counter, Empty, Net


class StateHooks(unittest.TestCase):
    def test_saved_and_loaded(self):
        for torch in (tern, pytorch):
            *_, Net = classes(torch)
            net, other = Net(), Net()
            net.body[1].calls = 3
            state = net.state_dict()
            self.assertEqual(list(state), ["head.bias", "head.w", "body.0.weight", "body.0.bias", "body.0.running_mean",
                "body.0.running_var",
                                           "body.0.num_batches_tracked", "body.1.scale", "body.1._extra_state"])
            self.assertEqual(state._metadata["body.0"], {"version": 2})
            file = io.BytesIO()
            torch.save(state, file)
            file.seek(0)
            result = other.load_state_dict(torch.load(file))
            self.assertEqual((list(result.missing_keys), list(result.unexpected_keys), other.body[1].calls), ([], [], 3))
            self.assertEqual(other.head.weight.tolist(), net.head.weight.tolist())

    def test_errors(self):
        texts = []
        for torch in (tern, pytorch):
            *_, Net = classes(torch)
            net = Net()
            state = net.state_dict()
            state["body.0.weight"] = torch.ones(3)
            del state["body.1._extra_state"], state["head.bias"]
            state["body.more"] = state["other.x"] = torch.ones(1)
            with self.assertRaises(RuntimeError) as caught:
                net.load_state_dict(state)
            texts.append(str(caught.exception))
            found = net.load_state_dict({name: value for name, value in state.items() if name != "body.0.weight"}, strict=False)
            self.assertEqual((sorted(found.missing_keys), sorted(found.unexpected_keys)),
                             (["body.0.weight", "body.1._extra_state", "head.bias"], ["body.more", "other.x"]))
        for part in ("Missing key(s) in state_dict:", "Unexpected key(s) in state_dict:",
            "size mismatch for body.0.weight: copying a param with "
                     "shape torch.Size([3]) from checkpoint, the shape in current model is torch.Size([2])."):
            for text in texts:
                self.assertIn(part, text)

    def test_parent_calls_child(self):
        for torch in (tern, pytorch):
            _, _, Empty, _ = classes(torch)
            net = torch.nn.Sequential(torch.nn.Linear(1, 1), Empty())
            self.assertEqual(list(net.state_dict()), ["0.weight", "0.bias"])
            self.assertEqual(net.state_dict(keep_vars=True)["0.weight"] is net[0].weight, True)

    def test_hooks(self):
        for torch in (tern, pytorch):
            net = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.ReLU())
            seen = []

            def rename(module, state, prefix, metadata):
                seen.append((type(module).__name__, prefix))
                for name in list(state):
                    state["new." + name] = state.pop(name)

            def back(state, prefix, *_):
                for name in list(state):
                    state[name.replace("new.", "")] = state.pop(name)

            handles = [net._register_state_dict_hook(rename), net._register_load_state_dict_pre_hook(back)]
            state = net.state_dict()
            self.assertEqual((list(state), seen), (["new.0.weight"], [("Sequential", "")]))
            net.load_state_dict(collections.OrderedDict((name, value * 0 + 5) for name, value in state.items()))
            self.assertEqual(net[0].weight.item(), 5)
            net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
            handles[1].remove()
            handles[0].remove()
            self.assertEqual(list(net.state_dict()), ["0.weight"])
        derived = type("Derived", (tern.nn.Linear,), {})(1, 1)
        derived.extra = tern.nn.Sequential(classes(tern)[1]())
        self.assertEqual(list(derived.state_dict()), ["weight", "bias", "extra.0.scale", "extra.0._extra_state"])
        self.assertEqual(derived.load_state_dict(derived.state_dict()).missing_keys, [])


if __name__ == "__main__":
    unittest.main()

"""Recorded steps, as functions and as CUDA graphs; streams and events; what the driver tells."""

import gc
import unittest
import weakref

import tern as torch
from tern import nn

DEVICE = torch.get_default_device()


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


class Capture(unittest.TestCase):
    def losses(self, how):
        """Of a training whose steps are replayed, on data that changes."""
        net = network()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        x, loss = torch.zeros(6, 4), torch.zeros(())
        batches = torch.rand(5, 6, 4)

        def step():
            optimizer.zero_grad()
            y = net(x).square().mean()
            y.backward()
            optimizer.step()
            loss.copy_(y.detach())

        x.copy_(batches[0])
        step()
        replay, seen = how(step), []
        for batch in batches:
            x.copy_(batch)
            replay()
            seen.append(loss.item())
        return seen

    def test_a_replay_is_the_step(self):
        def by_function(step):
            return torch.capture(step, warmup=0).replay

        def by_graph(step):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.assertTrue(torch.cuda.is_current_stream_capturing())
                step()
            self.assertFalse(torch.cuda.is_current_stream_capturing())
            return graph.replay

        def plain(step):
            step()
            return step

        expected = self.losses(plain)
        self.assertEqual(self.losses(by_function), expected)
        self.assertEqual(self.losses(by_graph), expected)
        self.assertEqual(len(set(expected)), 5)

    def test_what_it_holds(self):
        x = torch.ones(1000)
        step = torch.capture(lambda: x.mul_(2), warmup=1)
        self.assertEqual(x[0].item(), 4)
        step.replay()
        self.assertEqual((x[0].item(), step.num_launches), (8, 1))

        def stepped():
            stepped.y = x + 1

        step, alive = torch.capture(stepped), weakref.ref(stepped)
        del stepped
        gc.collect()
        self.assertIsNotNone(alive())
        x.fill_(5)
        step.replay()
        self.assertEqual(alive().y[0].item(), 6)

    def test_errors(self):
        x = torch.ones(3)
        with self.assertRaisesRegex(torch.CaptureError, "read"):
            torch.capture(lambda: x.sum().item())
        with self.assertRaisesRegex(torch.CaptureError, "another step"):
            torch.capture(lambda: torch.capture(lambda: x.add_(1)))
        with self.assertRaisesRegex(KeyError, "own"):
            torch.capture(lambda: {}["own"])
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(torch.CaptureError, "nothing has been recorded"):
            graph.replay()
        with self.assertRaisesRegex(torch.CaptureError, "nothing is being recorded"):
            graph.capture_end()
        with self.assertRaisesRegex(KeyError, "own"), torch.cuda.graph(graph):
            raise KeyError("own")
        self.assertFalse(torch.cuda.is_current_stream_capturing())
        x.zero_()
        with torch.cuda.graph(graph):
            x.add_(1)
        graph.replay()
        self.assertEqual(x.tolist(), [2, 2, 2])


@unittest.skipUnless(torch.cuda.is_available(), "needs a GPU, a simulated one too")
class Gpus(unittest.TestCase):
    def test_streams_and_events(self):
        own = torch.cuda.Stream(priority=-1)
        x = torch.ones(100, device="cuda")
        own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(own):
            self.assertEqual(torch.cuda.current_stream(), own)
            y = x * 2
            done = own.record_event()
        with torch.cuda.stream(None):
            done.wait()
            y.record_stream(torch.cuda.current_stream())
            self.assertEqual(y.sum().item(), 200)
        begin, end = (torch.cuda.Event(enable_timing=True, blocking=True) for _ in range(2))
        begin.record()
        end.record(torch.cuda.current_stream())
        end.synchronize()
        self.assertGreaterEqual(begin.elapsed_time(end), 0)
        self.assertNotEqual(own, torch.cuda.default_stream())

    def test_devices(self):
        for device in (0, "cuda:0", torch.device("cuda:0"), None, -1):
            with torch.cuda.device(device):
                self.assertEqual(torch.cuda.current_device(), 0)
        with torch.cuda.device_of(torch.ones(1)), torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            self.assertEqual(torch.cuda.current_device(), 0)
        properties = torch.cuda.get_device_properties(0)
        self.assertIn(f"total_memory={properties.total_memory >> 20}MB", repr(properties))

    def test_memory(self):
        torch.cuda.reset_max_memory_allocated()
        x = torch.empty(1 << 20, device="cuda")
        stats = torch.cuda.memory_stats()
        self.assertGreaterEqual(stats["allocated_bytes.all.current"], x.nbytes)
        self.assertEqual(stats["reserved_bytes.all.peak"], torch.cuda.max_memory_cached())

    def test_what_the_driver_tells(self):
        if torch.cuda.get_device_properties(0).simulated:
            for ask in (torch.cuda.utilization, torch.cuda.temperature, torch.cuda.power_draw, torch.cuda.memory_usage, torch.cuda.list_gpu_processes):
                with self.assertRaisesRegex(torch.DeviceError, "simulated"):
                    ask()


if __name__ == "__main__":
    unittest.main()

"""python -m tern.distributed.run: a script as several processes (torchrun)."""

import argparse
import sys

from tern import _C


def _count(text):
    if text in ("gpu", "auto"):
        return max(_C.cuda_device_count(), 1)
    count = int(text)
    if count < 1:
        raise ValueError
    return count


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m tern.distributed.run", description=__doc__, allow_abbrev=False)

    def option(name, **settings):
        parser.add_argument("--" + name, "--" + name.replace("-", "_"), **settings)

    option("nproc-per-node", type=_count, default=1, metavar="N", help="processes on this machine; gpu: one for each GPU")
    option("nnodes", type=int, default=1, metavar="M", help="machines")
    option("node-rank", type=int, default=0, metavar="K", help="the number of this machine, from 0 on")
    option("master-addr", default=None, metavar="HOST", help="the address of machine 0")
    option("master-port", type=int, default=None, metavar="PORT",
           help="a port that is free there (default: any on a single machine, else 29500)")
    option("rdzv-endpoint", default="", metavar="HOST:PORT", help="the same in one")
    option("tag-output", action="store_true", help="write the rank before every line")
    option("standalone", action="store_true", help="a single machine, which is the default")
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module")
    option("no-python", action="store_true", help="SCRIPT is a program")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
    return parser.parse_args(argv)


def main(argv=None):
    """Starts the processes and waits for them; the exit code is that of the first that failed."""
    given = _arguments(sys.argv[1:] if argv is None else argv)
    host, _, port = given.rdzv_endpoint.rpartition(":") if ":" in given.rdzv_endpoint else (given.rdzv_endpoint, "", "")
    command = [given.script, *given.rest]
    if not given.no_python:
        command = [sys.executable, *(["-m"] if given.module else []), *command]
    code, reason = _C._launch(command, given.nproc_per_node, given.nnodes, given.node_rank,
                              given.master_addr or host or "localhost", given.master_port or int(port or 0), given.tag_output, 5.0)
    if reason:
        print(f"tern.distributed.run: {reason}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

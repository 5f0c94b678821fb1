"""Numbers that parameters begin with: each function fills a tensor and returns it."""

from tern import _C

globals().update({name[len("init_"):]: value for name, value in vars(_C).items() if name.startswith("init_")})

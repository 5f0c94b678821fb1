// The modules and functions of Python, PyTorch and NumPy that pickles use to run code. The list follows what
// the scanners of checkpoints (picklescan, fickling, modelscan) look for; a name that is on no list still
// needs its class, and is never called plain data.
#include "tern/io/pickle_verdict.h"

#include <algorithm>
#include <array>
#include <string>

#include "tern/io/pickle_globals.h"

namespace tern::io {

namespace {

/// With everything below them.
constexpr std::string_view kModules[] = {"os",
                                         "posix",
                                         "nt",
                                         "posixpath",
                                         "ntpath",
                                         "sys",
                                         "subprocess",
                                         "_posixsubprocess",
                                         "commands",
                                         "popen2",
                                         "pty",
                                         "runpy",
                                         "importlib",
                                         "imp",
                                         "pkgutil",
                                         "zipimport",
                                         "shutil",
                                         "socket",
                                         "socketserver",
                                         "SocketServer",
                                         "ssl",
                                         "http",
                                         "httplib",
                                         "urllib",
                                         "urllib2",
                                         "requests",
                                         "aiohttp",
                                         "ftplib",
                                         "smtplib",
                                         "poplib",
                                         "imaplib",
                                         "telnetlib",
                                         "nntplib",
                                         "xmlrpc",
                                         "xmlrpclib",
                                         "webbrowser",
                                         "antigravity",
                                         "ctypes",
                                         "_ctypes",
                                         "cffi",
                                         "code",
                                         "codeop",
                                         "pickle",
                                         "_pickle",
                                         "cPickle",
                                         "dill",
                                         "cloudpickle",
                                         "joblib",
                                         "marshal",
                                         "shelve",
                                         "types",
                                         "new",
                                         "operator",
                                         "_operator",
                                         "functools",
                                         "_functools",
                                         "itertools",
                                         "bdb",
                                         "pdb",
                                         "trace",
                                         "timeit",
                                         "profile",
                                         "cProfile",
                                         "doctest",
                                         "unittest",
                                         "pydoc",
                                         "inspect",
                                         "ast",
                                         "dis",
                                         "gc",
                                         "atexit",
                                         "signal",
                                         "threading",
                                         "_thread",
                                         "thread",
                                         "multiprocessing",
                                         "concurrent",
                                         "asyncio",
                                         "sched",
                                         "tempfile",
                                         "fileinput",
                                         "glob",
                                         "io",
                                         "_io",
                                         "codecs",
                                         "_codecs",
                                         "platform",
                                         "pip",
                                         "setuptools",
                                         "distutils",
                                         "ensurepip",
                                         "venv",
                                         "site",
                                         "idlelib",
                                         "lib2to3",
                                         "cgi",
                                         "wsgiref",
                                         "mmap",
                                         "resource",
                                         "crypt",
                                         "linecache",
                                         "tokenize",
                                         "IPython",
                                         "jinja2",
                                         "nltk",
                                         "numexpr",
                                         "paramiko",
                                         "psutil",
                                         "pexpect",
                                         "torch.hub",
                                         "torch.jit",
                                         "torch.serialization",
                                         "torch.package",
                                         "torch.fx",
                                         "torch._inductor",
                                         "torch._dynamo",
                                         "torch.utils.cpp_extension",
                                         "torch.utils.bottleneck",
                                         "torch.utils.collect_env",
                                         "torch.utils.data.datapipes",
                                         "torch.distributed.rpc",
                                         "torch.onnx",
                                         "torch.testing",
                                         "numpy.f2py",
                                         "numpy.testing",
                                         "numpy.distutils",
                                         "numpy.ctypeslib",
                                         "numpy.lib"};

/// Single functions of modules that also have harmless classes.
constexpr std::string_view kFunctions[] = {"torch.load",
                                           "torch.compile",
                                           "torch._utils._import_dotted_name",
                                           "torch.storage.load",
                                           "torch.library.Library",
                                           "torch.ops.load_library",
                                           "torch.classes.load_library",
                                           "numpy.load",
                                           "numpy.loadtxt",
                                           "numpy.genfromtxt",
                                           "numpy.fromregex",
                                           "numpy.save",
                                           "numpy.savetxt",
                                           "pandas.eval",
                                           "pandas.read_pickle",
                                           "pandas.io.pickle.read_pickle",
                                           "logging.config.listen",
                                           "logging.config.dictConfig",
                                           "logging.FileHandler",
                                           "test.support.script_helper.assert_python_ok"};

/// Harmless names of the modules above: plain containers, files in memory, and what joins flags of an enum.
constexpr std::string_view kHarmless[] = {
    "types.SimpleNamespace", "operator.or_", "_operator.or_", "io.BytesIO",
    "_io.BytesIO",           "io.StringIO",  "_io.StringIO"};

/// Harmless too, unless what they give is called.
constexpr std::string_view kHarmlessUncalled[] = {"functools.partial", "builtins.getattr",
                                                  "__builtin__.getattr", "__builtins__.getattr"};

/// Of builtins, beside classes of exceptions.
constexpr std::string_view kHarmlessBuiltins[] = {
    "list",  "dict",    "tuple", "int",       "float",    "str",       "bool",    "object",
    "long",  "unicode", "set",   "frozenset", "bytes",    "bytearray", "complex", "slice",
    "range", "xrange",  "type",  "enumerate", "reversed", "zip",       "len",     "abs",
    "min",   "max",     "sum",   "round",     "sorted",   "any",       "all",     "print"};

bool is_builtins(std::string_view module) {
  return module == "builtins" || module == "__builtin__" || module == "__builtins__";
}

template <size_t n>
bool contains(const std::string_view (&list)[n], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

bool in_dangerous_module(std::string_view module) {
  return std::any_of(std::begin(kModules), std::end(kModules), [&](std::string_view each) {
    return module.starts_with(each) && (module.size() == each.size() || module[each.size()] == '.');
  });
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"plain data", "needs classes", "would run code"};
  return kNames[static_cast<size_t>(verdict)];
}

Verdict judge_global(const GlobalName& global, bool calls_results) {
  const Value known = find_global(global.module, global.name);
  if (known.kind() != ValueKind::Global || known.as_global().known) return Verdict::PlainData;
  if (contains(kHarmless, global.full())) return Verdict::NeedsClasses;
  if (contains(kHarmlessUncalled, global.full()))
    return calls_results ? Verdict::WouldRunCode : Verdict::NeedsClasses;
  if (in_dangerous_module(global.module) || contains(kFunctions, global.full())) return Verdict::WouldRunCode;
  // An attribute of an attribute ("torch", "os.system") reaches what its module imported, or a method.
  for (std::string_view rest = global.name; !rest.empty();) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool reaches = dot != std::string_view::npos || rest.size() != global.name.size();
    const bool special = part.starts_with("__") && (reaches || part.ends_with("__"));
    const bool method = rest.size() != global.name.size() && !is_class_name(part);
    if (special || (method && calls_results) || (reaches && (in_dangerous_module(part) || is_builtins(part))))
      return Verdict::WouldRunCode;
    if (reaches && in_dangerous_module(global.module + "." + std::string(part))) return Verdict::WouldRunCode;
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  if (!is_builtins(global.module)) return Verdict::NeedsClasses;
  const bool exception = !global.name.empty() && global.name[0] >= 'A' && global.name[0] <= 'Z';
  return exception || contains(kHarmlessBuiltins, global.name) ? Verdict::NeedsClasses
                                                               : Verdict::WouldRunCode;
}

}  // namespace tern::io

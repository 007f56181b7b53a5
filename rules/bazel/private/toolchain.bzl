"""The toolchain of these rules, and how its programs are run."""

load(":providers.bzl", "DistltoToolchainInfo")

# Not by toolchain resolution, which in Bazel 4 fetches all that any rule set has registered, from the network.
TOOLCHAIN = {
    "_distlto_toolchain": attr.label(
        default = Label("//:toolchain"),
        providers = [DistltoToolchainInfo],
    ),
}

_HOOK = "libdistlto_hook.so"

# Every action of these rules.
MNEMONICS = ["DistltoCompile", "DistltoIndex", "DistltoOpt", "DistltoLink", "DistltoDwp", "DistltoStrip"]

def _program(ctx, name):
    """A program's path: a file of the build, or a path of the machine."""
    target = getattr(ctx.attr, name)
    path = getattr(ctx.attr, name + "_path")
    if target and path:
        fail("{}: give `{}` or `{}_path`, not both".format(ctx.label, name, name))
    if target:
        files = target[DefaultInfo].files.to_list()
        executable = target[DefaultInfo].files_to_run.executable or (files[0] if len(files) == 1 else None)
        if not executable:
            fail("{}: `{}` is no program: {} gives {} files".format(ctx.label, name, target.label, len(files)))
        if "/" not in executable.path:
            fail("{}: {} lies in the root package, where Bazel does not find programs; put it into a package of its own".format(ctx.label, executable.path))
        return executable, [target[DefaultInfo].default_runfiles.files, depset([executable])]
    if path and not path.startswith("/"):
        fail("{}: `{}_path` is an absolute path, not {}".format(ctx.label, name, path))
    return path or None, []

def _path(program):
    return program if type(program) == "string" or program == None else program.path

def _requirements(ctx):
    found = {}
    for mnemonic, words in ctx.attr.execution_requirements.items():
        if mnemonic not in MNEMONICS:
            fail("{}: execution_requirements of {}, which is none of {}".format(ctx.label, mnemonic, ", ".join(MNEMONICS)))
        found[mnemonic] = {word.partition("=")[0]: word.partition("=")[2] for word in words}
    return found

def _hook(ctx, distlto):
    """The library that distlto loads into linkers, which it finds by where itself lies."""
    hook = ctx.file.hook
    if type(distlto) == "string":
        if hook:
            fail("{}: `hook` goes with `distlto`; that of `distlto_path` lies beside the program or in ../lib/distlto".format(ctx.label))
        return []
    if not hook:
        fail("{}: no `hook`: give the label of libdistlto_hook.so, which is installed with distlto".format(ctx.label))
    where = distlto.path.split("/")
    if hook.path not in ["/".join(parts + [_HOOK]) for parts in [where[:-1], where[:-2] + ["lib", "distlto"]]]:
        fail("{}: {} is neither beside {} nor in ../lib/distlto, as {}, where distlto looks for it".format(ctx.label, hook.path, distlto.path, _HOOK))
    return [depset([hook])]

def toolchain_of(ctx, given, more_files):
    """The toolchain that attributes describe.

    Args:
      ctx: of a rule with `PROGRAMS` and `SETTINGS`.
      given: dict of programs that are no attributes to their paths.
      more_files: depset of what those read.

    Returns:
      The providers of the rule.
    """
    files = [depset(ctx.files.files), more_files]
    programs = {}
    for name in ["clang", "clangxx", "lld", "dwp", "distlto"]:
        if name in given:
            programs[name] = given[name]
            continue
        programs[name], of_program = _program(ctx, name)
        files += of_program
    for name in ["clangxx", "lld", "distlto"]:
        if not programs[name]:
            fail("{}: no `{}`: give its label, or the path where every machine has it as `{}_path`".format(ctx.label, name, name))
    files += _hook(ctx, programs["distlto"])
    return [DistltoToolchainInfo(
        clang = _path(programs["clang"] or programs["clangxx"]),
        clangxx = _path(programs["clangxx"]),
        lld = _path(programs["lld"]),
        dwp = _path(programs["dwp"]),
        distlto = _path(programs["distlto"]),
        copts = ctx.attr.copts,
        cxxopts = ctx.attr.cxxopts,
        linkopts = ctx.attr.linkopts,
        files = depset(transitive = files),
        slices = ctx.attr.slices,
        shards = ctx.attr.shards,
        execution_requirements = _requirements(ctx),
    )]

def _toolchain_impl(ctx):
    return toolchain_of(ctx, {}, depset())

def programs(names):
    """Attributes that name programs."""
    attrs = {}
    for name in names:
        attrs[name] = attr.label(doc = _DOCS[name], allow_files = True, cfg = "exec")
        attrs[name + "_path"] = attr.string(doc = "The same as an absolute path that all machines of the build have")
    if "distlto" in names:
        attrs["hook"] = attr.label(doc = "The library libdistlto_hook.so, beside `distlto` or in ../lib/distlto", allow_single_file = True, cfg = "exec")
    return attrs

_DOCS = {
    "clang": "The C compiler; that of C++ where absent",
    "clangxx": "The C++ compiler and driver of links, of LLVM 15 or later",
    "distlto": "The program `distlto`",
    "dwp": "llvm-dwp, for split debug information",
    "lld": "ld.lld of the same LLVM",
}

SETTINGS = {
    "copts": attr.string_list(doc = "Flags of every compilation"),
    "cxxopts": attr.string_list(doc = "Flags of every compilation of C++"),
    "execution_requirements": attr.string_list_dict(doc = "By mnemonic: requirements, `name` or `name=value`"),
    "files": attr.label_list(doc = "What the programs read besides: libraries, headers, a sysroot", allow_files = True, cfg = "exec"),
    "linkopts": attr.string_list(doc = "Flags of every link"),
    "shards": attr.int(default = 8, doc = "Over how many slices modules are spread that are not known before the link: members of archives, objects in directories"),
    "slices": attr.int(default = 4000, doc = "The most objects that get a slice each; with more, all modules are spread over `shards` slices"),
}

distlto_toolchain = rule(
    doc = "Compiler, linker and distlto for the rules of this module; used by `--@distlto//:toolchain=LABEL`.",
    implementation = _toolchain_impl,
    attrs = dict(programs(_DOCS), **SETTINGS),
)

def find_toolchain(ctx):
    """The DistltoToolchainInfo of a rule."""
    return ctx.attr._distlto_toolchain[DistltoToolchainInfo]

# As old as `resource_set`, near enough, and visible from here.
_TAKES_RESOURCES = hasattr(native, "package_relative_label")

def _resources(_os, _inputs):
    # What a backend reads is known only in its slice, so this is what most take.
    return {"cpu": 1, "memory": 300}

def run(ctx, toolchain, mnemonic, message, executable, arguments, inputs, outputs, resources = False):
    """An action of these rules."""
    more = {"resource_set": _resources} if resources and _TAKES_RESOURCES else {}
    ctx.actions.run(
        mnemonic = mnemonic,
        progress_message = message,
        executable = executable,
        arguments = arguments,
        inputs = inputs,
        tools = toolchain.files,
        outputs = outputs,
        env = {"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"},
        execution_requirements = toolchain.execution_requirements.get(mnemonic, {}),
        **more
    )

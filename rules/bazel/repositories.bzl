"""Finds the programs of this machine for a toolchain: the least that a WORKSPACE has to say."""

_BUILD = """\
load("@distlto//:defs.bzl", "distlto_toolchain")

package(default_visibility = ["//visibility:public"])

distlto_toolchain(
    name = "toolchain",
    clang_path = {clang},
    clangxx_path = {clangxx},
    copts = {copts},
    cxxopts = {cxxopts},
    distlto = "//bin:distlto",
    dwp_path = {dwp},
    execution_requirements = {execution_requirements},
    hook = "//bin:libdistlto_hook.so",
    linkopts = {linkopts},
    lld_path = {lld},
    shards = {shards},
    slices = {slices},
)
"""

def _which(repository_ctx, name, package):
    """The path of a program of LLVM."""
    llvm = repository_ctx.attr.llvm
    if "/" in llvm:
        found = repository_ctx.path(llvm + "/" + name)
        found = found if found.exists else None
        wanted = llvm + "/" + name
    else:
        wanted = name + "-" + llvm if llvm else name
        found = repository_ctx.which(wanted)
    if not found:
        if not package:
            return ""
        fail("""
distlto: the program {wanted} is not to be found.
Install it (Debian and Ubuntu: `apt-get install {package}{version}`), or name another LLVM in distlto_configure(llvm = ...):
a version such as "22", a directory of programs, or "" for `clang++` and `ld.lld` of PATH.
""".format(wanted = wanted, package = package, version = "-" + llvm if llvm and "/" not in llvm else ""))
    return str(found)

def _distlto(repository_ctx):
    path = repository_ctx.os.environ.get("DISTLTO") or repository_ctx.attr.distlto
    found = repository_ctx.path(path) if "/" in path else repository_ctx.which(path or "distlto")
    if not found or not found.exists:
        fail("""
distlto: the program `{}` is not to be found.
Install it (`cargo xtask install --prefix DIR` in its repository) and put it into PATH, or name it: `--repo_env=DISTLTO=/path/to/distlto`.
""".format(path or "distlto"))
    return found.realpath

def _hook(repository_ctx, distlto):
    for place in ["", "/../lib/distlto"]:
        found = repository_ctx.path("{}{}/libdistlto_hook.so".format(distlto.dirname, place))
        if found.exists:
            return found
    fail("""
distlto: libdistlto_hook.so is neither beside {} nor in ../lib/distlto.
Install both (`cargo xtask install --prefix DIR` in the repository of distlto).
""".format(distlto))

def _configure_impl(repository_ctx):
    distlto = _distlto(repository_ctx)
    repository_ctx.symlink(distlto, "bin/distlto")
    repository_ctx.symlink(_hook(repository_ctx, distlto), "bin/libdistlto_hook.so")
    repository_ctx.file("bin/BUILD.bazel", "exports_files([\"distlto\", \"libdistlto_hook.so\"])\n")
    attributes = repository_ctx.attr
    repository_ctx.file("BUILD.bazel", _BUILD.format(
        clang = repr(_which(repository_ctx, "clang", "clang")),
        clangxx = repr(_which(repository_ctx, "clang++", "clang")),
        lld = repr(_which(repository_ctx, "ld.lld", "lld")),
        dwp = repr(_which(repository_ctx, "llvm-dwp", None)),
        copts = repr(attributes.copts),
        cxxopts = repr(attributes.cxxopts),
        linkopts = repr(attributes.linkopts),
        execution_requirements = repr(attributes.execution_requirements),
        shards = attributes.shards,
        slices = attributes.slices,
    ))

distlto_repository = repository_rule(
    doc = "A toolchain of the clang, lld and distlto that this machine has.",
    implementation = _configure_impl,
    attrs = {
        "copts": attr.string_list(doc = "Flags of every compilation"),
        "cxxopts": attr.string_list(doc = "Flags of every compilation of C++"),
        "distlto": attr.string(doc = "The program distlto: a name of PATH or an absolute path; the variable DISTLTO wins"),
        "execution_requirements": attr.string_list_dict(doc = "By mnemonic: requirements, `name` or `name=value`"),
        "linkopts": attr.string_list(doc = "Flags of every link"),
        "llvm": attr.string(doc = "A version such as 22, a directory of programs, or nothing for those of PATH"),
        "shards": attr.int(default = 8, doc = "As in distlto_toolchain"),
        "slices": attr.int(default = 4000, doc = "As in distlto_toolchain"),
    },
    configure = True,
    environ = ["DISTLTO", "PATH"],
    local = True,
)

def distlto_configure(**kwargs):
    """Makes the toolchain that the rules use by default, of the programs of this machine.

    Args:
      **kwargs: attributes of distlto_repository, such as `llvm = "22"`.
    """
    distlto_repository(name = "distlto_local", **kwargs)

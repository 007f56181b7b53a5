"""Sources to ThinLTO bitcode, by clang itself: what these rules do where no cc rules are to be had."""

load(":link.bzl", "compile_alone")
load(":providers.bzl", "DistltoInfo")
load(":toolchain.bzl", "find_toolchain", "run")

_C = ["c"]
_CXX = ["cc", "cpp", "cxx", "c++", "C"]
_ASSEMBLY = ["S", "s"]
_HEADERS = ["h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tcc"]
_OBJECTS = ["o", "obj", "bc"]
_ARCHIVES = ["a", "lo", "rlib"]

SOURCES = _C + _CXX + _ASSEMBLY + _HEADERS + _OBJECTS + _ARCHIVES

# What makes an object the same wherever it is compiled.
_REPRODUCIBLE = [
    "-no-canonical-prefixes",
    "-ffile-compilation-dir=.",
]
_PREPROCESSED = [
    "-Wno-builtin-macro-redefined",
    "-D__DATE__=\"redacted\"",
    "-D__TIMESTAMP__=\"redacted\"",
    "-D__TIME__=\"redacted\"",
]

_BY_MODE = {
    "dbg": ["-O1", "-g"],
    "fastbuild": ["-O2"],
    "opt": ["-O2", "-DNDEBUG"],
}

def _include_flags(ctx):
    """`includes` as cc_library has them: below the package, in the sources and in what was generated."""
    flags = []
    for include in ctx.attr.includes:
        if include.startswith("/"):
            fail("{}: `includes` are relative to the package: {}".format(ctx.label, include))
        parts = [part for part in [ctx.label.workspace_root, ctx.label.package, include] if part and part != "."]
        place = "/".join(parts) or "."
        flags += ["-isystem", place, "-isystem", "{}/{}".format(ctx.bin_dir.path, place)]
    return flags

def expand(ctx, words):
    """Words with `$(location)` and make variables expanded."""
    targets = ctx.attr.deps + ctx.attr.data + getattr(ctx.attr, "additional_linker_inputs", [])
    found = [ctx.expand_location(word, targets) for word in words]
    return [ctx.expand_make_variables("flags", word, {}) if "$(" in word else word for word in found]

def dependencies(deps):
    """The DistltoInfo of dependencies, merged."""
    infos = [dep[DistltoInfo] for dep in deps if DistltoInfo in dep]
    return struct(
        headers = depset(transitive = [info.headers for info in infos]),
        compile_flags = depset(order = "topological", transitive = [info.compile_flags for info in infos]),
        nodes = depset(order = "topological", transitive = [info.nodes for info in infos]),
        link_inputs = depset(transitive = [info.link_inputs for info in infos]),
    )

def compile_sources(ctx, below):
    """Compiles `srcs`; objects and archives among them are taken as they are. `below` is what dependencies say."""
    toolchain = find_toolchain(ctx)
    headers = ctx.files.hdrs + getattr(ctx.files, "textual_hdrs", [])
    private = [src for src in ctx.files.srcs if src.extension in _HEADERS]
    exported = ["-D" + define for define in expand(ctx, ctx.attr.defines)] + _include_flags(ctx)
    local = ["-D" + define for define in expand(ctx, ctx.attr.local_defines)]
    flags = toolchain.copts + _BY_MODE[ctx.var["COMPILATION_MODE"]]
    if ctx.attr.fission:
        flags = flags + ["-g"]
    compile_headers = depset(headers + private, transitive = [below.headers])
    objects = []
    separate = []
    unknown = []
    for src in ctx.files.srcs:
        if src in private:
            continue
        if src.is_directory:
            fail("{}: `srcs` has the directory {}; give it to a distlto_import".format(ctx.label, src.short_path))
        if src.extension in _OBJECTS:
            objects.append(src)
            separate.append(src)
        elif src.extension in _ARCHIVES:
            unknown.append(src)
        elif src.extension in _C + _CXX + _ASSEMBLY:
            object = _compile(ctx, toolchain, src, [flags, exported, local], compile_headers, below)
            objects.append(object)
            separate.append(object if src.extension in _ASSEMBLY else compile_alone(ctx, toolchain, object))
        else:
            fail("{}: {} is no source, header, object or archive".format(ctx.label, src.short_path))
    return struct(
        objects = objects,
        separate = separate,
        unknown = unknown,
        headers = depset(headers, transitive = [below.headers]),
        compile_flags = depset([tuple(exported)] if exported else [], order = "topological", transitive = [below.compile_flags]),
    )

def _compile(ctx, toolchain, src, flags, headers, below):
    out = ctx.actions.declare_file("_distlto/{}/{}.o".format(ctx.label.name, _name_of(ctx, src)))
    cxx = src.extension in _CXX
    args = ctx.actions.args()
    if src.extension not in _ASSEMBLY:
        args.add("-flto=thin")
    args.add_all(_REPRODUCIBLE)
    if src.extension != "s":
        args.add_all(_PREPROCESSED)
        args.add("-fPIC")
        args.add_all(["-iquote", ".", "-iquote", ctx.bin_dir.path])
        if ctx.label.workspace_root:
            args.add_all(["-iquote", ctx.label.workspace_root])
        args.add_all(flags[0])
        if cxx:
            args.add_all(toolchain.cxxopts)
        args.add_all(below.compile_flags, map_each = _words, uniquify = False)
        args.add_all(flags[1])
        args.add_all(flags[2])
    args.add_all(expand(ctx, ctx.attr.copts))
    args.add("-c", src)
    args.add("-o", out)
    run(
        ctx,
        toolchain,
        "DistltoCompile",
        "Compiling {} to bitcode".format(src.short_path),
        executable = toolchain.clangxx if cxx else toolchain.clang,
        arguments = [args],
        inputs = depset([src], transitive = [headers]),
        outputs = [out],
    )
    return out

def _words(flags):
    return list(flags)

def _name_of(ctx, src):
    package = ctx.label.package + "/"
    name = src.short_path
    return name[len(package):] if name.startswith(package) else name.replace("../", "external/")

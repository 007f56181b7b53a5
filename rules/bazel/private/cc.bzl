"""distlto_link: an existing cc_binary, cc_test or cc_shared_library, compiled to bitcode and linked by distributed ThinLTO.

A transition compiles the target and its libraries a second time, with `-flto=thin`. An aspect takes the command of its own
link (cc_command.bzl). In this command, objects stand in place of their libraries, and each object gets a slice. Shared
libraries of the build stay shared, and each is a link of its own, in process.
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load(":cc_command.bzl", "CcCommandInfo", "add_line", "cc_command_aspect")
load(":cc_shared.bzl", "NativeObjectsInfo", "native_objects_aspect")
load(":link.bzl", "link")
load(":toolchain.bzl", "SETTINGS", "TOOLCHAIN", "find_toolchain", "programs", "run", "toolchain_of")

_THINLTO = "-flto=thin"
_OPTION = "//command_line_option:"
_FISSION = str(Label("//private:fission"))
_LLD = "-fuse-ld=lld"

def _thinlto_transition_impl(settings, attr):
    fission = attr.fission or settings[_OPTION + "compilation_mode"] in settings[_OPTION + "fission"]

    # Shared backends serve links with other names for split debug information.
    fission = fission and not hasattr(attr, "shared_backends")
    return {
        _FISSION: fission,
        _OPTION + "copt": settings[_OPTION + "copt"] + [_THINLTO] + (["-g", "-gsplit-dwarf"] if fission else []),
        # Bazel's own ThinLTO would take the bitcode away.
        _OPTION + "features": settings[_OPTION + "features"] + ["-thin_lto"],
        # Bazel would expect a .dwo file of each compilation, and the backends write them.
        _OPTION + "fission": [],
        # Of shared libraries.
        _OPTION + "linkopt": settings[_OPTION + "linkopt"] + [_THINLTO, _LLD],
    }

_thinlto_transition = transition(
    implementation = _thinlto_transition_impl,
    inputs = [_OPTION + name for name in ["compilation_mode", "copt", "features", "fission", "linkopt"]],
    outputs = [_FISSION] + [_OPTION + name for name in ["copt", "features", "fission", "linkopt"]],
)

def _check(ctx, binary):
    """Refuses a `binary` that cannot be linked, or that would run otherwise."""
    if CcCommandInfo not in binary:
        fail("{}: {} is no cc_binary, cc_test or cc_shared_library: no action of the cc rules links it to a program or library. For a cc_library, name a program that depends on it".format(ctx.label, binary.label))
    if ctx.attr._cc_toolchain[cc_common.CcToolchainInfo].compiler == "gcc":
        fail("{}: the registered cc_toolchain is GCC, which has no ThinLTO; register clang, such as by `--repo_env=CC=clang`".format(ctx.label))
    if binary[CcCommandInfo].args and not ctx.attr.args:
        fail("{}: {} has `args`, which are taken over only from a target above this one in the same package; repeat `args` and the files in `data` that they name".format(ctx.label, binary.label))

def _strip(ctx, toolchain, command, output, stripped):
    """Strips the program as the project strips the target's own."""
    cc = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo]
    words = command.strip or [cc.strip_executable, "-S", "-p", "-o", stripped.path, command.output.path]
    places = {command.output.path: output.path, command.output.path + ".stripped": stripped.path}
    run(
        ctx,
        toolchain,
        "DistltoStrip",
        "Stripping {}".format(output.short_path),
        executable = words[0],
        arguments = [places.get(word, word) for word in words[1:]],
        inputs = depset([output], transitive = [cc.all_files]),
        outputs = [stripped],
    )

def _run_environment(ctx, binary):
    old = binary[RunEnvironmentInfo] if RunEnvironmentInfo in binary else None
    return RunEnvironmentInfo(
        environment = dict(old.environment if old else {}, **ctx.attr.env),
        inherited_environment = (old.inherited_environment if old else []) + ctx.attr.env_inherit,
    )

def _runfiles(ctx, binary, output):
    old = binary[DefaultInfo].default_runfiles
    files = [file for file in old.files.to_list() if file != binary[CcCommandInfo].output]
    return ctx.runfiles(
        files = [output] + files + ctx.files.data,
        symlinks = {entry.path: entry.target_file for entry in old.symlinks.to_list()},
        root_symlinks = {entry.path: entry.target_file for entry in old.root_symlinks.to_list()},
    ).merge_all([target[DefaultInfo].default_runfiles for target in ctx.attr.data])

def _link(ctx, toolchain, command, output):
    """Links `output` by distributed ThinLTO."""
    line = ctx.actions.args()
    found = add_line(line, command, output)
    _finish(line, toolchain, ["-gsplit-dwarf", "-Wl,--gdb-index"] if command.fission else [])
    return link(
        ctx,
        output,
        line = line,
        objects = found.objects,
        unknown = found.unknown,
        inputs = found.inputs,
        root = command.output.root.path,
        driver = command.argv[0],
        dwp = ctx.outputs.dwp_file if command.fission else None,
    )

def _link_shared(ctx, toolchain, command, output, pairs):
    """Links `output` from the libraries' objects without imports."""
    line = ctx.actions.args()
    found = add_line(line, command, output, {pair.bitcode.path: pair.native for pair in pairs.to_list()})
    _finish(line, toolchain, [])
    run(
        ctx,
        toolchain,
        "DistltoLink",
        "Linking {} without imports".format(output.short_path),
        executable = command.argv[0],
        arguments = [line],
        inputs = found.inputs,
        outputs = [output],
    )
    return OutputGroupInfo(objects = depset(found.objects))

def _finish(line, toolchain, flags):
    line.use_param_file("@%s", use_always = True)
    line.set_param_file_format("shell")
    line.add_all([_THINLTO, _LLD, "--ld-path=" + toolchain.lld] + flags + toolchain.linkopts)

def _distlto_link_impl(ctx):
    binary = ctx.attr.binary[0] if type(ctx.attr.binary) == "list" else ctx.attr.binary
    _check(ctx, binary)
    toolchain = find_toolchain(ctx)
    command = binary[CcCommandInfo]
    suffix = ".so" if ".so" in command.output.basename and not ctx.label.name.endswith(".so") else ""
    output = ctx.actions.declare_file(ctx.label.name + suffix)
    if NativeObjectsInfo in binary:
        linked = _link_shared(ctx, toolchain, command, output, binary[NativeObjectsInfo].pairs)
    else:
        linked = _link(ctx, toolchain, command, output)
    if not command.fission:
        # As Bazel does, for targets that name it in any build.
        ctx.actions.write(ctx.outputs.dwp_file, "")
    _strip(ctx, toolchain, command, output, ctx.outputs.stripped_binary)
    return [
        DefaultInfo(executable = output, files = depset([output]), runfiles = _runfiles(ctx, binary, output)),
        _run_environment(ctx, binary),
        coverage_common.instrumented_files_info(ctx, dependency_attributes = ["binary"]),
        linked,
    ]

def _binary(aspects):
    return attr.label(
        doc = "A cc_binary, cc_test or cc_shared_library; it is compiled anew, to bitcode, and is itself not changed",
        aspects = aspects,
        cfg = _thinlto_transition,
        mandatory = True,
    )

_ATTRIBUTES = dict(TOOLCHAIN, **{
    "binary": _binary([cc_command_aspect]),
    # Of the configuration of `binary`, as both may have the same file.
    "data": attr.label_list(doc = "Files that the program needs when it runs, besides those of `binary`", allow_files = True, cfg = _thinlto_transition),
    "env": attr.string_dict(doc = "Variables besides those of `binary`"),
    "env_inherit": attr.string_list(doc = "Variables of Bazel's own environment besides those of `binary`"),
    "fission": attr.bool(doc = "Split debug information, as the option --fission does for all targets, and pack it into NAME.dwp"),
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
})

# The names that a cc_binary gives them.
_OUTPUTS = {
    "dwp_file": "%{name}.dwp",
    "stripped_binary": "%{name}.stripped",
}

distlto_link = rule(
    doc = "An existing cc_binary or cc_shared_library, linked by distributed ThinLTO.",
    implementation = _distlto_link_impl,
    attrs = _ATTRIBUTES,
    executable = True,
    outputs = _OUTPUTS,
)

distlto_link_test = rule(
    doc = "An existing cc_test, linked by distributed ThinLTO.",
    implementation = _distlto_link_impl,
    attrs = _ATTRIBUTES,
    outputs = _OUTPUTS,
    test = True,
)

distlto_shared_test = rule(
    doc = "An existing cc_test, linked from objects of libraries that all such tests share.",
    implementation = _distlto_link_impl,
    attrs = dict(
        _ATTRIBUTES,
        binary = _binary([cc_command_aspect, native_objects_aspect]),
        shared_backends = attr.bool(default = True, doc = "For the transition: debug information is not split"),
    ),
    outputs = _OUTPUTS,
    test = True,
)

def _cc_toolchain_impl(ctx):
    cc = ctx.attr.cc_toolchain[cc_common.CcToolchainInfo]
    given = {"clang": cc.compiler_executable, "clangxx": cc.compiler_executable}
    if not (ctx.attr.lld or ctx.attr.lld_path) and cc.ld_executable.rpartition("/")[2].startswith("ld.lld"):
        given["lld"] = cc.ld_executable
    return toolchain_of(ctx, given, cc.all_files)

distlto_cc_toolchain = rule(
    doc = "A toolchain with the clang of the registered cc_toolchain, and its lld if that is the linker which it names.",
    implementation = _cc_toolchain_impl,
    attrs = dict(
        dict(programs(["distlto", "dwp", "lld"]), **SETTINGS),
        cc_toolchain = attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain", providers = [cc_common.CcToolchainInfo]),
    ),
)

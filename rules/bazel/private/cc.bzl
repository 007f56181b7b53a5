"""distlto_link: an existing cc_binary, cc_test or cc_shared_library, compiled to bitcode and linked by distributed ThinLTO.

An aspect takes the command of the target's own link, so that all that Bazel and its toolchain put there is there: what
`linkopts`, `linkstamp`, `alwayslink`, `malloc`, version scripts and features come to. The link itself is never run. In
its command, libraries are replaced by their objects, of which each gets a slice.
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":link.bzl", "link")
load(":toolchain.bzl", "SETTINGS", "TOOLCHAIN", "find_toolchain", "programs", "toolchain_of")

_CcLinkInfo = provider(
    doc = "The link of a target of the cc rules.",
    fields = {
        "output": "the File that it makes",
        "argv": "its words",
        "inputs": "depset of what it reads",
        "objects": "dict of a library's path to its objects",
    },
)

_THINLTO = "-flto=thin"

def _thinlto_transition_impl(settings, _attr):
    return {
        # Libraries are linked into the program: ThinLTO does not look into shared ones.
        "//command_line_option:dynamic_mode": "off",
        "//command_line_option:copt": settings["//command_line_option:copt"] + [_THINLTO],
        # Bazel's own ThinLTO would take the bitcode away.
        "//command_line_option:features": settings["//command_line_option:features"] + ["-thin_lto"],
    }

_thinlto_transition = transition(
    implementation = _thinlto_transition_impl,
    inputs = ["//command_line_option:copt", "//command_line_option:features"],
    outputs = [
        "//command_line_option:copt",
        "//command_line_option:dynamic_mode",
        "//command_line_option:features",
    ],
)

def _linker_inputs(target, ctx):
    """What the target's dependencies bring to a link."""
    deps = getattr(ctx.rule.attr, "deps", []) or []
    malloc = getattr(ctx.rule.attr, "malloc", None)
    extra = getattr(ctx.rule.attr, "link_extra_lib", None)
    infos = [dep[CcInfo] for dep in deps + [malloc, extra] if dep and CcInfo in dep]
    if CcInfo in target:
        infos.append(target[CcInfo])
    return [one for info in infos for one in info.linking_context.linker_inputs.to_list()]

def _link_aspect_impl(target, ctx):
    executable = target[DefaultInfo].files_to_run.executable
    outputs = [executable] if executable else []
    outputs += target[DefaultInfo].files.to_list()
    for action in target.actions:
        if action.mnemonic != "CppLink" or not action.argv:
            continue
        made = [file for file in action.outputs.to_list() if file in outputs]
        if not made:
            continue
        objects = {}
        for one in _linker_inputs(target, ctx):
            for library in one.libraries:
                if library.static_library:
                    objects[library.static_library.path] = library.objects
                if library.pic_static_library:
                    objects[library.pic_static_library.path] = library.pic_objects
        return [_CcLinkInfo(output = made[0], argv = action.argv, inputs = action.inputs, objects = objects)]
    return []

_link_aspect = aspect(implementation = _link_aspect_impl)

def _words(link, output):
    """The words of the link after the driver, with objects in place of libraries, and the objects."""
    by_path = {file.path: file for file in link.inputs.to_list()}
    words = []
    objects = []
    replaced = {}
    unknown = False
    whole = False
    skip = False
    for word in link.argv[1:]:
        if skip:
            skip = False
            continue
        if word == "-o":
            skip = True
        elif word.startswith("-fuse-ld=") or word.startswith("--ld-path="):
            pass
        elif word in ["-Wl,-whole-archive", "-Wl,--whole-archive"]:
            whole = True
            words.append(word)
        elif word in ["-Wl,-no-whole-archive", "-Wl,--no-whole-archive"]:
            whole = False
            words.append(word)
        elif link.objects.get(word):
            of_library = link.objects[word]
            replaced[word] = None
            objects += of_library
            words += [] if whole else ["-Wl,--start-lib"]
            words += [file.path for file in of_library]
            words += [] if whole else ["-Wl,--end-lib"]
        else:
            file = by_path.get(word)
            if file and file.extension in ["o", "obj"] and not file.is_directory:
                objects.append(file)
            elif file and (file.is_directory or file.extension in ["a", "lo", "rlib", "lib"]):
                unknown = True
            words.append(word)
    files = [file for path, file in by_path.items() if path not in replaced]
    return struct(
        words = words + ["-o", output.path],
        objects = objects,
        unknown = unknown,
        inputs = depset(files + objects),
    )

def _distlto_link_impl(ctx):
    binary = ctx.attr.binary[0] if type(ctx.attr.binary) == "list" else ctx.attr.binary
    if _CcLinkInfo not in binary:
        fail("{}: {} is linked by no action of the cc rules: `binary` is a cc_binary, cc_test or cc_shared_library".format(ctx.label, binary.label))
    compiler = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo].compiler
    if compiler == "gcc":
        fail("{}: the registered cc_toolchain is GCC, which has no ThinLTO; register clang, such as by `--repo_env=CC=clang`".format(ctx.label))
    toolchain = find_toolchain(ctx)
    cc = binary[_CcLinkInfo]
    suffix = ".so" if ".so" in cc.output.basename and not ctx.label.name.endswith(".so") else ""
    output = ctx.actions.declare_file(ctx.label.name + suffix)
    found = _words(cc, output)
    line = ctx.actions.args()
    line.use_param_file("@%s", use_always = True)
    line.set_param_file_format("shell")
    line.add_all(found.words)
    line.add_all([_THINLTO, "-fuse-ld=lld", "--ld-path=" + toolchain.lld])
    line.add_all(toolchain.linkopts)
    linked = link(
        ctx,
        output,
        line = line,
        objects = found.objects,
        unknown = found.unknown,
        inputs = found.inputs,
        driver = cc.argv[0],
        fission = ctx.attr.fission,
    )
    old = binary[DefaultInfo].default_runfiles
    files = [file for file in old.files.to_list() if file != cc.output]
    runfiles = ctx.runfiles(
        files = [output] + files + ctx.files.data,
        symlinks = {entry.path: entry.target_file for entry in old.symlinks.to_list()},
        root_symlinks = {entry.path: entry.target_file for entry in old.root_symlinks.to_list()},
    )
    return [
        DefaultInfo(executable = output, files = depset([output]), runfiles = runfiles),
        linked,
    ]

_ATTRIBUTES = dict(TOOLCHAIN, **{
    "binary": attr.label(
        doc = "A cc_binary, cc_test or cc_shared_library; it is compiled anew, to bitcode, and is itself not changed",
        aspects = [_link_aspect],
        cfg = _thinlto_transition,
        mandatory = True,
    ),
    "data": attr.label_list(doc = "Files that the program needs when it runs, besides those of `binary`", allow_files = True),
    "fission": attr.bool(doc = "Pack split debug information into NAME.dwp (output group `dwp`); `binary` is compiled with -g"),
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
})

distlto_link = rule(
    doc = "An existing cc_binary or cc_shared_library, linked by distributed ThinLTO.",
    implementation = _distlto_link_impl,
    attrs = _ATTRIBUTES,
    executable = True,
)

distlto_link_test = rule(
    doc = "An existing cc_test, linked by distributed ThinLTO.",
    implementation = _distlto_link_impl,
    attrs = _ATTRIBUTES,
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

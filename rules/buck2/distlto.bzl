"""Distributed ThinLTO as rules of their own: distlto_binary, distlto_test, distlto_shared_library, distlto_library,
distlto_prebuilt_library and the toolchain they use.

Loads nothing and uses Buck2's core API only, so it does not depend on the version of the prelude. A link is three steps:

  thin link -> one backend for each loaded module -> final link

The thin link runs the driver on the link's line, and has the linker do its thin link and no more. It writes an action
graph, an index shard for each module, and the modules in archives. One dynamic_output reads the graph and declares the
backends. A backend's inputs are its module, its shard and exactly the modules it imports: of an archive only the imported
members. Modules that the linker does not load are not compiled.

The final link runs the driver on the same line again. The linker does its thin link once more, and takes the native object
that the graph names for each module. So the program is the linker's own.

Formats: docs/action-graph.md of the distlto repository.
"""

# --- tools and toolchain ---------------------------------------------------------------------------------------------

def _tool_impl(ctx: AnalysisContext) -> list[Provider]:
    command = cmd_args()
    if ctx.attrs.installation != None:
        command.add(cmd_args(ctx.attrs.installation, format = "{}/bin/distlto"))
    command.add(ctx.attrs.command)
    return [DefaultInfo(), RunInfo(args = command)]

distlto_tool = rule(
    doc = "A program with leading arguments.",
    impl = _tool_impl,
    attrs = {
        "command": attrs.list(attrs.arg(), doc = "A program of PATH or an absolute one, and arguments; only arguments where `installation` is given"),
        "installation": attrs.option(attrs.source(allow_directory = True), default = None, doc = "A directory with distlto in `bin`"),
    },
)

DistltoToolchainInfo = provider(
    doc = "What compiles and links. Programs are RunInfo, flags are lists of arguments.",
    fields = [
        "c_compiler",
        "c_compiler_flags",
        "cxx_compiler",
        "cxx_compiler_flags",
        "linker_flags",
        "dwp",
        "split_debug_mode",
        "distlto",
    ],
)

def _toolchain_impl(ctx: AnalysisContext) -> list[Provider]:
    return [
        DefaultInfo(),
        DistltoToolchainInfo(
            c_compiler = ctx.attrs.c_compiler[RunInfo],
            c_compiler_flags = ctx.attrs.c_compiler_flags,
            cxx_compiler = ctx.attrs.cxx_compiler[RunInfo],
            cxx_compiler_flags = ctx.attrs.cxx_compiler_flags,
            linker_flags = ctx.attrs.linker_flags,
            dwp = ctx.attrs.dwp[RunInfo],
            split_debug_mode = ctx.attrs.split_debug_mode,
            distlto = ctx.attrs.distlto[RunInfo],
        ),
    ]

_distlto_toolchain = rule(
    doc = "The compilers, the linker and distlto for the rules of this file.",
    impl = _toolchain_impl,
    is_toolchain_rule = True,
    attrs = {
        "c_compiler": attrs.exec_dep(providers = [RunInfo]),
        "c_compiler_flags": attrs.list(attrs.arg(), default = []),
        "cxx_compiler": attrs.exec_dep(providers = [RunInfo]),
        "cxx_compiler_flags": attrs.list(attrs.arg(), default = []),
        "distlto": attrs.exec_dep(providers = [RunInfo]),
        "dwp": attrs.exec_dep(providers = [RunInfo]),
        "linker_flags": attrs.list(attrs.arg(), default = []),
        "split_debug_mode": attrs.enum(["none", "split"], default = "none", doc = "Where debug information goes: with the code, or into .dwo files"),
    },
)

def _llvm_name(llvm, program: str) -> str:
    """`clang` of the LLVM that `llvm` names: a major version, a directory of programs, or None for plain names."""
    if llvm == None:
        return program
    llvm = str(llvm)
    return "{}/{}".format(llvm, program) if "/" in llvm else "{}-{}".format(program, llvm)

def _distlto_program(name: str, distlto: str, words: list[str], visibility = []) -> str:
    """Declares a target for distlto with these leading words and gives its name. `distlto` as in `distlto_toolchain`."""
    if distlto.startswith("./"):
        distlto_tool(name = name, installation = distlto[2:], command = words, visibility = visibility)
    elif distlto.startswith(":") or "//" in distlto:
        distlto_tool(name = name, installation = distlto, command = words, visibility = visibility)
    else:
        # Buck2 prefers what has a bare name in the project's root, be it a directory, to a program of PATH.
        found = [distlto] if "/" in distlto else ["/usr/bin/env", distlto]
        distlto_tool(name = name, command = found + words, visibility = visibility)
    return ":" + name

def distlto_programs(name: str, distlto = "distlto", visibility = []) -> dict[str, str]:
    """Declares a target for each of the tools that the prelude needs and gives their names, by tool."""
    return {
        tool: _distlto_program("{}-{}".format(name, tool), distlto, [subcommand], visibility)
        for tool, subcommand in {
            "archive_mapper": "archive-mapper",
            "compiler_stats_merger": "compiler-stats-merger",
            "copy": "copy",
            "opt": "opt",
            "planner": "index",
            "prepare": "prepare",
        }.items()
    }

def llvm_programs(name: str, llvm, programs: list[str], visibility = []) -> dict[str, str]:
    """Declares a target for each of LLVM's programs and gives their names. `llvm` as in `distlto_toolchain`."""
    targets = {}
    for program in programs:
        target = "{}-{}".format(name, program)
        distlto_tool(name = target, command = [_llvm_name(llvm, program)], visibility = visibility)
        targets[program] = ":" + target
    return targets

def lld_flags(llvm = None) -> list[str]:
    """
    What makes clang link with the lld of the same LLVM.

    clang looks for ld.lld beside itself first. It does not find `--ld-path=ld.lld-22` without PATH, as on a remote worker.
    """
    directory = llvm != None and "/" in str(llvm)
    return ["-fuse-ld=lld"] + (["--ld-path=" + _llvm_name(llvm, "ld.lld")] if directory else [])

def distlto_toolchain(name: str, llvm = None, distlto = "distlto", linker_flags = [], visibility = ["PUBLIC"], **kwargs):
    """
    The toolchain of the rules of this file.

    `llvm`: 22 for `clang-22`, ...; a directory for the programs in it; None for those of PATH.
    `distlto`: a name of PATH, an absolute path, or an installation in the project (`./distlto`, or a label of a directory).
    Flags: c_compiler_flags, cxx_compiler_flags, linker_flags. `split_debug_mode`: "none" or "split".
    """
    clang = llvm_programs(name, llvm, ["clang", "clang++", "llvm-dwp"])
    _distlto_toolchain(
        name = name,
        c_compiler = clang["clang"],
        cxx_compiler = clang["clang++"],
        distlto = _distlto_program(name + "-distlto", distlto, []),
        dwp = clang["llvm-dwp"],
        linker_flags = lld_flags(llvm) + linker_flags,
        visibility = visibility,
        **kwargs
    )

# --- libraries -------------------------------------------------------------------------------------------------------

# A shared library and the name by which programs look for it.
_Shared = record(
    soname = str,
    library = Artifact,
)

# What one target adds to a link.
_Node = record(
    # Names the node's files in the link that takes it; the same whatever else is linked.
    name = str,
    # Objects, bitcode or not.
    objects = field(list[Artifact], []),
    archives = field(list[Artifact], []),
    # Shared libraries.
    shared = field(list[_Shared], []),
    # Flags of every link that takes the node.
    flags = field(list, []),
    # Whether every object and member is linked, used or not.
    link_whole = field(bool, False),
    # Directory of exported headers.
    headers = field(Artifact | None, None),
    # Files that a program finds beside itself, by name.
    resources = field(dict[str, Artifact], {}),
)

def _include_flags(node):
    return cmd_args(node.headers, format = "-I{}") if node.headers != None else cmd_args()

_NodeSet = transitive_set(args_projections = {"include": _include_flags})

DistltoLinkInfo = provider(
    doc = "A target that can be linked: its own objects and those of what it depends on.",
    fields = ["nodes"],
)

_SOURCES = [".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".S", ".s"]

def _ascii(name: str) -> str:
    """A name for an object: LLVM garbles other names in index shards, so no backend would find the module."""
    return "".join([letter if ord(letter) < 128 else "_{}_".format(ord(letter)) for letter in name.elems()])

def _declare(ctx: AnalysisContext, *path, dir = False) -> Artifact:
    """An output. Its path does not change with its content: modules are named by their paths."""
    return ctx.actions.declare_output(dir = dir, has_content_based_path = False, *path)

def _node_name(ctx: AnalysisContext) -> str:
    package = ctx.label.package
    return "{}/{}".format(package, ctx.label.name) if package else ctx.label.name

def _dep_sets(ctx: AnalysisContext) -> list:
    for dep in ctx.attrs.deps:
        if DistltoLinkInfo not in dep:
            fail("{}: {} is no library of distlto's rules, so this target cannot link it. Declare it as distlto_library or distlto_prebuilt_library; or make this target a cxx_binary of the prelude with `enable_distributed_thinlto = True`, which links cxx_library".format(ctx.label, dep))
    return [dep[DistltoLinkInfo].nodes for dep in ctx.attrs.deps]

def _by_short_path(ctx: AnalysisContext, attribute: str, files: list[Artifact]) -> dict[str, Artifact]:
    found = {}
    for file in files:
        if file.short_path in found:
            fail("{}: two files among `{}` are named `{}` in their packages".format(ctx.label, attribute, file.short_path))
        found[file.short_path] = file
    return found

def _header_dir(ctx: AnalysisContext) -> Artifact | None:
    if not ctx.attrs.headers:
        return None
    return ctx.actions.symlinked_dir(_declare(ctx, "headers", dir = True), _by_short_path(ctx, "headers", ctx.attrs.headers))

def _resources(ctx: AnalysisContext) -> dict[str, Artifact]:
    resources = ctx.attrs.resources
    return resources if isinstance(resources, dict) else _by_short_path(ctx, "resources", resources)

def _compile(ctx: AnalysisContext, headers: Artifact | None, deps: list, flags: list) -> list[Artifact]:
    """Compiles `srcs` to bitcode; objects and bitcode among them are taken as they are."""
    toolchain = ctx.attrs.toolchain[DistltoToolchainInfo]
    include = cmd_args()
    if headers != None:
        include.add(cmd_args(headers, format = "-I{}"))
    for dep in deps:
        include.add(dep.project_as_args("include"))
    names = {}
    objects = []
    for src in ctx.attrs.srcs:
        # Sources of other packages may have the name of one of this package.
        name = _unique(names, _ascii(src.short_path))
        names[name] = None
        extension = src.extension
        if extension == ".bc":
            # A driver would compile a file of this name instead of linking it.
            objects.append(ctx.actions.copy_file(_declare(ctx, "objects/" + name + ".o"), src))
        elif extension in (".o", ".obj"):
            objects.append(src)
        elif extension in _SOURCES:
            objects.append(_compile_one(ctx, toolchain, src, name, flags, include))
        else:
            fail("{}: `{}` is no source or object; headers go to `headers`, archives to distlto_prebuilt_library".format(ctx.label, src.short_path))
    return objects

def _compile_one(ctx: AnalysisContext, toolchain: DistltoToolchainInfo, src: Artifact, name: str, flags: list, include) -> Artifact:
    c = src.extension in (".c", ".S", ".s")
    object = _declare(ctx, "objects", name + ".o")
    read = _declare(ctx, "objects", name + ".headers")
    headers = ctx.actions.artifact_tag()
    command = cmd_args(toolchain.distlto, "header-list", "--out", headers.tag_artifacts(read.as_output()), "--")
    command.add(toolchain.c_compiler if c else toolchain.cxx_compiler)
    command.add(toolchain.c_compiler_flags if c else toolchain.cxx_compiler_flags)
    if src.extension not in (".S", ".s"):
        command.add("-flto=thin")
    if toolchain.split_debug_mode != "none":
        # Bitcode is split by its backend; machine code keeps its part in its object, which is not linked either.
        command.add("-gsplit-dwarf=single")
    command.add(flags, ctx.attrs.compiler_flags, headers.tag_artifacts(include))
    command.add("-c", src, "-o", object.as_output())

    # A header that the compiler did not read is no reason to compile again.
    ctx.actions.run(command, category = "distlto_compile", identifier = name, dep_files = {"headers": headers})
    return object

def _library_impl(ctx: AnalysisContext) -> list[Provider]:
    headers = _header_dir(ctx)
    deps = _dep_sets(ctx)

    # The same objects go into programs and shared libraries.
    objects = _compile(ctx, headers, deps, ["-fPIC"])
    node = _Node(
        name = _node_name(ctx),
        objects = objects,
        flags = ctx.attrs.exported_linker_flags,
        link_whole = ctx.attrs.link_whole,
        headers = headers,
        resources = _resources(ctx),
    )
    return [
        DefaultInfo(default_outputs = objects),
        DistltoLinkInfo(nodes = ctx.actions.tset(_NodeSet, value = node, children = deps)),
    ]

def _prebuilt_impl(ctx: AnalysisContext) -> list[Provider]:
    headers = _header_dir(ctx)
    archives = [ctx.attrs.archive] if ctx.attrs.archive != None else []
    shared = [ctx.attrs.shared] if ctx.attrs.shared != None else []
    if len(archives) + len(shared) != 1:
        fail("{}: give either `archive` or `shared`".format(ctx.label))
    node = _Node(
        name = _node_name(ctx),
        archives = archives,
        shared = [_Shared(soname = ctx.attrs.soname or library.basename, library = library) for library in shared],
        flags = ctx.attrs.exported_linker_flags,
        link_whole = ctx.attrs.link_whole,
        headers = headers,
    )
    return [
        DefaultInfo(default_outputs = archives + shared),
        DistltoLinkInfo(nodes = ctx.actions.tset(_NodeSet, value = node, children = _dep_sets(ctx))),
    ]

# --- the link ------------------------------------------------------------------------------------------------------

_Link = record(
    toolchain = DistltoToolchainInfo,
    output = Artifact,
    # The files of the line that hold modules, by the names that actions have.
    files = dict[str, Artifact],
    # The words of the driver after its name, without the output.
    line = typing.Any,
    # The flags among them, which may name files, such as a profile.
    flags = list,
    # What the thin link writes, and its graph.
    index = Artifact,
    plan = Artifact,
    # The paths of `index` and `files`, in order. In Starlark an artifact's path is unknown; the graph holds paths.
    paths = Artifact,
    # The graph with the objects where this build makes them.
    graph = Artifact,
    # The debug information of all modules in one file, where that is split off.
    dwp = Artifact | None,
)

def _unique(names: dict, name: str) -> str:
    if name not in names:
        return name
    return [found for found in ["{}-{}".format(name, count) for count in range(2, len(names) + 3)] if found not in names][0]

def _file_argument(file: Artifact):
    """A file's name as a word of an argument file. Flags stand there as they are: their quoting is the user's."""
    return cmd_args(file, quote = "shell")

def _line(nodes: list, files: dict[str, Artifact]):
    """What the targets of a link add to its line. Adds to `files`."""
    args = cmd_args()
    for node in nodes:
        args.add(node.flags)
        lazy = node.objects and not node.link_whole
        args.add(["-Wl,--start-lib"] if lazy else [])
        args.add([_file_argument(object) for object in node.objects])
        args.add(["-Wl,--end-lib"] if lazy else [])
        whole = node.archives and node.link_whole
        args.add(["-Wl,--whole-archive"] if whole else [])
        args.add([_file_argument(archive) for archive in node.archives])
        args.add(["-Wl,--no-whole-archive"] if whole else [])
        args.add([_file_argument(shared.library) for shared in node.shared])
        for file in node.objects + node.archives:
            files[_unique(files, "{}/{}".format(node.name, file.short_path))] = file
    return args

def _linked(ctx: AnalysisContext, output: Artifact, own: _Node, deps: list, flags: list) -> _Link:
    toolchain = ctx.attrs.toolchain[DistltoToolchainInfo]
    split = toolchain.split_debug_mode == "split"
    dir = output.short_path + ".thinlto"
    files = {}
    nodes = list(ctx.actions.tset(_NodeSet, value = own, children = deps).traverse(ordering = "topological"))
    args = _line(nodes, files)
    argsfile, _ = ctx.actions.write(_declare(ctx, dir, "line"), args, allow_args = True)
    index = _declare(ctx, dir, "index", dir = True)
    link = _Link(
        toolchain = toolchain,
        output = output,
        files = files,
        line = cmd_args(
            toolchain.linker_flags,
            "-flto=thin",
            ["-gsplit-dwarf"] if split else [],
            flags,
            cmd_args(argsfile, format = "@{}"),
            hidden = args,
        ),
        flags = [toolchain.linker_flags, flags] + [node.flags for node in nodes],
        index = index,
        plan = index.project("graph.json"),
        paths = ctx.actions.write_json(_declare(ctx, dir, "paths.json"), [index] + files.values()),
        graph = _declare(ctx, dir, "graph.json"),
        dwp = _declare(ctx, output.short_path + ".dwp") if split else None,
    )
    thin_link = cmd_args(
        toolchain.distlto,
        "index",
        "--index",
        index.as_output(),
        "--",
        toolchain.cxx_compiler,
        link.line,
        "-o",
        cmd_args(output, ignore_artifacts = True),
    )
    ctx.actions.run(thin_link, category = "distlto_thin_link")
    ctx.actions.dynamic_output(
        dynamic = [link.plan, link.paths],
        inputs = [],
        outputs = [file.as_output() for file in [output, link.graph, link.dwp] if file != None],
        f = lambda ctx, artifacts, outputs: _planned(ctx, link, artifacts, outputs),
    )
    return link

def _planned(ctx: AnalysisContext, link: _Link, artifacts, outputs):
    """
    The backends and the final link, in one dynamic output: Buck2 puts what a dynamic output declares below its number,
    which is the same in each build. Buck2 does not run an action again whose command and inputs are those of before.
    """
    graph = artifacts[link.plan].read_json()
    paths = artifacts[link.paths].read_json()
    names = dict(zip(paths[1:], link.files.keys()))
    by_path = dict(zip(paths[1:], link.files.values()))

    def file_of(path):
        rest = path.removeprefix(paths[0] + "/")
        return by_path.get(path) if rest == path else link.index.project(rest)

    made = list(graph["files"])
    natives = []
    dwos = []
    for action in graph["actions"]:
        if action["kind"] != "opt":
            continue
        label = _label(names, action["label"])
        native = _declare(ctx, link.output.short_path + ".thinlto", "native/{}.o".format(label))
        dwo = _declare(ctx, link.output.short_path + ".thinlto", "native/{}.dwo".format(label)) if link.dwp != None else None
        inputs = [file_of(graph["files"][at]) for at in action["inputs"]]
        _run_backend(ctx, link, graph, action, [file for file in inputs if file != None], native, dwo, label)
        natives.append(native)
        made[action["outputs"][0]] = native
        if dwo != None:
            dwos.append(dwo)
    graph_file = ctx.actions.write_json(outputs[link.graph], graph | {"files": made})
    final_link = cmd_args(
        link.toolchain.distlto,
        "link",
        "--graph",
        graph_file,
        "--",
        link.toolchain.cxx_compiler,
        link.line,
        "-o",
        outputs[link.output].as_output(),
        hidden = natives,
    )
    ctx.actions.run(final_link, category = "distlto_link")
    if link.dwp != None:
        dwp = cmd_args(link.toolchain.dwp, dwos, "-o", outputs[link.dwp].as_output())
        ctx.actions.run(dwp, category = "distlto_dwp")

def _label(names: dict[str, str], label: str) -> str:
    """A module's name without the directories that Buck2 gives its file."""
    if label in names:
        return names[label]
    parts = label.split("(")
    for end in range(1, len(parts)):
        archive = "(".join(parts[:end])
        if archive in names:
            return names[archive] + label[len(archive):]
    return label

def _run_backend(ctx: AnalysisContext, link: _Link, graph: dict, action: dict, inputs: list, native: Artifact, dwo: Artifact | None, label: str):
    files = graph["files"]
    module, shard = files[action["inputs"][0]], files[action["inputs"][1]]
    words = (graph["prefixes"][action["prefix"]] if "prefix" in action else []) + action["args"]
    if words[-6:] != ["-x", "ir", module, "-fthinlto-index=" + shard, "-o", files[action["outputs"][0]]]:
        fail("{}: the graph's command for {} is none that these rules know: do they have the version of distlto?".format(ctx.label, label))
    words = words[:-6]
    for at in range(len(words)):
        # The words before it name the file inside of the object, which stays as the linker has it.
        if words[at] == "-split-dwarf-output":
            words[at + 2] = dwo.as_output()
    command = cmd_args(
        link.toolchain.distlto,
        "opt",
        "--out",
        native.as_output(),
        "--input",
        module,
        "--index",
        shard,
        ["--dwo", dwo.as_output()] if dwo != None else [],
        "--",
        words,
        hidden = [inputs, link.flags],
    )
    ctx.actions.run(command, category = "distlto_opt", identifier = label)

def _link_outputs(link: _Link) -> dict[str, list]:
    """What to look at when a link is not as one expects: `buck2 build :app[graph]`."""
    outputs = {"graph": link.graph} | ({"dwp": link.dwp} if link.dwp != None else {})
    return {name: [DefaultInfo(default_output = output)] for name, output in outputs.items()}

def _shared_libraries(ctx: AnalysisContext, deps: list) -> dict[str, Artifact]:
    """The shared libraries of dependencies, by the name that a program looks for."""
    libraries = {}
    for dep in deps:
        for node in dep.traverse(ordering = "topological"):
            for shared in node.shared:
                if libraries.setdefault(shared.soname, shared.library) != shared.library:
                    fail("{}: two shared libraries are named `{}`".format(ctx.label, shared.soname))
    return libraries

def _own_node(ctx: AnalysisContext, objects: list[Artifact], flags: list) -> _Node:
    return _Node(name = _node_name(ctx), objects = objects, flags = ctx.attrs.linker_flags + flags, link_whole = True)

def _runtime_resources(ctx: AnalysisContext, output: Artifact, deps: list) -> list[Artifact]:
    """The list by which a program finds its resources, as the prelude writes it, and the resources."""
    resources = dict(_resources(ctx))
    for dep in deps:
        for node in dep.traverse(ordering = "topological"):
            for name, resource in node.resources.items():
                if resources.setdefault(name, resource) != resource:
                    fail("{}: two resources are named `{}`".format(ctx.label, name))
    if not resources:
        return []
    places = {
        name: cmd_args(resource, delimiter = "", relative_to = (output, 1))
        for name, resource in resources.items()
    }
    return [ctx.actions.write_json(_declare(ctx, output.short_path + ".resources.json"), places)] + resources.values()

def _program(ctx: AnalysisContext) -> list[Provider]:
    deps = _dep_sets(ctx)
    objects = _compile(ctx, _header_dir(ctx), deps, [])
    output = _declare(ctx, ctx.label.name)
    runtime = _runtime_resources(ctx, output, deps)
    shared = _shared_libraries(ctx, deps)
    run_paths = []
    if shared:
        # One directory with all libraries under the names that the loader looks for.
        tree = _declare(ctx, "__{}__shared_libs_symlink_tree".format(output.short_path), dir = True)
        ctx.actions.symlinked_dir(tree, shared)
        runtime = runtime + [tree] + shared.values()
        run_paths.append(cmd_args(tree, format = "-Wl,-rpath,$ORIGIN/{}", relative_to = (output, 1), ignore_artifacts = True))
    link = _linked(ctx, output, _own_node(ctx, objects, run_paths), deps, [])
    return [
        DefaultInfo(default_output = output, other_outputs = runtime, sub_targets = _link_outputs(link)),
        RunInfo(args = cmd_args(output, hidden = runtime)),
    ]

def _binary_impl(ctx: AnalysisContext) -> list[Provider]:
    return _program(ctx)

def _test_impl(ctx: AnalysisContext) -> list[Provider]:
    info, run = _program(ctx)
    test = ExternalRunnerTestInfo(
        type = "custom",
        command = [run.args] + ctx.attrs.args,
        env = ctx.attrs.env,
        labels = ctx.attrs.labels,
    )
    return [info, run, test]

def _shared_library_impl(ctx: AnalysisContext) -> list[Provider]:
    deps = _dep_sets(ctx)
    headers = _header_dir(ctx)
    objects = _compile(ctx, headers, deps, ["-fPIC"])
    soname = ctx.attrs.soname or "lib{}.so".format(ctx.label.name)
    output = _declare(ctx, soname)

    # The libraries that it needs lie beside it in the program's directory of libraries.
    flags = ["-shared", "-Wl,-soname," + soname, "-Wl,-rpath,$ORIGIN"]
    link = _linked(ctx, output, _own_node(ctx, objects, []), deps, flags)

    # Who links against the library sees its headers and those of its dependencies, and none of their objects.
    exported = _Node(
        name = _node_name(ctx),
        shared = [_Shared(soname = soname, library = output)],
        flags = ctx.attrs.exported_linker_flags,
        headers = headers,
        resources = _resources(ctx),
    )
    includes = [
        ctx.actions.tset(_NodeSet, value = _Node(
            name = node.name,
            shared = node.shared,
            headers = node.headers,
            resources = node.resources,
        ))
        for dep in deps
        for node in dep.traverse(ordering = "topological")
        if node.headers != None or node.shared or node.resources
    ]
    return [
        DefaultInfo(default_output = output, sub_targets = _link_outputs(link)),
        DistltoLinkInfo(nodes = ctx.actions.tset(_NodeSet, value = exported, children = includes)),
    ]

# --- rules -----------------------------------------------------------------------------------------------------------

_TOOLCHAIN = {
    "toolchain": attrs.toolchain_dep(
        default = "toolchains//:distlto",
        providers = [DistltoToolchainInfo],
        doc = "A distlto_toolchain",
    ),
}

_DEPS = {
    # Which provider a dependency must have is checked by _dep_sets, whose error says what to do.
    "deps": attrs.list(attrs.dep(), default = [], doc = "Libraries of this file's rules"),
    "headers": attrs.list(attrs.source(), default = [], doc = "Headers, found by their path below the package; dependents of a library find them too"),
}

_EXPORTS = {
    "exported_linker_flags": attrs.list(attrs.arg(), default = [], doc = "Flags of each link that takes this library"),
}

_COMPILES = {
    "compiler_flags": attrs.list(attrs.arg(), default = []),
    "srcs": attrs.list(attrs.source(), default = [], doc = "C, C++ and assembly sources, objects and bitcode files"),
}

_LINKS = {
    "linker_flags": attrs.list(attrs.arg(), default = [], doc = "Flags of the compiler driver, for both links and, where they concern code generation, the backends"),
}

_LINK_WHOLE = {
    "link_whole": attrs.bool(default = False, doc = "Link every object, used or not"),
}

_RESOURCES = {
    "resources": attrs.named_set(attrs.source(allow_directory = True), sorted = True, default = [], doc = "Files that a program finds by <program>.resources.json: a list, named by their path below the package, or a dict by name"),
}

_PROGRAM = _COMPILES | _DEPS | _LINKS | _RESOURCES | _TOOLCHAIN

distlto_library = rule(
    doc = "C and C++ sources compiled to ThinLTO bitcode.",
    impl = _library_impl,
    attrs = _COMPILES | _DEPS | _EXPORTS | _LINK_WHOLE | _RESOURCES | _TOOLCHAIN,
)

distlto_prebuilt_library = rule(
    doc = "An archive or a shared library that this project does not compile.",
    impl = _prebuilt_impl,
    attrs = {
        "archive": attrs.option(attrs.source(), default = None),
        "shared": attrs.option(attrs.source(), default = None),
        "soname": attrs.option(attrs.string(), default = None, doc = "The name that is written in the shared library; its file's where absent"),
    } | _DEPS | _EXPORTS | _LINK_WHOLE,
)

distlto_binary = rule(
    doc = "A program, linked by distributed ThinLTO.",
    impl = _binary_impl,
    attrs = _PROGRAM,
)

distlto_test = rule(
    doc = "A program that is a test: `buck2 test` runs it, and it has passed if it exits with 0.",
    impl = _test_impl,
    attrs = {
        "args": attrs.list(attrs.arg(), default = []),
        "env": attrs.dict(attrs.string(), attrs.arg(), default = {}),
        "labels": attrs.list(attrs.string(), default = []),
    } | _PROGRAM,
)

distlto_shared_library = rule(
    doc = "A shared library, linked by distributed ThinLTO.",
    impl = _shared_library_impl,
    attrs = {
        "soname": attrs.option(attrs.string(), default = None, doc = "lib<name>.so where absent"),
    } | _COMPILES | _DEPS | _EXPORTS | _LINKS | _RESOURCES | _TOOLCHAIN,
)

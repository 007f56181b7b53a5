"""Distributed ThinLTO as rules of their own: distlto_binary, distlto_test, distlto_shared_library, distlto_library,
distlto_prebuilt_library and the toolchain they use.

Loads nothing and uses Buck2's core API only, so it does not depend on the version of the prelude. A link is four steps:

  archives to members -> thin link -> one backend for each loaded module -> final link

The thin link writes shards and plans; what a backend reads is known only then, so each backend is declared by a
dynamic_output that reads its own plan. A backend's inputs are its module, its shard and exactly the modules it imports:
of an archive only the imported members. Members that the linker does not load are not compiled.

Formats of the files between the steps: docs/buck2-files.md of the distlto repository.
"""

# --- tools and toolchain ---------------------------------------------------------------------------------------------

def _tool_impl(ctx: AnalysisContext) -> list[Provider]:
    command = cmd_args()
    if ctx.attrs.src != None:
        command.add(ctx.attrs.src)
    command.add(ctx.attrs.command)
    if ctx.attrs.src == None and not ctx.attrs.command:
        fail("{}: give `src`, `command` or both".format(ctx.label))
    return [DefaultInfo(), RunInfo(args = command)]

distlto_tool = rule(
    doc = "A program with leading arguments: a checked-in executable, or a name that is looked up in PATH.",
    impl = _tool_impl,
    attrs = {
        "command": attrs.list(attrs.arg(), default = [], doc = "A program of PATH or an absolute one, and arguments; only arguments where `src` is given"),
        "src": attrs.option(attrs.source(), default = None, doc = "An executable of the project"),
    },
)

DistltoToolchainInfo = provider(
    doc = "What compiles and links. Programs are RunInfo, flags are lists of arguments.",
    fields = [
        "c_compiler",
        "c_compiler_flags",
        "cxx_compiler",
        "cxx_compiler_flags",
        "linker",  # a compiler driver
        "linker_flags",
        "archiver",
        "dwp",
        "split_debug_mode",
        "header_list",
        "prepare",
        "planner",
        "opt",
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
            linker = ctx.attrs.linker[RunInfo],
            linker_flags = ctx.attrs.linker_flags,
            archiver = ctx.attrs.archiver[RunInfo],
            dwp = ctx.attrs.dwp[RunInfo],
            split_debug_mode = ctx.attrs.split_debug_mode,
            header_list = ctx.attrs.header_list[RunInfo],
            prepare = ctx.attrs.prepare[RunInfo],
            planner = ctx.attrs.planner[RunInfo],
            opt = ctx.attrs.opt[RunInfo],
        ),
    ]

_distlto_toolchain = rule(
    doc = "The compilers, the linker and distlto's tools for the rules of this file.",
    impl = _toolchain_impl,
    is_toolchain_rule = True,
    attrs = {
        "archiver": attrs.exec_dep(providers = [RunInfo]),
        "c_compiler": attrs.exec_dep(providers = [RunInfo]),
        "c_compiler_flags": attrs.list(attrs.arg(), default = []),
        "cxx_compiler": attrs.exec_dep(providers = [RunInfo]),
        "cxx_compiler_flags": attrs.list(attrs.arg(), default = []),
        "dwp": attrs.exec_dep(providers = [RunInfo]),
        "header_list": attrs.exec_dep(providers = [RunInfo]),
        "linker": attrs.exec_dep(providers = [RunInfo]),
        "linker_flags": attrs.list(attrs.arg(), default = []),
        "opt": attrs.exec_dep(providers = [RunInfo]),
        "planner": attrs.exec_dep(providers = [RunInfo]),
        "prepare": attrs.exec_dep(providers = [RunInfo]),
        "split_debug_mode": attrs.enum(["none", "single", "split"], default = "none", doc = "Where debug information goes: with the code, into parts of the objects that are not linked, or into .dwo files"),
    },
)

def _llvm_name(llvm, program: str) -> str:
    """`clang` of the LLVM that `llvm` names: a major version, a directory of programs, or None for plain names."""
    if llvm == None:
        return program
    llvm = str(llvm)
    return "{}/{}".format(llvm, program) if "/" in llvm else "{}-{}".format(program, llvm)

def distlto_programs(name: str, distlto = "distlto", visibility = []) -> dict[str, str]:
    """
    Declares a target for each of distlto's tools and gives their names, by tool.

    `distlto` is where the program is: a name of PATH, an absolute path, or the label of a checked-in executable
    (`:distlto-bin`, `bin/distlto` with a leading `./`).
    """
    programs = {}
    for tool, subcommand in {
        "archive_mapper": "archive-mapper",
        "compiler_stats_merger": "compiler-stats-merger",
        "copy": "copy",
        "header_list": "header-list",
        "opt": "opt",
        "planner": "index",
        "prepare": "prepare",
    }.items():
        target = "{}-{}".format(name, tool)
        if distlto.startswith("./"):
            distlto_tool(name = target, src = distlto[2:], command = [subcommand], visibility = visibility)
        elif distlto.startswith(":") or "//" in distlto:
            distlto_tool(name = target, src = distlto, command = [subcommand], visibility = visibility)
        else:
            # Buck2 prefers what has a bare name in the project's root, be it a directory, to a program of PATH.
            found = [distlto] if "/" in distlto else ["/usr/bin/env", distlto]
            distlto_tool(name = target, command = found + [subcommand], visibility = visibility)
        programs[tool] = ":" + target
    return programs

def llvm_programs(name: str, llvm = None, programs = ["clang", "clang++", "llvm-ar", "llvm-dwp"], visibility = []) -> dict[str, str]:
    """Declares a target for each of LLVM's programs and gives their names. `llvm` as in `distlto_toolchain`."""
    targets = {}
    for program in programs:
        target = "{}-{}".format(name, program)
        distlto_tool(name = target, command = [_llvm_name(llvm, program)], visibility = visibility)
        targets[program] = ":" + target
    return targets

def lld_flags(llvm = None) -> list[str]:
    """What makes clang link with the lld of the same LLVM."""
    return ["-fuse-ld=lld"] + ([] if llvm == None else ["--ld-path=" + _llvm_name(llvm, "ld.lld")])

def distlto_toolchain(name: str, llvm = None, distlto = "distlto", linker_flags = [], visibility = ["PUBLIC"], **kwargs):
    """
    The toolchain of the rules of this file.

    `llvm`: 22 for `clang-22`, `ld.lld-22`, ...; a directory for the programs in it; None for those of PATH.
    `distlto`: as in `distlto_programs`.
    Flags: c_compiler_flags, cxx_compiler_flags, linker_flags. `split_debug_mode`: "none", "single" or "split".
    """
    clang = llvm_programs(name, llvm)
    tools = distlto_programs(name, distlto)
    _distlto_toolchain(
        name = name,
        archiver = clang["llvm-ar"],
        c_compiler = clang["clang"],
        cxx_compiler = clang["clang++"],
        dwp = clang["llvm-dwp"],
        header_list = tools["header_list"],
        linker = clang["clang++"],
        linker_flags = lld_flags(llvm) + linker_flags,
        opt = tools["opt"],
        planner = tools["planner"],
        prepare = tools["prepare"],
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
    # Archives of bitcode: unpacked, their members are compiled by backends.
    archives = field(list[Artifact], []),
    # Archives that reach the linker as they are.
    opaque = field(list[Artifact], []),
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
    return ctx.actions.symlinked_dir("headers", _by_short_path(ctx, "headers", ctx.attrs.headers))

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
        name = _unique(names, src.short_path)
        extension = src.extension
        if extension == ".bc":
            # A driver would compile a file of this name instead of linking it.
            objects.append(ctx.actions.copy_file("objects/" + name + ".o", src))
        elif extension in (".o", ".obj"):
            objects.append(src)
        elif extension in _SOURCES:
            objects.append(_compile_one(ctx, toolchain, src, name, flags, include))
        else:
            fail("{}: `{}` is no source or object; headers go to `headers`, archives to distlto_prebuilt_library".format(ctx.label, src.short_path))
    return objects

def _compile_one(ctx: AnalysisContext, toolchain: DistltoToolchainInfo, src: Artifact, name: str, flags: list, include) -> Artifact:
    c = src.extension in (".c", ".S", ".s")
    object = ctx.actions.declare_output("objects", name + ".o")
    read = ctx.actions.declare_output("objects", name + ".headers")
    headers = ctx.actions.artifact_tag()
    command = cmd_args(toolchain.header_list, "--out", headers.tag_artifacts(read.as_output()), "--")
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
        archives = archives if ctx.attrs.supports_lto else [],
        opaque = [] if ctx.attrs.supports_lto else archives,
        shared = [_Shared(soname = ctx.attrs.soname or library.basename, library = library) for library in shared],
        flags = ctx.attrs.exported_linker_flags,
        link_whole = ctx.attrs.link_whole,
        headers = headers,
    )
    return [
        DefaultInfo(default_outputs = archives + shared),
        DistltoLinkInfo(nodes = ctx.actions.tset(_NodeSet, value = node, children = _dep_sets(ctx))),
    ]

# --- the link --------------------------------------------------------------------------------------------------------

# One object of the link.
_Object = record(
    name = str,
    object = Artifact,
    native = Artifact,
    # Its debug information, where that is split off.
    dwo = Artifact | None,
)

# One unpacked archive of the link.
_Archive = record(
    name = str,
    # Path below which its files lie, without the directory that Buck2 gives the target.
    dir = str,
    manifest = Artifact,
    members = Artifact,
    shards = Artifact,
    plan = Artifact,
    native = Artifact,
    # Directory of the members' debug information, where that is split off.
    dwo = Artifact | None,
)

# A run of inputs that flags stand before.
_Entry = record(
    flags = list,
    link_whole = bool,
    # Indices into _Link.units.
    objects = list[int],
    archives = list[int],
    opaque = list[Artifact],
    shared = list[_Shared],
)

_Link = record(
    toolchain = DistltoToolchainInfo,
    output = Artifact,
    # Directory of the link's own files, as _Archive.dir.
    dir = str,
    # Flags of the driver, before all inputs.
    flags = list,
    entries = list[_Entry],
    # _Object or _Archive; the index is the one that the plans use.
    units = list,
    # What the thin link writes.
    shards = Artifact,
    link_plan = Artifact,
    final_link_index = Artifact,
    argsfile = Artifact,
    # The argument file of the final link.
    final_argsfile = Artifact,
    # Its debug information in one file, where that is split off.
    dwp = Artifact | None,
    # The flags of the link, from which backends derive theirs.
    backend_flags = Artifact,
)

# Inside Starlark an object's path is unknown; a path that a tool wrote is recognised by the part that this file chose.
def _below(path: str, dir: str) -> str | None:
    """The rest of a path below `dir`, or None where the path does not lie there."""
    at = path.find("/" + dir + "/")
    return None if at < 0 else path[at + len(dir) + 2:]

def _unique(names: dict[str, int], name: str) -> str:
    count = names.get(name, 0) + 1
    names[name] = count
    return name if count == 1 else _unique(names, "{}-{}".format(name, count))

def _plan_link(ctx: AnalysisContext, output: Artifact, nodes: list, flags: list) -> _Link:
    toolchain = ctx.attrs.toolchain[DistltoToolchainInfo]
    dir = output.short_path + ".thinlto"
    split = toolchain.split_debug_mode == "split"
    names = {}
    units = []
    entries = []

    for node in nodes:
        entry = _Entry(flags = node.flags, link_whole = node.link_whole, objects = [], archives = [], opaque = node.opaque, shared = node.shared)
        for object in node.objects:
            name = _unique(names, "{}/{}".format(node.name, object.short_path))
            entry.objects.append(len(units))
            units.append(_Object(
                name = name,
                object = object,
                native = ctx.actions.declare_output(dir, "native/{}.o".format(name)),
                dwo = ctx.actions.declare_output(dir, "native/{}.dwo".format(name)) if split else None,
            ))
        for archive in node.archives:
            name = _unique(names, "{}/{}".format(node.name, archive.short_path))
            place = "{}/archives/{}".format(dir, name)
            entry.archives.append(len(units))
            units.append(_unpack(ctx, toolchain, archive, name, place))
        entries.append(entry)

    # One flag a line, as it stands: no response file.
    backend_flags, _ = ctx.actions.write(
        dir + "/backend_flags",
        cmd_args(toolchain.linker, toolchain.linker_flags, flags, [entry.flags for entry in entries]),
        allow_args = True,
    )

    return _Link(
        toolchain = toolchain,
        output = output,
        dir = dir,
        flags = flags,
        entries = entries,
        units = units,
        shards = ctx.actions.declare_output(dir, "shards", dir = True),
        link_plan = ctx.actions.declare_output(dir, "link-plan.json"),
        final_link_index = ctx.actions.declare_output(dir, "final_link_index"),
        argsfile = ctx.actions.declare_output(dir, "link.thinlto_index_argsfile"),
        final_argsfile = ctx.actions.declare_output(dir, "final_link_argsfile"),
        dwp = ctx.actions.declare_output(output.short_path + ".dwp") if split else None,
        backend_flags = backend_flags,
    )

def _unpack(ctx: AnalysisContext, toolchain: DistltoToolchainInfo, archive: Artifact, name: str, place: str) -> _Archive:
    unpacked = _Archive(
        name = name,
        dir = place,
        manifest = ctx.actions.declare_output(place, "manifest.json"),
        members = ctx.actions.declare_output(place, "objects", dir = True),
        shards = ctx.actions.declare_output(place, "shards", dir = True),
        plan = ctx.actions.declare_output(place, "plan.json"),
        native = ctx.actions.declare_output(place, "native", dir = True),
        dwo = ctx.actions.declare_output(place, "dwo", dir = True) if toolchain.split_debug_mode == "split" else None,
    )
    command = cmd_args(
        toolchain.prepare,
        "--manifest-out",
        unpacked.manifest.as_output(),
        "--objects-out",
        unpacked.members.as_output(),
        "--ar",
        toolchain.archiver,
        "--archive",
        archive,
        "--name",
        name,
    )
    ctx.actions.run(command, category = "distlto_prepare", identifier = name)
    return unpacked

def _thin_link(ctx: AnalysisContext, link: _Link):
    """Declares the thin link. It has to know the archives' members, so it waits for their manifests."""
    archives = [unit for unit in link.units if isinstance(unit, _Archive)]

    def run(ctx: AnalysisContext, artifacts, outputs):
        _run_thin_link(
            ctx,
            link,
            {archive.name: artifacts[archive.manifest].read_json()["objects"] for archive in archives},
            lambda artifact: outputs[artifact],
        )

    if archives:
        outputs = [link.shards, link.link_plan, link.final_link_index, link.argsfile]
        for archive in archives:
            outputs += [archive.shards, archive.plan]
        ctx.actions.dynamic_output(
            dynamic = [archive.manifest for archive in archives],
            inputs = [],
            outputs = [output.as_output() for output in outputs],
            f = run,
        )
    else:
        _run_thin_link(ctx, link, {}, lambda artifact: artifact)

def _run_thin_link(ctx: AnalysisContext, link: _Link, manifests: dict[str, list], bound):
    """`bound` gives the artifact by which an output is bound here."""
    args = cmd_args()
    meta = []
    shards = bound(link.shards)
    for entry in link.entries:
        linkables = []
        args.add(entry.flags)
        if not entry.link_whole and entry.objects:
            args.add("-Wl,--start-lib")
        for idx in entry.objects:
            unit = link.units[idx]
            args.add(_file_argument(unit.object))
            linkables.append({
                "idx": idx,
                "output": _inside(shards, unit.name + ".thinlto.bc"),
                "path": unit.object,
                "plan_output": _inside(shards, unit.name + ".opt.plan"),
                "type": "bitcode",
            })
        if not entry.link_whole and entry.objects:
            args.add("-Wl,--end-lib")
        for idx in entry.archives:
            unit = link.units[idx]
            members = manifests[unit.name]
            if not members:
                # Nothing is planned for an archive without members, but its outputs have to be bound.
                ctx.actions.write_json(bound(unit.plan), {})
                ctx.actions.symlinked_dir(bound(unit.shards), {})
                continue
            if not entry.link_whole:
                args.add("-Wl,--start-lib")
            args.add(cmd_args(members, quote = "shell", hidden = unit.members))
            if not entry.link_whole:
                args.add("-Wl,--end-lib")
            linkables.append({
                "archive_idx": idx,
                "archive_index_dir": bound(unit.shards).as_output(),
                "archive_name": unit.name,
                "archive_opt_objects_dir": cmd_args(unit.native, delimiter = "", ignore_artifacts = True),
                "archive_plan": bound(unit.plan).as_output(),
                "objects": [{"idx": idx, "output": "", "path": member, "plan_output": ""} for member in members],
                "prepend": False,
                "type": "archive",
            })
        for archive in entry.opaque:
            file = _file_argument(archive)
            words = cmd_args(["-Wl,--whole-archive", file, "-Wl,--no-whole-archive"] if entry.link_whole else file)
            args.add(words)
            linkables.append({"cmd_args": words, "object": {"archive": archive, "type": "archive"}, "type": "cmd_args"})
        for library in entry.shared:
            file = _file_argument(library.library)
            args.add(file)
            linkables.append({"cmd_args": file, "object": {"name": library.library, "type": "shared_lib"}, "type": "cmd_args"})
        meta.append({"linkables": linkables, "post_flags": [], "pre_flags": entry.flags})

    ctx.actions.write(bound(link.argsfile), args, allow_args = True)
    meta_file = ctx.actions.write_json(link.dir + "/meta.json", meta, with_inputs = True)
    index = ctx.actions.declare_output(link.dir, "thin-link/index")
    index_dir = cmd_args(index.as_output(), parent = 1)
    command = cmd_args(
        link.toolchain.planner,
        "--meta",
        meta_file,
        "--index",
        index_dir,
        "--link-plan",
        bound(link.link_plan).as_output(),
        "--final-link-index",
        bound(link.final_link_index).as_output(),
        "--",
        link.toolchain.linker,
        link.toolchain.linker_flags,
        "-flto=thin",
        link.flags,
        cmd_args(bound(link.argsfile), format = "@{}"),
        "-o",
        cmd_args(link.output, ignore_artifacts = True),
        cmd_args(index.as_output(), format = "-Wl,--thinlto-index-only={}"),
        "-Wl,--thinlto-emit-imports-files",
        "-Wl,--thinlto-full-index",
        cmd_args(index_dir, format = "-Wl,--thinlto-prefix-replace=;{}/"),
        hidden = [args, shards.as_output()],
    )
    ctx.actions.run(command, category = "distlto_thin_link")

def _file_argument(file: Artifact):
    """A file's name as a word of an argument file. Flags stand there as they are: their quoting is the user's."""
    return cmd_args(file, quote = "shell")

def _inside(dir: Artifact, name: str):
    """A path in an output directory that the running action fills."""
    return cmd_args(dir.as_output(), format = "{}/" + name, delimiter = "")

def _imports(link: _Link, plan: dict) -> list:
    """The files that a backend reads besides its module and its shard."""
    files = [link.units[idx].object for idx in plan["imports"]]
    members = plan.get("archive_member_imports", {})
    for idx in plan["archive_imports"]:
        archive = link.units[idx]
        if str(idx) in members:
            files += [_member(archive, path) for path in members[str(idx)]]
        else:
            # A plan that does not say which members: all of them.
            files.append(archive.members)
    return files

def _member(archive: _Archive, path: str) -> Artifact:
    name = _below(path, archive.dir + "/objects")
    if name == None:
        fail("a plan names `{}`, which is no member of `{}`".format(path, archive.name))
    return archive.members.project(name)

def _run_backend(ctx: AnalysisContext, link: _Link, plan: dict, module: Artifact, shard: Artifact, output, dwo, identifier: str):
    command = cmd_args(
        link.toolchain.opt,
        "--out",
        output,
        "--input",
        module,
        "--index",
        shard,
        "--split-dwarf=" + link.toolchain.split_debug_mode,
        ["--dwo", dwo] if dwo != None else [],
        "--args",
        link.backend_flags,
        "--",
        link.toolchain.cxx_compiler,
        # Flags may name files, such as a profile.
        hidden = _imports(link, plan) + [link.flags] + [entry.flags for entry in link.entries],
    )
    ctx.actions.run(command, category = "distlto_opt", identifier = identifier)

def _object_backend(ctx: AnalysisContext, link: _Link, unit: _Object):
    plan_file = link.shards.project(unit.name + ".opt.plan")

    def run(ctx: AnalysisContext, artifacts, outputs):
        plan = artifacts[plan_file].read_json()
        output = outputs[unit.native]
        dwo = outputs[unit.dwo] if unit.dwo != None else None
        if plan["is_bc"]:
            shard = link.shards.project(unit.name + ".thinlto.bc")
            _run_backend(ctx, link, plan, unit.object, shard, output.as_output(), dwo.as_output() if dwo != None else None, unit.name)
        else:
            # Machine code is linked as it is, and its debug information lies where its compiler has put it.
            ctx.actions.copy_file(output, unit.object)
            if dwo != None:
                ctx.actions.write(dwo, "")

    outputs = [unit.native] + ([unit.dwo] if unit.dwo != None else [])
    ctx.actions.dynamic_output(
        dynamic = [plan_file],
        inputs = [],
        outputs = [output.as_output() for output in outputs],
        f = run,
    )

def _loaded_members(link: _Link, archives: list[_Archive], final_link_index: str) -> dict[str, dict[str, None]]:
    """The members that the final link takes, by archive, as paths in its directory of native members."""
    loaded = {archive.name: {} for archive in archives}
    for line in final_link_index.splitlines():
        found = _archive_member(link, loaded, _unquoted(line))
        if found != None:
            archive, member = found
            loaded[archive][member] = None
    return loaded

def _archive_member(link: _Link, archives: dict, path: str) -> (str, str) | None:
    """The archive and the path in its directory of native members, if that is where a file of the final link lies."""
    rest = _below(path, link.dir + "/archives")
    if rest == None:
        return None

    # An archive's name may hold the word that ends it.
    parts = rest.split("/native/")
    for end in range(1, len(parts)):
        name = "/native/".join(parts[:end])
        if name in archives:
            return name, "/native/".join(parts[end:])
    return None

def _archive_backends(ctx: AnalysisContext, link: _Link, archives: list[_Archive]):
    """
    Backends of the loaded members, of all archives in one dynamic output: Buck2 puts what a dynamic output declares
    below its number, so with one for each archive a further archive would move the members of those after it. Buck2
    does not run an action again whose command and inputs are those of before.
    """
    if not archives:
        return

    def run(ctx: AnalysisContext, artifacts, outputs):
        loaded = _loaded_members(link, archives, artifacts[link.final_link_index].read_string())
        for unit in archives:
            plans = artifacts[unit.plan].read_json().get("objects", [])
            natives, dwos = _member_backends(ctx, link, unit, plans, loaded[unit.name])
            ctx.actions.symlinked_dir(outputs[unit.native], natives)
            if unit.dwo != None:
                ctx.actions.symlinked_dir(outputs[unit.dwo], dwos)

    outputs = [unit.native for unit in archives] + [unit.dwo for unit in archives if unit.dwo != None]
    ctx.actions.dynamic_output(
        dynamic = [link.final_link_index] + [unit.plan for unit in archives],
        inputs = [],
        outputs = [output.as_output() for output in outputs],
        f = run,
    )

def _member_backends(ctx: AnalysisContext, link: _Link, unit: _Archive, plans: list, loaded: dict[str, None]):
    """Native members and their debug information, by the path that a member has below its archive's directory."""
    natives = {}
    dwos = {}
    for plan in plans:
        name = _below(plan["path"], unit.dir)
        if name == None:
            fail("`{}` is no member of `{}`".format(plan["path"], unit.name))
        if name not in loaded:
            continue
        module = _member(unit, plan["path"])
        if not plan["is_bc"]:
            natives[name] = module
            continue
        shard = _below(plan["bitcode_file"], unit.dir + "/shards")
        if shard == None:
            fail("the shard `{}` does not lie in the directory of `{}`".format(plan["bitcode_file"], unit.name))
        native = ctx.actions.declare_output(unit.dir, "backends/" + name)
        natives[name] = native
        dwo = None
        if unit.dwo != None:
            dwos[name + ".dwo"] = ctx.actions.declare_output(unit.dir, "backends/{}.dwo".format(name))
            dwo = dwos[name + ".dwo"].as_output()
        _run_backend(ctx, link, plan, module, unit.shards.project(shard), native.as_output(), dwo, "{}({})".format(unit.name, name))
    return natives, dwos

def _unquoted(line: str) -> str:
    """A line of an argument file without the quotes that a space in a name needs."""
    if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"":
        return line
    return line[1:-1].replace("\\\"", "\"").replace("\\\\", "\\")

def _final_link(ctx: AnalysisContext, link: _Link):
    objects = {unit.name: unit for unit in link.units if isinstance(unit, _Object)}
    archives = {unit.name: unit for unit in link.units if isinstance(unit, _Archive)}

    def run(ctx: AnalysisContext, artifacts, outputs):
        args = []
        inputs = {}
        native = {link.units[int(idx)].name: None for idx in artifacts[link.link_plan].read_json()["non_lto_objects"]}
        for line in artifacts[link.final_link_index].read_string().splitlines():
            path = _unquoted(line)
            name = _below(path, link.dir + "/shards")
            member = _archive_member(link, archives, path)
            if name != None:
                unit = objects[name.removesuffix(".opt.o")]
                inputs[unit.native] = None
                args.append(_file_argument(unit.native))
            else:
                if member != None:
                    inputs[archives[member[0]].native] = None
                args.append(line)
        for name in native:
            if name in objects:
                inputs[objects[name].object] = None
        hidden = [inputs.keys()]
        for entry in link.entries:
            hidden.append([entry.flags, entry.opaque, [library.library for library in entry.shared]])
        argsfile, _ = ctx.actions.write(outputs[link.final_argsfile], cmd_args(args), allow_args = True)
        command = cmd_args(
            link.toolchain.linker,
            link.toolchain.linker_flags,
            "-flto=thin",
            link.flags,
            cmd_args(argsfile, format = "@{}"),
            "-o",
            outputs[link.output].as_output(),
            hidden = hidden,
        )
        ctx.actions.run(command, category = "distlto_link")

    outputs = [link.output, link.final_argsfile]
    ctx.actions.dynamic_output(
        dynamic = [link.final_link_index, link.link_plan],
        inputs = [],
        outputs = [output.as_output() for output in outputs],
        f = run,
    )

def _debug_package(ctx: AnalysisContext, link: _Link, archives: list[_Archive]):
    """The .dwo files of what the linker loaded, in one file beside the program."""
    if link.dwp == None:
        return
    objects = {unit.name: unit for unit in link.units if isinstance(unit, _Object)}

    def run(ctx: AnalysisContext, artifacts, outputs):
        index = artifacts[link.final_link_index].read_string()
        loaded = _loaded_members(link, archives, index)
        below = [_below(_unquoted(line), link.dir + "/shards") for line in index.splitlines()]
        files = [objects[name.removesuffix(".opt.o")].dwo for name in below if name != None]
        for unit in archives:
            for plan in artifacts[unit.plan].read_json().get("objects", []):
                name = _below(plan["path"], unit.dir)
                if plan["is_bc"] and name in loaded[unit.name]:
                    files.append(unit.dwo.project(name + ".dwo"))
        command = cmd_args(link.toolchain.dwp, files, "-o", outputs[link.dwp].as_output())
        ctx.actions.run(command, category = "distlto_dwp")

    ctx.actions.dynamic_output(
        dynamic = [link.final_link_index] + [unit.plan for unit in archives],
        inputs = [],
        outputs = [link.dwp.as_output()],
        f = run,
    )

def _link_outputs(link: _Link) -> dict[str, list]:
    """What to look at when a link is not as one expects: `buck2 build :app[link-plan]`."""
    outputs = {
        "backend-flags": link.backend_flags,
        "final-link-index": link.final_link_index,
        "link-plan": link.link_plan,
        "shards": link.shards,
    }
    if link.dwp != None:
        outputs["dwp"] = link.dwp
    return {name: [DefaultInfo(default_output = output)] for name, output in outputs.items()}

def _linked(ctx: AnalysisContext, output: Artifact, own: _Node, deps: list, flags: list) -> _Link:
    nodes = list(ctx.actions.tset(_NodeSet, value = own, children = deps).traverse(ordering = "topological"))
    link = _plan_link(ctx, output, nodes, flags)
    _thin_link(ctx, link)

    # Buck2 numbers dynamic outputs, and what they declare lies below the number. So those of which a link has one come
    # first; those of objects declare nothing.
    archives = [unit for unit in link.units if isinstance(unit, _Archive)]
    _archive_backends(ctx, link, archives)
    _final_link(ctx, link)
    _debug_package(ctx, link, archives)
    for unit in link.units:
        if isinstance(unit, _Object):
            _object_backend(ctx, link, unit)
    return link

def _debug_files(link: _Link) -> list[Artifact]:
    return [unit.dwo for unit in link.units if unit.dwo != None]

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
    return [ctx.actions.write_json(output.short_path + ".resources.json", places)] + resources.values()

def _program(ctx: AnalysisContext) -> list[Provider]:
    deps = _dep_sets(ctx)
    objects = _compile(ctx, _header_dir(ctx), deps, [])
    output = ctx.actions.declare_output(ctx.attrs.out or ctx.label.name)
    runtime = _runtime_resources(ctx, output, deps)
    shared = _shared_libraries(ctx, deps)
    run_paths = []
    if shared:
        # One directory with all libraries under the names that the loader looks for.
        tree = ctx.actions.symlinked_dir("__{}__shared_libs_symlink_tree".format(output.short_path), shared)
        runtime = runtime + [tree] + shared.values()
        run_paths.append(cmd_args(tree, format = "-Wl,-rpath,$ORIGIN/{}", relative_to = (output, 1), ignore_artifacts = True))
    link = _linked(ctx, output, _own_node(ctx, objects, run_paths), deps, [])
    return [
        DefaultInfo(default_output = output, other_outputs = runtime + _debug_files(link), sub_targets = _link_outputs(link)),
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
        contacts = ctx.attrs.contacts,
    )
    return [info, run, test]

def _shared_library_impl(ctx: AnalysisContext) -> list[Provider]:
    deps = _dep_sets(ctx)
    headers = _header_dir(ctx)
    objects = _compile(ctx, headers, deps, ["-fPIC"])
    soname = ctx.attrs.soname or "lib{}.so".format(ctx.label.name)
    output = ctx.actions.declare_output(soname)

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
        DefaultInfo(default_output = output, other_outputs = _debug_files(link), sub_targets = _link_outputs(link)),
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

_PROGRAM = {
    "out": attrs.option(attrs.string(), default = None, doc = "Name of the program; the target's where absent"),
} | _COMPILES | _DEPS | _LINKS | _RESOURCES | _TOOLCHAIN

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
        "supports_lto": attrs.bool(default = True, doc = "Whether the archive may hold bitcode and is unpacked; an archive that is not reaches the linker as it is"),
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
        "contacts": attrs.list(attrs.string(), default = []),
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

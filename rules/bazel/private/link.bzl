"""A link by distributed ThinLTO: an index, a backend for each slice, the link.

DistltoIndex runs the driver on the link's line, and has the linker do its thin link and no more. Only then is known what
each backend reads, and Bazel wants to know before. So it writes a slice for each object: a tree artifact with the
object, what it imports and its index shard, which is the sole input of its backend (DistltoOpt). What is in archives and
directories is not known during analysis; it is spread over a fixed number of slices by its names. An edit of one member
recompiles the members in its slice, and the slices with a module that imports it. Formats: docs/design/slices.md of the distlto
repository.

Bazel puts every output of an action into one result, which gRPC limits to 4 MB, and a slice takes some 250 bytes of it. So
with more than `slices` objects, all modules share `shards` slices. Names in slices are hard links to one file for each
module. A sandbox allows no link out of it, so there they are links to a copy; "no-sandbox" for DistltoIndex saves that.

No action unpacks archives: the linker reads them itself, and a slice holds the members that its backends need.

DistltoLink runs the driver on the same line again. The linker does its thin link once more, and takes the native object
that the graph names for each module. So the program is the linker's own, and the inputs are those of DistltoIndex, the
native objects and the graph.

With Bazel 9, `actions.map_directory` can take the place of slices for what is unknown: a template that sees the names of
files in a tree artifact could declare one backend for each member, from a plan written as names.
"""

load(":toolchain.bzl", "find_toolchain", "run")

def _unique(taken, name):
    count = taken.get(name, 0) + 1
    taken[name] = count
    return name if count == 1 else "{}-{}".format(name, count)

def _place(file):
    return file.short_path.replace("../", "external/")

def relative(path, directory):
    """`path` as seen from `directory`; both are relative to the same place."""
    there = []
    for part in path.split("/"):
        if part == ".." and there and there[-1] != "..":
            there.pop()
        elif part not in ["", "."]:
            there.append(part)
    here = [part for part in directory.split("/") if part]
    common = 0
    for at in range(min(len(here), len(there))):
        if here[at] != there[at]:
            break
        common = at + 1
    return "/".join([".."] * (len(here) - common) + there[common:])

_FLAGS = ["-fuse-ld=lld", "-flto=thin"]

def add_node(args, node, separate = False):
    """Puts what a target adds to a link on a line."""
    args.add_all(node.flags)
    objects = node.separate if separate else node.objects
    lazy = not node.whole and (objects or node.trees)
    if lazy:
        args.add("-Wl,--start-lib")
    args.add_all(objects)
    args.add_all(node.trees, expand_directories = True)
    if lazy:
        args.add("-Wl,--end-lib")
    if node.whole and node.unknown:
        args.add("-Wl,--whole-archive")
    args.add_all(node.unknown)
    if node.whole and node.unknown:
        args.add("-Wl,--no-whole-archive")
    args.add_all(node.shared)

def files_of(nodes):
    """All files that a line of these nodes names."""
    return [file for node in nodes for file in node.objects + node.unknown + node.trees + node.shared]

def line_of(ctx, toolchain, output, nodes, flags, last, separate = False):
    """The arguments of the compiler driver, in a response file."""
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("shell")
    args.add_all(_FLAGS)
    args.add("--ld-path=" + toolchain.lld)
    args.add_all(toolchain.linkopts)
    args.add_all(flags)
    for node in nodes:
        add_node(args, node, separate)
    args.add_all(last)
    args.add("-o", output)
    return args

def link(ctx, output, line, objects, unknown, inputs, driver = None, dwp = None, root = None):
    """Links what is on a line to `output`.

    Args:
      ctx: the rule's context; its attributes are not looked at.
      output: the File to make.
      line: Args for the compiler driver.
      objects: list of Files, the objects on the line.
      unknown: whether the line names archives or directories, whose modules are not known yet.
      inputs: depset of all files that the line names.
      driver: path of the compiler driver; the toolchain's where absent.
      root: path of the directory that the names of modules omit; that of the rule's own outputs where absent.
      dwp: the File of packed debug information; where absent, backends do not split it.

    Returns:
      An OutputGroupInfo: `plan`, the action graph; `report`, its summary; `explain`, what each module imports; `objects`;
      `slices`; `dwp`.
    """
    toolchain = find_toolchain(ctx)
    below = output.basename + ".thinlto"
    taken = {}
    if len(objects) > toolchain.slices:
        objects = []
        unknown = True

    request = ctx.actions.args()
    request.use_param_file("--slices=%s", use_always = True)
    request.set_param_file_format("multiline")
    request.add_joined(["root", root or ctx.bin_dir.path], join_with = "\t")
    slices = []
    units = []
    for object in objects:
        name = _unique(taken, _place(object))
        slice = ctx.actions.declare_directory("{}/slices/{}".format(below, name))
        native = ctx.actions.declare_file("{}/objects/{}.o".format(below, name))
        dwo = ctx.actions.declare_file("{}/objects/{}.dwo".format(below, name)) if dwp else None
        request.add_joined(["object", name, object, slice, native], join_with = "\t", expand_directories = False)
        slices.append(slice)
        units.append(struct(label = name, slice = slice, native = native, dwo = dwo, tree = False))
    for at in range(toolchain.shards if unknown else 0):
        slice = ctx.actions.declare_directory("{}/shards/{}".format(below, at))
        native = ctx.actions.declare_directory("{}/shard-objects/{}".format(below, at))
        request.add_joined(["rest", slice, native], join_with = "\t", expand_directories = False)
        slices.append(slice)
        units.append(struct(label = "{} (part {} of {})".format(ctx.label, at + 1, toolchain.shards), slice = slice, native = native, dwo = None, tree = True))

    graph = ctx.actions.declare_file(below + "/graph.json")
    request.add_joined(["graph", graph], join_with = "\t")
    report = ctx.actions.declare_file(below + "/report.txt")
    request.add_joined(["report", report], join_with = "\t")
    explain = ctx.actions.declare_file(below + "/explain.txt")
    request.add_joined(["explain", explain], join_with = "\t")

    command = ["--", driver or toolchain.clangxx, line]
    run(
        ctx,
        toolchain,
        "DistltoIndex",
        "Planning ThinLTO of {}".format(output.short_path),
        executable = toolchain.distlto,
        # The directory is empty when the action ends, and no output; names in the graph begin with it.
        arguments = ["index", "--index", graph.dirname + "/index", request, "--compiler", toolchain.clangxx] + command,
        inputs = inputs,
        outputs = [graph, report, explain] + slices,
    )
    for unit in units:
        _backend(ctx, toolchain, unit)
    natives = [unit.native for unit in units]
    run(
        ctx,
        toolchain,
        "DistltoLink",
        "Linking {}".format(output.short_path),
        executable = toolchain.distlto,
        arguments = ["link", "--graph", graph.path] + command,
        inputs = depset([graph] + natives, transitive = [inputs]),
        outputs = [output],
    )
    if dwp:
        _dwp(ctx, toolchain, output, dwp, [unit.dwo or unit.native for unit in units])
    return OutputGroupInfo(
        dwp = depset([dwp] if dwp else []),
        explain = depset([explain]),
        objects = depset(natives),
        plan = depset([graph]),
        report = depset([report]),
        slices = depset(slices),
    )

def _backend(ctx, toolchain, unit):
    arguments = ["opt", "--slice", unit.slice.path, "--objects" if unit.tree else "--out", unit.native.path]
    if unit.dwo:
        arguments += ["--dwo", unit.dwo.path]
    run(
        ctx,
        toolchain,
        "DistltoOpt",
        "Compiling {} with what it imports".format(unit.label),
        executable = toolchain.distlto,
        arguments = arguments,
        inputs = depset([unit.slice]),
        outputs = [unit.native] + ([unit.dwo] if unit.dwo else []),
        resources = True,
    )

def _dwp(ctx, toolchain, output, dwp, pieces):
    """One file of all split debug information."""
    if not toolchain.dwp:
        fail("{}: split debug information needs `dwp` or `dwp_path` (llvm-dwp) in the distlto_toolchain".format(ctx.label))
    run(
        ctx,
        toolchain,
        "DistltoDwp",
        "Packing debug information of {}".format(output.short_path),
        executable = toolchain.dwp,
        arguments = ["-e", output.path, "-o", dwp.path],
        inputs = depset([output] + pieces),
        outputs = [dwp],
    )

def link_nodes(ctx, output, nodes, flags, last, link_inputs, fission):
    """`link` of what targets of these rules add to it: `nodes`, dependents first."""
    toolchain = find_toolchain(ctx)
    return link(
        ctx,
        output,
        line = line_of(ctx, toolchain, output, nodes, flags, last),
        objects = [object for node in nodes for object in node.objects],
        unknown = any([node.unknown or node.trees for node in nodes]),
        inputs = depset(files_of(nodes), transitive = [link_inputs]),
        dwp = ctx.actions.declare_file(output.basename + ".dwp") if fission else None,
    )

def link_separate(ctx, output, nodes, flags, last, link_inputs):
    """Links objects that were compiled without imports: no thin link, and backends that all such links share."""
    toolchain = find_toolchain(ctx)
    pieces = [file for node in nodes for file in node.separate + node.unknown + node.trees + node.shared]
    run(
        ctx,
        toolchain,
        "DistltoLink",
        "Linking {} without imports".format(output.short_path),
        executable = toolchain.clangxx,
        arguments = [line_of(ctx, toolchain, output, nodes, flags, last, separate = True)],
        inputs = depset(pieces, transitive = [link_inputs]),
        outputs = [output],
    )

def compile_alone(ctx, toolchain, object):
    """The object compiled without imports, so that links can share it. Compiled only where a link asks for it."""
    out = ctx.actions.declare_file("{}.separate.o".format(object.basename), sibling = object)
    run(
        ctx,
        toolchain,
        "DistltoOpt",
        "Compiling {} without imports".format(object.short_path),
        executable = toolchain.distlto,
        arguments = ["opt", "--out", out.path, "--input", object.path, "--index", "/dev/null", "--", toolchain.clangxx],
        inputs = depset([object]),
        outputs = [out],
    )
    return out

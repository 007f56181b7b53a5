"""The rules that compile by themselves: library, import, binary, test, shared library."""

load(":compile.bzl", "SOURCES", "compile_sources", "dependencies", "expand")
load(":link.bzl", "link_nodes", "link_separate", "relative")
load(":providers.bzl", "DistltoInfo", "node")
load(":toolchain.bzl", "TOOLCHAIN")

_DOTTED = ["." + extension for extension in SOURCES]

def _collect(ctx, files = []):
    """What a target needs when it runs."""
    runfiles = ctx.runfiles(files = files + ctx.files.data)
    for target in ctx.attr.data + ctx.attr.deps:
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return runfiles

def _own_inputs(ctx, below):
    return depset(getattr(ctx.files, "additional_linker_inputs", []), transitive = [below.link_inputs])

def _library_impl(ctx):
    if ctx.attr.linkstamp:
        fail("{}: `linkstamp` is not done by distlto_library: link a cc_binary with distlto_link, or pass the stamp as a define".format(ctx.label))
    below = dependencies(ctx.attr.deps)
    compiled = compile_sources(ctx, below)
    own = node(
        label = str(ctx.label),
        objects = compiled.objects,
        unknown = compiled.unknown,
        flags = expand(ctx, ctx.attr.linkopts),
        whole = ctx.attr.alwayslink,
        separate = compiled.separate,
    )

    # A library of headers adds no node, and no action.
    nodes = [own] if own.objects or own.unknown or own.flags else []
    return [
        DefaultInfo(files = depset(compiled.objects + compiled.unknown), runfiles = _collect(ctx)),
        DistltoInfo(
            nodes = depset(nodes, order = "topological", transitive = [below.nodes]),
            headers = compiled.headers,
            compile_flags = compiled.compile_flags,
            link_inputs = _own_inputs(ctx, below),
        ),
        OutputGroupInfo(separate = depset(own.separate)),
    ]

def _import_impl(ctx):
    below = dependencies(ctx.attr.deps)
    objects = []
    unknown = []
    trees = []
    for file in ctx.files.objects:
        if file.is_directory:
            trees.append(file)
        else:
            objects.append(file)
    for file in ctx.files.archives:
        if file.is_directory:
            fail("{}: {} is a directory; `objects` takes directories of objects".format(ctx.label, file.short_path))
        unknown.append(file)
    shared = ctx.files.shared_libraries
    if not objects and not unknown and not trees and not shared and not ctx.files.hdrs:
        fail("{}: nothing is imported: give `objects`, `archives`, `shared_libraries` or `hdrs`".format(ctx.label))
    own = node(
        label = str(ctx.label),
        objects = objects,
        unknown = unknown,
        trees = trees,
        shared = shared,
        flags = expand(ctx, ctx.attr.linkopts),
        whole = ctx.attr.alwayslink,
        separate = objects,
    )
    exported = tuple(["-D" + define for define in ctx.attr.defines] + [
        word
        for include in ctx.attr.includes
        for word in ["-isystem", "/".join([part for part in [ctx.label.workspace_root, ctx.label.package, include] if part and part != "."]) or "."]
    ])
    return [
        DefaultInfo(files = depset(objects + unknown + trees + shared), runfiles = _collect(ctx, shared)),
        DistltoInfo(
            nodes = depset([own], order = "topological", transitive = [below.nodes]),
            headers = depset(ctx.files.hdrs, transitive = [below.headers]),
            compile_flags = depset([exported] if exported else [], order = "topological", transitive = [below.compile_flags]),
            link_inputs = below.link_inputs,
        ),
    ]

def _run_path(output, library):
    """Where `library` lies as seen from the directory of `output`, among outputs as among runfiles."""
    return relative(library.short_path.rpartition("/")[0], output.short_path.rpartition("/")[0])

def _link(ctx, output, first, separate = False):
    """Compiles `srcs` and links them with what they depend on."""
    deps = ctx.attr.deps + ([ctx.attr.malloc] if ctx.attr.malloc else [])
    below = dependencies(deps)
    compiled = compile_sources(ctx, below)
    own = node(
        label = str(ctx.label),
        objects = compiled.objects,
        unknown = compiled.unknown,
        whole = True,
        separate = compiled.separate,
    )
    nodes = [own] + below.nodes.to_list()
    flags = list(first)
    if ctx.attr.fission:
        flags += ["-g", "-gsplit-dwarf"]
    places = {_run_path(output, file): None for one in nodes for file in one.shared}
    flags += ["-Wl,-rpath,$ORIGIN/" + place if place else "-Wl,-rpath,$ORIGIN" for place in places]
    arguments = dict(
        output = output,
        nodes = nodes,
        flags = flags,
        last = expand(ctx, ctx.attr.linkopts),
        link_inputs = _own_inputs(ctx, below),
    )
    if separate:
        if ctx.attr.fission:
            fail("{}: `fission` and `shared_backends` exclude each other".format(ctx.label))
        link_separate(ctx, **arguments)
        return None, below, compiled
    return link_nodes(ctx, fission = ctx.attr.fission, **arguments), below, compiled

def _binary_impl(ctx):
    if not ctx.attr.linkstatic:
        fail("{}: `linkstatic = False` is not done: libraries of these rules are objects; make a distlto_shared_library of what is to be shared".format(ctx.label))
    if ctx.attr.linkshared:
        fail("{}: `linkshared` is the rule distlto_shared_library".format(ctx.label))
    output = ctx.actions.declare_file(ctx.label.name)
    linked, _, _ = _link(ctx, output, [], separate = getattr(ctx.attr, "shared_backends", False))
    runfiles = _collect(ctx, [output])
    return [
        DefaultInfo(executable = output, files = depset([output]), runfiles = runfiles),
    ] + ([linked] if linked else [])

def _shared_library_impl(ctx):
    name = ctx.attr.shared_lib_name or "lib{}.so".format(ctx.label.name)
    output = ctx.actions.declare_file(name)
    linked, below, compiled = _link(ctx, output, ["-shared", "-Wl,-soname," + name])
    shared = [file for one in below.nodes.to_list() for file in one.shared]
    own = node(label = str(ctx.label), shared = [output] + shared)
    return [
        DefaultInfo(files = depset([output]), runfiles = _collect(ctx, [output])),
        DistltoInfo(
            nodes = depset([own], order = "topological"),
            headers = compiled.headers,
            compile_flags = compiled.compile_flags,
            link_inputs = depset(),
        ),
        linked,
    ]

# --- attributes ------------------------------------------------------------------------------------------------------

_DEPS = dict(TOOLCHAIN, **{
    "data": attr.label_list(doc = "Files that the program needs when it runs", allow_files = True),
    "deps": attr.label_list(doc = "Libraries of these rules", providers = [[DistltoInfo]]),
    "hdrs": attr.label_list(doc = "Headers that dependents include", allow_files = True),
    "linkopts": attr.string_list(doc = "Words for the compiler driver as it links; of a library, in every link that takes it"),
})

_COMPILES = {
    "additional_linker_inputs": attr.label_list(doc = "Files that `linkopts` name, such as version scripts", allow_files = True),
    "copts": attr.string_list(doc = "Flags of this target's compilations"),
    "defines": attr.string_list(doc = "Macros, for dependents too"),
    "fission": attr.bool(doc = "Compile with debug information; a binary's is split off and packed into NAME.dwp (output group `dwp`)"),
    "includes": attr.string_list(doc = "Directories of the package in which this target and its dependents look for headers"),
    "local_defines": attr.string_list(doc = "Macros of this target"),
    "srcs": attr.label_list(doc = "Sources, headers, objects, archives", allow_files = _DOTTED),
    "textual_hdrs": attr.label_list(doc = "Files that headers include and that are none themselves", allow_files = True),
}

_WHOLE = {
    "alwayslink": attr.bool(doc = "Link every object, needed or not"),
}

_LINKS = {
    "linkshared": attr.bool(doc = "Refused: see distlto_shared_library"),
    "linkstatic": attr.bool(default = True, doc = "Only True is done"),
    "malloc": attr.label(doc = "A library that defines malloc", providers = [[DistltoInfo]]),
}

distlto_library = rule(
    doc = "C, C++ and assembly compiled to ThinLTO bitcode.",
    implementation = _library_impl,
    attrs = dict(dict(_DEPS, **_COMPILES), linkstamp = attr.label(doc = "Refused", allow_files = True), **_WHOLE),
)

distlto_import = rule(
    doc = "Objects, archives, rlibs and directories of objects from elsewhere, bitcode or not.",
    implementation = _import_impl,
    attrs = dict(dict(_DEPS, **_WHOLE), **{
        "archives": attr.label_list(doc = "Archives and rlibs; what is in them is found out by the link", allow_files = True),
        "defines": attr.string_list(doc = "Macros of dependents"),
        "includes": attr.string_list(doc = "Directories of the package in which dependents look for headers"),
        "objects": attr.label_list(doc = "Objects, and directories of objects", allow_files = True),
        "shared_libraries": attr.label_list(doc = "Shared libraries", allow_files = True),
    }),
)

distlto_binary = rule(
    doc = "A program, linked by distributed ThinLTO.",
    implementation = _binary_impl,
    attrs = dict(dict(_DEPS, **_COMPILES), **_LINKS),
    executable = True,
)

distlto_test = rule(
    doc = "A program that is a test. With `shared_backends`, libraries are compiled once for all tests, without imports between them.",
    implementation = _binary_impl,
    attrs = dict(dict(dict(_DEPS, **_COMPILES), **_LINKS), shared_backends = attr.bool(doc = "Compile without imports, so that tests share the objects of libraries: many links get quicker, programs slower")),
    test = True,
)

distlto_shared_library = rule(
    doc = "A shared library, linked by distributed ThinLTO.",
    implementation = _shared_library_impl,
    attrs = dict(dict(_DEPS, **_COMPILES), malloc = _LINKS["malloc"], shared_lib_name = attr.string(doc = "lib<name>.so where absent")),
)

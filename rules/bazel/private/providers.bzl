"""What targets of these rules tell each other."""

DistltoInfo = provider(
    doc = "A target that can be linked: what it adds to a link, and what its dependents compile with.",
    fields = {
        "nodes": "depset of nodes in topological order, dependents first: see `node`",
        "headers": "depset of headers that dependents may include",
        "compile_flags": "depset of flags that dependents compile with, in topological order",
        "link_inputs": "depset of other files that link flags name",
    },
)

DistltoToolchainInfo = provider(
    doc = "What compiles and links. Programs are paths; `files` are those that lie in the build.",
    fields = {
        "clang": "path of the C compiler",
        "clangxx": "path of the C++ compiler, which is also the driver of links",
        "lld": "path of ld.lld",
        "dwp": "path of llvm-dwp, which packs split debug information",
        "distlto": "path of distlto, or a File",
        "copts": "flags of every compilation",
        "cxxopts": "flags of every compilation of C++",
        "linkopts": "flags of every link",
        "files": "depset of what programs read",
        "slices": "with more objects than this, a link is cut into a fixed number of slices",
        "shards": "number of slices for modules that are not known before the link",
        "execution_requirements": "dict of mnemonic to dict",
    },
)

# buildifier: disable=function-docstring-args
def node(
        label,
        objects = [],
        unknown = [],
        trees = [],
        shared = [],
        flags = [],
        whole = False,
        separate = []):
    """What one target adds to a link.

    `objects` are single object files, `unknown` archives, `trees` directories of objects, `shared` shared libraries,
    `separate` the objects compiled without imports, in the order of `objects`.
    """
    return struct(
        label = label,
        objects = tuple(objects),
        unknown = tuple(unknown),
        trees = tuple(trees),
        shared = tuple(shared),
        flags = tuple(flags),
        whole = whole,
        separate = tuple(separate),
    )

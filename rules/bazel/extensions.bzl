"""The same for MODULE.bazel: `distlto.configure(llvm = "22")` of the root module."""

load(":repositories.bzl", "distlto_configure")

_ATTRIBUTES = {
    "copts": attr.string_list(),
    "cxxopts": attr.string_list(),
    "distlto": attr.string(),
    "execution_requirements": attr.string_list_dict(),
    "linkopts": attr.string_list(),
    "llvm": attr.string(),
    "shards": attr.int(default = 8),
    "slices": attr.int(default = 4000),
}

def _distlto_impl(module_ctx):
    settings = {}
    for module in module_ctx.modules:
        for tag in module.tags.configure:
            if module.is_root:
                settings = {name: getattr(tag, name) for name in _ATTRIBUTES}
    distlto_configure(**settings)

distlto = module_extension(
    implementation = _distlto_impl,
    tag_classes = {"configure": tag_class(attrs = _ATTRIBUTES)},
)

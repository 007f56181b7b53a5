"""A directory of sources."""

_ONE = "int one(int x) { return x + 1; }"
_TWO = "int one(int); int two(int x) { return one(x) + 1; }"

def _sources_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        outputs = [out],
        command = "echo \"$2\" > $1/one.cc; echo \"$3\" > $1/two.cc",
        arguments = [out.path, _ONE, _TWO],
    )
    return [DefaultInfo(files = depset([out]))]

sources = rule(implementation = _sources_impl)

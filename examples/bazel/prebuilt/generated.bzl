"""A rule of another project, whose output is a directory of bitcode."""

def _generated_objects_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        # A worker of remote execution need not make a directory that is an output.
        command = "mkdir -p {out}; for source in {sources}; do clang++-22 -O2 -fPIC -flto=thin -I text/include -c $source -o {out}/$(basename $source .cc).o; done".format(
            sources = " ".join([src.path for src in ctx.files.srcs]),
            out = out.path,
        ),
        inputs = ctx.files.srcs + ctx.files.hdrs,
        outputs = [out],
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]))]

generated_objects = rule(
    implementation = _generated_objects_impl,
    attrs = {
        "hdrs": attr.label_list(allow_files = True),
        "srcs": attr.label_list(allow_files = True),
    },
)

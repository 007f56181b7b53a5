"""A directory of objects, as generators of code make them: Bazel does not know their names before it has run."""

def _bitcode_tree_impl(ctx):
    tree = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        outputs = [tree],
        inputs = ctx.files.srcs,
        command = "tree=$1; shift; mkdir -p $tree; for source; do clang-22 -O2 -flto=thin -c $source -o $tree/$(basename $source .c).o || exit; done",
        arguments = [tree.path] + [src.path for src in ctx.files.srcs],
        mnemonic = "BitcodeTree",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([tree]))]

bitcode_tree = rule(
    implementation = _bitcode_tree_impl,
    attrs = {"srcs": attr.label_list(allow_files = True)},
)

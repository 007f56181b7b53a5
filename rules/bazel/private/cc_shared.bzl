"""Backends that tests share: each object of a library is compiled once, without imports.

An aspect walks through the libraries of a cc_test, and declares such a backend for each object in the library's own package.
So all tests that depend on the library have the same action. Their links have no thin link, and are quick; the programs
are slower than those of ThinLTO. The linker itself compiles what is left: sources of the test, archives of bitcode,
directories.
"""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":link.bzl", "compile_alone")
load(":toolchain.bzl", "TOOLCHAIN", "find_toolchain")

NativeObjectsInfo = provider(
    doc = "The objects of libraries without imports.",
    fields = {"pairs": "depset of structs of Files: `bitcode`, and `native` for it"},
)

def _native_objects_aspect_impl(target, ctx):
    toolchain = find_toolchain(ctx)
    deps = getattr(ctx.rule.attr, "deps", []) + getattr(ctx.rule.attr, "implementation_deps", [])
    inputs = target[CcInfo].linking_context.linker_inputs.to_list() if CcInfo in target else []
    own = [
        struct(bitcode = object, native = compile_alone(ctx, toolchain, object))
        for one in inputs
        if one.owner == target.label
        for library in one.libraries
        for object in (library.objects or []) + (library.pic_objects or [])
        # Not prebuilt ones, which are machine code as often as not.
        if not object.is_source and not object.is_directory and object.owner == target.label
    ]
    below = [dep[NativeObjectsInfo].pairs for dep in deps if NativeObjectsInfo in dep]
    return [NativeObjectsInfo(pairs = depset(own, transitive = below))]

native_objects_aspect = aspect(
    implementation = _native_objects_aspect_impl,
    attr_aspects = ["deps", "implementation_deps"],
    attrs = TOOLCHAIN,
)

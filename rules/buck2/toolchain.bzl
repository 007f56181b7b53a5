"""distlto in the prelude's C++ rules: `distlto_thin_lto` is what a toolchain that you have needs, `distlto_tools` the tools
of distributed ThinLTO alone, `distlto_cxx_toolchain` a whole C++ toolchain on clang and lld.

All that this project loads from the prelude is loaded here.
"""

load("@prelude//cxx:cxx_toolchain.bzl", "cxx_toolchain_inheriting_target_platform")
load("@prelude//cxx/dist_lto:tools.bzl", "dist_lto_tools")
load("@prelude//cxx/tools:defs.bzl", "cxx_internal_tools")
load(":distlto.bzl", "distlto_programs", "lld_flags", "llvm_programs")

def distlto_tools(name: str, distlto = "distlto", visibility = ["PUBLIC"]):
    """
    The tools of distributed ThinLTO, for `cxx_internal_tools(dist_lto = ...)`.

    `distlto` is where the program is: a name of PATH, an absolute path, or an installation in the project (`./distlto`, or
    a label of a directory).
    """
    tools = distlto_programs(name, distlto)
    linkers = ["darwin", "gnu"]
    dist_lto_tools(
        name = name,
        archive_mapper = tools["archive_mapper"],
        compiler_stats_merger = tools["compiler_stats_merger"],
        copy = tools["copy"],
        opt = {linker: tools["opt"] for linker in linkers},
        planner = {linker: tools["planner"] for linker in linkers},
        prepare = {linker: tools["prepare"] for linker in linkers},
        visibility = visibility,
    )

def distlto_thin_lto(name: str, distlto = "distlto", **internal_tools) -> dict:
    """
    Declares the tools under `name`, and gives the attributes by which a toolchain of the prelude uses them:

        cxx_toolchain_inheriting_target_platform(name = "cxx", ..., **distlto_thin_lto(name = "thin-lto"))

    `distlto`: as in `distlto_tools`. Everything else goes to the prelude's `cxx_internal_tools`.
    """
    distlto_tools(name = name + "-tools", distlto = distlto)
    cxx_internal_tools(name = name, dist_lto = ":{}-tools".format(name), **internal_tools)
    return {
        "internal_tools": ":" + name,
        "lto_mode": "thin",
        # Objects rather than archives: the prelude does not unpack the archives of its own libraries.
        "requires_objects": True,
        "supports_distributed_thinlto": True,
    }

def distlto_cxx_toolchain(name: str, llvm = None, distlto = "distlto", linker_flags = [], visibility = ["PUBLIC"], **kwargs):
    """
    A C++ toolchain on clang and lld whose binaries may set `enable_distributed_thinlto = True`.

    `llvm`: 22 for `clang-22`, `ld.lld-22`, ...; a directory for the programs in it; None for those of PATH.
    `distlto`: as in `distlto_tools`.
    Everything else goes to the prelude's `cxx_toolchain_inheriting_target_platform`.
    """
    thin_lto = distlto_thin_lto(name = name + "-thin-lto", distlto = distlto)
    clang = llvm_programs(
        name,
        llvm,
        ["clang", "clang++", "llvm-ar", "llvm-dwp", "llvm-nm", "llvm-objcopy", "llvm-objdump", "llvm-ranlib", "llvm-strip"],
    )
    attributes = {
        "archiver": clang["llvm-ar"],
        "archiver_supports_argfiles": True,
        "archiver_type": "gnu",
        "assembler": clang["clang"],
        "c_compiler": clang["clang"],
        "c_compiler_flags": ["-O2"],
        "compiler_type": "clang",
        "cxx_compiler": clang["clang++"],
        "cxx_compiler_flags": ["-O2"],
        "dwp": clang["llvm-dwp"],
        "link_style": "static",
        "linker": clang["clang++"],
        "linker_flags": lld_flags(llvm) + linker_flags,
        "linker_type": "gnu",
        "nm": clang["llvm-nm"],
        "objcopy_for_shared_library_interface": clang["llvm-objcopy"],
        "objdump": clang["llvm-objdump"],
        "ranlib": clang["llvm-ranlib"],
        "strip": clang["llvm-strip"],
        "visibility": visibility,
    }
    cxx_toolchain_inheriting_target_platform(name = name, **(attributes | thin_lto | kwargs))

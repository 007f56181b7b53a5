"""distlto in the prelude's C++ rules: `distlto_tools` swaps the tools of distributed ThinLTO in a toolchain that you have,
`distlto_cxx_toolchain` is a whole C++ toolchain on clang and lld.

All that this project loads from the prelude is loaded here.
"""

load("@prelude//cxx:cxx_toolchain.bzl", "cxx_toolchain_inheriting_target_platform")
load("@prelude//cxx/dist_lto:tools.bzl", "dist_lto_tools")
load("@prelude//cxx/tools:defs.bzl", "cxx_internal_tools")
load(":distlto.bzl", "distlto_programs", "lld_flags", "llvm_programs")

def distlto_tools(name: str, distlto = "distlto", visibility = ["PUBLIC"]):
    """
    The tools of distributed ThinLTO, for `cxx_internal_tools(dist_lto = ...)`.

    `distlto` is where the program is: a name of PATH, an absolute path, or a checked-in executable (`./bin/distlto`, or
    a label).
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

def distlto_cxx_toolchain(name: str, llvm = None, distlto = "distlto", linker_flags = [], visibility = ["PUBLIC"], **kwargs):
    """
    A C++ toolchain on clang and lld whose binaries may set `enable_distributed_thinlto = True`.

    `llvm`: 22 for `clang-22`, `ld.lld-22`, ...; a directory for the programs in it; None for those of PATH.
    `distlto`: as in `distlto_tools`.
    Everything else goes to the prelude's `cxx_toolchain_inheriting_target_platform`.
    """
    distlto_tools(name = name + "-dist-lto", distlto = distlto)
    cxx_internal_tools(name = name + "-internal-tools", dist_lto = ":{}-dist-lto".format(name))
    clang = llvm_programs(
        name,
        llvm,
        ["clang", "clang++", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-objdump", "llvm-ranlib", "llvm-strip"],
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
        "internal_tools": ":{}-internal-tools".format(name),
        "link_style": "static",
        "linker": clang["clang++"],
        "linker_flags": lld_flags(llvm) + linker_flags,
        "linker_type": "gnu",
        "lto_mode": "thin",
        "nm": clang["llvm-nm"],
        "objcopy_for_shared_library_interface": clang["llvm-objcopy"],
        "objdump": clang["llvm-objdump"],
        "ranlib": clang["llvm-ranlib"],
        # Objects rather than archives: an archive would have to be unpacked again.
        "requires_archives": False,
        "requires_objects": True,
        "strip": clang["llvm-strip"],
        "supports_distributed_thinlto": True,
        "visibility": visibility,
    }
    cxx_toolchain_inheriting_target_platform(name = name, **(attributes | kwargs))

"""Distributed ThinLTO: what build files load. Guide: docs/bazel.md of the distlto repository."""

load("//private:providers.bzl", _DistltoInfo = "DistltoInfo")
load(
    "//private:rules.bzl",
    _distlto_binary = "distlto_binary",
    _distlto_import = "distlto_import",
    _distlto_library = "distlto_library",
    _distlto_shared_library = "distlto_shared_library",
    _distlto_test = "distlto_test",
)
load("//private:toolchain.bzl", _distlto_toolchain = "distlto_toolchain")

DistltoInfo = _DistltoInfo
distlto_binary = _distlto_binary
distlto_import = _distlto_import
distlto_library = _distlto_library
distlto_shared_library = _distlto_shared_library
distlto_test = _distlto_test
distlto_toolchain = _distlto_toolchain

"""Distributed ThinLTO for existing targets of the cc rules: the least that a build file has to say.

Apart from defs.bzl, which loads where no cc rules work.
"""

load(
    "//private:cc.bzl",
    "distlto_shared_test",
    _distlto_cc_toolchain = "distlto_cc_toolchain",
    _distlto_link = "distlto_link",
    _distlto_link_test = "distlto_link_test",
)
load("//private:forward.bzl", "OF_PROGRAMS", "OF_TESTS", "forwarded")

distlto_cc_toolchain = _distlto_cc_toolchain

def distlto_link(name, binary, **kwargs):
    """An existing cc_binary or cc_shared_library, linked by distributed ThinLTO.

    Args:
      name: of this target.
      binary: the existing one. It is compiled anew, to bitcode, and is itself not changed.
      **kwargs: attributes of the rule. Those that are not given are those of `binary`, if that is above in this package.
    """
    _distlto_link(name = name, binary = binary, **forwarded(binary, OF_PROGRAMS, kwargs))

def distlto_link_test(name, binary, shared_backends = False, **kwargs):
    """An existing cc_test, linked by distributed ThinLTO.

    Args:
      name: of this target.
      binary: as that of `distlto_link`.
      shared_backends: whether libraries are compiled without imports, once for all such tests. Many tests are quicker to
        build then, and each is slower to run. Debug information is not split.
      **kwargs: as those of `distlto_link`.
    """
    test = distlto_shared_test if shared_backends else _distlto_link_test
    test(name = name, binary = binary, **forwarded(binary, OF_PROGRAMS + OF_TESTS, kwargs))

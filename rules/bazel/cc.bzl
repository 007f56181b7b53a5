"""Distributed ThinLTO for existing targets of the cc rules: the least that a build file has to say.

Apart from defs.bzl, which loads where no cc rules work.
"""

load("//private:cc.bzl", _distlto_cc_toolchain = "distlto_cc_toolchain", _distlto_link = "distlto_link", _distlto_link_test = "distlto_link_test")

distlto_cc_toolchain = _distlto_cc_toolchain
distlto_link = _distlto_link
distlto_link_test = _distlto_link_test

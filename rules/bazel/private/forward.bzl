"""What distlto_link takes over from its `binary`.

The link's command holds most of a target: sources, dependencies and flags. Bazel reads the rest from the attributes of the
target that it builds, runs or tests, and a rule cannot set these. So macros copy them from `binary`, if it stands above
them in the same package. A test compares the lists below with all attributes that Bazel's own cc_binary and cc_test have.
"""

# Attributes of every rule, by which Bazel chooses whether, where and with which arguments it runs a target.
OF_PROGRAMS = [
    "args",
    "compatible_with",
    "data",
    "deprecation",
    "exec_compatible_with",
    "exec_properties",
    "restricted_to",
    "tags",
    "target_compatible_with",
    "testonly",
    "toolchains",
    "visibility",
]

# The same for tests alone.
OF_TESTS = [
    "flaky",
    "local",
    "shard_count",
    "size",
    "timeout",
]

# The rule takes these from the providers of `binary`, already expanded.
BY_PROVIDERS = [
    "env",
    "env_inherit",
]

# The link's command and the objects that it names have these.
BY_THE_LINK = [
    "additional_linker_inputs",
    "conlyopts",
    "copts",
    "cxxopts",
    "defines",
    "deps",
    "dynamic_deps",
    "features",
    "hdrs_check",
    "includes",
    "link_extra_lib",
    "linkopts",
    "linkshared",
    "linkstatic",
    "local_defines",
    "malloc",
    "nocopts",
    "reexport_deps",
    "srcs",
    "stamp",
    "win_def_file",
]

# These do not concern what is built or run: who made a target, for aspects, for licence checks.
LEFT_ALONE = [
    "applicable_licenses",
    "aspect_hints",
    "distribs",
    "expect_failure",
    "generator_function",
    "generator_location",
    "generator_name",
    "licenses",
    "name",
    "output_licenses",
    "transitive_configs",
]

def forwarded(binary, names, given):
    """Attributes for a target that is built from `binary`.

    Args:
      binary: the label of a target, as a build file has it.
      names: which attributes are copied.
      given: attributes that the build file gives itself; they win.

    Returns:
      dict of attributes.
    """
    attributes = dict(given)
    own = "//{}:".format(native.package_name())
    label = str(binary)
    found = native.existing_rule(label[len(own):] if label.startswith(own) else label.lstrip(":"))
    for name in names if found else []:
        value = found.get(name)

        # Without a `shard_count`, a test has -1, which Bazel refuses.
        if name not in attributes and value and value != -1:
            attributes[name] = value
    return attributes

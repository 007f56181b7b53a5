"""Buck2's API as far as distlto's rules and their example use it. Actions are not run but recorded with `emit`; a function
takes exactly the arguments that it knows, so a rule that passes another one fails.

Natives: emit, make_artifact, make_provider, bound, unique, list_files, read_root_config, and the type Artifact.
"""

AnalysisContext = typing.Any
Provider = typing.Any

def provider_field(type, default = None):
    return struct(type = type, default = default)

def provider(fields, doc = ""):
    return make_provider(list(fields))

DefaultInfo = provider(["default_output", "default_outputs", "other_outputs", "sub_targets"])
RunInfo = provider(["args"])
ExternalRunnerTestInfo = provider(["type", "command", "env", "labels"])

# --- attributes ------------------------------------------------------------------------------------------------------

_REQUIRED = struct(required = True)

def _attr(kind, default = _REQUIRED, inner = None, providers = [], optional = False):
    return struct(kind = kind, default = default, inner = inner, providers = providers, optional = optional)

attrs = struct(
    arg = lambda default = _REQUIRED, doc = "": _attr("arg", default),
    dict = lambda key, value, default = _REQUIRED, doc = "": _attr("dict", default, inner = value),
    enum = lambda variants, default = _REQUIRED, doc = "": _attr("enum", default, inner = variants),
    named_set = lambda inner, sorted = False, default = _REQUIRED, doc = "": _attr("named_set", default, inner = inner),
    bool = lambda default = _REQUIRED, doc = "": _attr("bool", default),
    dep = lambda providers = [], default = _REQUIRED, doc = "": _attr("dep", default, providers = providers),
    exec_dep = lambda providers = [], default = _REQUIRED, doc = "": _attr("dep", default, providers = providers),
    list = lambda inner, default = _REQUIRED, doc = "": _attr("list", default, inner = inner),
    option = lambda inner, default = _REQUIRED, doc = "": _attr("option", default, inner = inner),
    source = lambda default = _REQUIRED, allow_directory = False, doc = "": _attr("source", default),
    string = lambda default = _REQUIRED, doc = "": _attr("string", default),
    toolchain_dep = lambda providers = [], default = _REQUIRED, doc = "": _attr("dep", default, providers = providers),
)

def rule(impl, attrs, doc = "", is_toolchain_rule = False):
    def declare(name, visibility = [], **kwargs):
        emit("target", struct(name = name, impl = impl, attrs = attrs, given = kwargs))

    return declare

def foreign_rule(kind):
    """A rule of the prelude: its targets are recorded and not analysed."""

    def declare(name, **kwargs):
        emit("foreign", struct(kind = kind, name = name, given = kwargs))

    return declare

def glob(patterns):
    found = []
    for pattern in patterns:
        found += [path for path in list_files(pattern) if path not in found]
    return found

# --- values ----------------------------------------------------------------------------------------------------------

_QUOTES = ["shell"]

def cmd_args(*args, hidden = [], delimiter = None, format = None, quote = None, ignore_artifacts = False, parent = 0, relative_to = None):
    if quote != None and quote not in _QUOTES:
        fail("unknown quoting `{}`".format(quote))
    items = list(args)
    return struct(
        _cmd_args = items,
        _hidden = [hidden],
        _delimiter = delimiter,
        _format = format,
        _quote = quote,
        _ignore = ignore_artifacts,
        _parent = parent,
        _relative_to = relative_to,
        add = lambda *more: items.extend(more),
    )

def transitive_set(args_projections = {}):
    return struct(args_projections = args_projections)

def _tset(definition, value = None, children = []):
    set = struct(id = unique(), value = value, children = children)

    def traverse(ordering = "preorder"):
        if ordering != "topological":
            fail("the stand-in has no ordering `{}`".format(ordering))
        return [node.value for node in _topological(set) if node.value != None]

    def project_as_args(name):
        return cmd_args([definition.args_projections[name](value) for value in traverse(ordering = "topological")])

    return struct(id = set.id, value = value, children = children, traverse = traverse, project_as_args = project_as_args)

def _topological(root):
    """Each set before its children, once."""
    order = []
    seen = {}

    def visit(node):
        if node.id in seen:
            return
        seen[node.id] = True
        for child in reversed(node.children):
            visit(child)
        order.append(node)

    visit(root)
    return list(reversed(order))

# --- analysis --------------------------------------------------------------------------------------------------------

def make_context(package, name, values, prefix):
    """`prefix` is the directory of what is declared here; Buck2 gives each dynamic action one of its own."""
    base = "/".join(["buck-out", package or "root", "__{}__".format(name)] + prefix)

    def declare_output(first, second = None, dir = False, has_content_based_path = None):
        # A project may make true what is not said, and modules are named by their paths.
        if has_content_based_path != False:
            fail("`{}` is declared without has_content_based_path = False".format(first))
        path = first if second == None else first + "/" + second
        artifact = make_artifact(path = base + "/" + path, short_path = second or first, source = False)
        emit("declare", artifact)
        return artifact

    def output_of(output):
        if type(output) == "string":
            fail("`{}` is not declared".format(output))
        return output

    def run(command, category, identifier = "", dep_files = {}):
        owner = package + ":" + name if package else name
        emit("run", struct(command = command, owner = owner, category = category, identifier = identifier, tags = [tag.id for tag in dep_files.values()]))

    def artifact_tag():
        id = unique()
        return struct(id = id, tag_artifacts = lambda inner: struct(_tagged = inner, _tag = id))

    def write(output, content, allow_args = False):
        artifact = output_of(output)
        emit("write", struct(output = artifact.as_output(), content = content))
        return (artifact, []) if allow_args else artifact

    def write_json(output, content, with_inputs = False):
        artifact = output_of(output)
        emit("write_json", struct(output = artifact.as_output(), content = content))
        return cmd_args(artifact, hidden = _leaves(content)) if with_inputs else artifact

    def copy_file(output, source):
        artifact = output_of(output)
        emit("copy", struct(output = artifact.as_output(), source = source))
        return artifact

    def symlinked_dir(output, content):
        artifact = output_of(output)
        emit("symlinked_dir", struct(output = artifact.as_output(), content = content))
        return artifact

    def dynamic_output(dynamic, inputs, outputs, f):
        if not dynamic or not outputs:
            fail("dynamic_output needs inputs and outputs")
        emit("dynamic", struct(dynamic = dynamic, outputs = outputs, f = f, package = package, name = name, values = values))

    return struct(
        attrs = struct(**values),
        label = struct(package = package, name = name),
        actions = struct(
            artifact_tag = artifact_tag,
            copy_file = copy_file,
            declare_output = declare_output,
            dynamic_output = dynamic_output,
            run = run,
            symlinked_dir = symlinked_dir,
            tset = _tset,
            write = write,
            write_json = write_json,
        ),
    )

def _leaves(content):
    if type(content) == "dict":
        return [_leaves(value) for value in content.values()]
    if type(content) == "list":
        return [_leaves(value) for value in content]
    return [] if content == None or type(content) in ("string", "int", "bool") else [content]

def analyse(target, package, resolve):
    """Runs a rule's implementation. `resolve` gives a label's providers, as a dict by provider."""

    def coerce(name, attr, value):
        if attr.kind == "option":
            return None if value == None else coerce(name, attr.inner, value)
        if attr.kind == "named_set":
            if type(value) == "dict":
                return {key: coerce(name, attr.inner, item) for key, item in value.items()}
            return [coerce(name, attr.inner, item) for item in value]
        if attr.kind == "dict":
            return {key: coerce(name, attr.inner, item) for key, item in value.items()}
        if attr.kind == "list":
            if type(value) != "list":
                fail("{}: `{}` is no list: {}".format(target.name, name, value))
            return [coerce(name, attr.inner, item) for item in value]
        if attr.kind == "bool":
            if type(value) != "bool":
                fail("{}: `{}` is no bool: {}".format(target.name, name, value))
            return value
        if type(value) != "string":
            fail("{}: `{}` is no string: {}".format(target.name, name, value))
        if attr.kind == "enum":
            if value not in attr.inner:
                fail("{}: `{}` is none of {}: {}".format(target.name, name, attr.inner, value))
            return value
        if attr.kind == "dep":
            found = resolve(value)
            for provider in attr.providers:
                if provider not in found:
                    fail("{}: `{}` lacks {}".format(target.name, value, provider))
            return found
        if attr.kind == "source":
            if value.startswith(":") or "//" in value:
                outputs = default_outputs(resolve(value))
                if len(outputs) != 1:
                    fail("{}: `{}` has {} outputs".format(target.name, value, len(outputs)))
                return outputs[0]
            path = package + "/" + value if package else value
            return make_artifact(path = path, short_path = value, source = True)
        if attr.kind == "arg" and "$(" in value:
            fail("the stand-in expands no macros: {}".format(value))
        return value

    values = {}
    for name, attr in target.attrs.items():
        given = target.given.get(name, attr.default)
        if given == _REQUIRED:
            fail("{}: `{}` is missing".format(target.name, name))
        values[name] = coerce(name, attr, given)
    for name in target.given:
        if name not in target.attrs:
            fail("{}: unknown attribute `{}`".format(target.name, name))
    providers = target.impl(make_context(package, target.name, values, []))
    return {getattr(provider, "_provider"): provider for provider in providers}

def default_outputs(providers):
    info = providers[DefaultInfo]
    if info.default_output != None:
        return [info.default_output]
    return info.default_outputs or []

def run_arguments(providers):
    if ExternalRunnerTestInfo in providers:
        return providers[ExternalRunnerTestInfo].command
    return providers[RunInfo].args

def call_dynamic(dynamic, contents, number):
    """Calls the function of a dynamic_output. `contents` are those of `dynamic.dynamic`, in order."""

    def value(text):
        return struct(read_json = lambda: json.decode(text), read_string = lambda: text)

    artifacts = {artifact: value(text) for artifact, text in zip(dynamic.dynamic, contents)}
    outputs = {bound(output): bound(output) for output in dynamic.outputs}
    ctx = make_context(dynamic.package, dynamic.name, dynamic.values, ["__action___{}__".format(number)])
    result = dynamic.f(ctx, artifacts, outputs)
    if result != None:
        fail("a dynamic_output returned {}".format(result))

def resolver(emitted):
    """A function from a label and the package that it stands in to the providers of the target."""
    memo = {}

    def find(key):
        package = None
        for kind, value in emitted:
            if kind == "package":
                package = value
            elif kind in ("target", "foreign") and key == (package, value.name):
                return kind, value
        fail("there is no target {}".format(key))

    def resolve(package, label):
        place, name = label.split(":")
        key = ({"": package, "toolchains//": "toolchains"}.get(place, place.removeprefix("//")), name)
        if key not in memo:
            kind, target = find(key)
            memo[key] = analyse(target, key[0], lambda label: resolve(key[0], label)) if kind == "target" else {}

            # By which a dependency prints.
            memo[key]["label"] = label
        return memo[key]

    return resolve

def built_outputs(providers, sub_target):
    """What building a target or a part of it makes."""
    if sub_target:
        return [info.default_output for info in providers[DefaultInfo].sub_targets[sub_target]]
    return default_outputs(providers) + (providers[DefaultInfo].other_outputs or [])

# --- what the example uses of the prelude ----------------------------------------------------------------------------

def _genrule_impl(ctx):
    output = ctx.actions.declare_output("out", ctx.attrs.out, has_content_based_path = False)
    script = cmd_args("TMP=$(mktemp -d); export TMP; OUT=", output.as_output(), "; export OUT; ", ctx.attrs.cmd, delimiter = "")
    ctx.actions.run(cmd_args("/bin/sh", "-ec", script, hidden = ctx.attrs.srcs), category = "genrule")
    return [DefaultInfo(default_output = output)]

genrule = rule(
    impl = _genrule_impl,
    attrs = {
        "cmd": attrs.string(),
        "out": attrs.string(),
        "srcs": attrs.list(attrs.source(), default = []),
    },
)

export_file = rule(
    impl = lambda ctx: [DefaultInfo(default_output = ctx.attrs.src)],
    attrs = {"src": attrs.source()},
)

cxx_binary = foreign_rule("cxx_binary")
cxx_library = foreign_rule("cxx_library")
prebuilt_cxx_library = foreign_rule("prebuilt_cxx_library")

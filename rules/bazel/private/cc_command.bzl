"""The command of a link of the cc rules: an aspect finds it, and `add_line` turns it into the line of a ThinLTO link.

All that Bazel and its toolchain put there is there: `linkopts`, `linkstamp`, `alwayslink`, `malloc`, version scripts,
features, shared libraries. The command itself never runs.
"""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":fission.bzl", "FissionInfo")
load(":link.bzl", "relative")

CcCommandInfo = provider(
    doc = "The link of a target of the cc rules.",
    fields = {
        "args": "the `args` of the target, as its build file has them",
        "argv": "words of the link",
        "fission": "whether this build splits debug information",
        "inputs": "depset of what the link reads",
        "objects": "dict of a library's path to its objects",
        "output": "the File that the link makes",
        "strip": "words of the command that strips it; None without one",
    },
)

def _linker_inputs(target, ctx):
    """What the target's dependencies bring to a link."""
    deps = getattr(ctx.rule.attr, "deps", []) or []
    malloc = getattr(ctx.rule.attr, "malloc", None)
    extra = getattr(ctx.rule.attr, "link_extra_lib", None)
    infos = [dep[CcInfo] for dep in deps + [malloc, extra] if dep and CcInfo in dep]
    if CcInfo in target:
        infos.append(target[CcInfo])
    return [one for info in infos for one in info.linking_context.linker_inputs.to_list()]

def _objects(target, ctx):
    objects = {}
    for one in _linker_inputs(target, ctx):
        for library in one.libraries:
            if library.static_library:
                objects[library.static_library.path] = library.objects
            if library.pic_static_library:
                objects[library.pic_static_library.path] = library.pic_objects
    return objects

def _made(target, mnemonic, outputs):
    """The action of this kind that makes one of `outputs`, and that output."""
    for action in target.actions:
        if action.mnemonic == mnemonic and action.argv:
            for file in action.outputs.to_list():
                if file in outputs:
                    return action, file
    return None, None

def _cc_command_aspect_impl(target, ctx):
    # The shared library of a cc_library is no program: its tests and its users link the library otherwise.
    if ctx.rule.kind == "cc_library":
        return []
    executable = target[DefaultInfo].files_to_run.executable
    link, output = _made(target, "CppLink", ([executable] if executable else []) + target[DefaultInfo].files.to_list())
    if not link:
        return []
    strips = [
        action.argv
        for action in target.actions
        if action.mnemonic == "CcStrip" and action.argv and output.path in action.argv
    ]
    return [CcCommandInfo(
        args = getattr(ctx.rule.attr, "args", []),
        argv = link.argv,
        fission = ctx.attr._fission[FissionInfo].active,
        inputs = link.inputs,
        objects = _objects(target, ctx),
        output = output,
        strip = strips[0] if strips else None,
    )]

cc_command_aspect = aspect(
    implementation = _cc_command_aspect_impl,
    attrs = {"_fission": attr.label(default = "//private:fission")},
)

def _run_path(word, old, new):
    """Where the loader finds the build's shared libraries, for the program `new` in place of `old`.

    Beside `old` in its own configuration's outputs, in the program's runfiles, or in the runfiles that it is itself one of.
    """
    flag, origin, place = word.partition("$ORIGIN/")
    if not origin or "_solib_" not in place:
        return word
    of_old = old.basename + ".runfiles/"
    if place.startswith(of_old):
        return flag + origin + new.basename + ".runfiles/" + place[len(of_old):]
    built = relative(old.dirname + "/" + place, new.dirname)
    below = lambda file: file.short_path.rpartition("/")[0]
    among = relative(below(old) + "/" + place if below(old) else place, below(new))
    return "{}{}{}:{}{}".format(flag, origin, built, origin, among)

# By which Bazel strips a program of debug information.
_STRIP = "-Wl,-S"

_WHOLE = ["-Wl,-whole-archive", "-Wl,--whole-archive"]
_NOT_WHOLE = ["-Wl,-no-whole-archive", "-Wl,--no-whole-archive"]

def add_line(line, command, output, natives = {}):
    """Adds the words of the link after the driver, with objects in place of libraries.

    Args:
      line: Args.
      command: a CcCommandInfo.
      output: the File to link.
      natives: dict of paths of bitcode to machine code that is linked in its place.

    Returns:
      A struct: `objects`, those on the line; `unknown`, whether archives or directories hold others; `inputs`.
    """
    by_path = {file.path: file for file in command.inputs.to_list()}
    objects = []
    replaced = {}
    unknown = False
    whole = False
    skip = False
    for word in command.argv[1:]:
        if skip:
            skip = False
            continue
        file = by_path.get(word)
        if word == "-o":
            skip = True
        elif word.startswith("-fuse-ld=") or word.startswith("--ld-path="):
            pass
        elif word == _STRIP and command.fission:
            # The program has to name the files that hold its debug information.
            pass
        elif command.objects.get(word):
            replaced[word] = None
            of_library = [natives.get(object.path, object) for object in command.objects[word]]
            objects += of_library
            line.add_all([] if whole else ["-Wl,--start-lib"])
            line.add_all(of_library)
            line.add_all([] if whole else ["-Wl,--end-lib"])
        elif word in natives:
            replaced[word] = None
            objects.append(natives[word])
            line.add(natives[word])
        elif file and file.is_directory:
            objects.append(file)
            line.add_all([file])
        else:
            whole = word in _WHOLE or (whole and word not in _NOT_WHOLE)
            if file and file.extension in ["o", "obj"]:
                objects.append(file)
            elif file and file.extension in ["a", "lo", "rlib", "lib"]:
                unknown = True
            line.add(_run_path(word, command.output, output))
    line.add("-o", output)
    files = [file for path, file in by_path.items() if path not in replaced]
    trees = [file for file in objects if file.is_directory]
    return struct(
        objects = [file for file in objects if not file.is_directory],
        unknown = unknown or bool(trees),
        inputs = depset(files + objects),
    )

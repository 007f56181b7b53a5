"""A setting of builds to bitcode, which distlto_link makes: whether they split debug information."""

FissionInfo = provider(
    doc = "The setting.",
    fields = {"active": "whether debug information is split"},
)

def _fission_impl(ctx):
    return [FissionInfo(active = ctx.build_setting_value)]

fission_setting = rule(
    doc = "Set by the transition of distlto_link, for its aspect.",
    implementation = _fission_impl,
    build_setting = config.bool(),
)

# Distributed ThinLTO for Linux 7.2 or later (CONFIG_LTO_CLANG_THIN_DIST), without a patch:
#
#   make LLVM=-22 MAKEFILES=PATH/distlto-kbuild.mk ...
#
# MAKEFILES reaches every make of the build, and override wins over Kbuild's own definitions. An edit then compiles the modules
# whose shard or flags changed, and no others. `make` without MAKEFILES builds as upstream does.

DISTLTO ?= distlto
# Options of distlto opt and distlto link: --remote URL. Results are cached in the directory of DISTLTO_CACHE.
DISTLTO_OPTIONS ?=

# The thin link of vmlinux, which keeps shards that did not change.
override cmd_ld_thinlto_index = \
	$(DISTLTO) kbuild-index -- $(LD) $(KBUILD_LDFLAGS) -r --thinlto-index-only=$@ @$<

# One backend, with the flags that Kbuild has recorded of its module.
override cmd_cc_o_bc = \
	$(DISTLTO) opt $(DISTLTO_OPTIONS) --out $@ --input $< --index $(word 2,$^) \
		--flags-from kbuild -- $(CC)

# The archive of native objects, in the order of the modules.
override cmd_ar_vmlinux.a = \
	$(DISTLTO) kbuild-archive --out $@ --order $< --index $(word 2,$^) -- $(AR) cDPrS --thin

# A module of several objects.
override cmd_ld_multi_m = \
	$(DISTLTO) link --quiet --flags-from kbuild --compiler $(lastword $(CC)) $(DISTLTO_OPTIONS) -- $(LD) $(ld_flags) -r -o $@ @$< $(cmd_objtool)

//! Examples and files of the manual pages.
//!
//! Tests parse each example by the command line's own definition, and compare the files with the reference.

/// Examples of each command, by the name of its page: a command, and its effect.
pub const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "distlto",
        &[
            (
                "distlto ninja",
                "Serves every ThinLTO link of a build, and ends with a line that counts links and backends.",
            ),
            ("distlto clang++ -flto=thin -fuse-ld=lld a.o b.o -o prog", "Serves one link."),
            ("DISTLTO_LINK_OPTIONS='-v -j 4' distlto make", "The same with options of distlto link."),
        ],
    ),
    (
        "distlto-link",
        &[
            (
                "distlto link -v -- clang++ -flto=thin -fuse-ld=lld a.o b.o -o prog",
                "Links, and prints each backend.",
            ),
            (
                "distlto link --dry-run -- ld.lld a.o b.o -o prog",
                "Prints the backends that would run, and why.",
            ),
            (
                "distlto link --remote-cache grpcs://cache.example.org -- clang++ -flto=thin -fuse-ld=lld a.o -o prog",
                "Shares objects with other machines.",
            ),
        ],
    ),
    (
        "distlto-run",
        &[("distlto run prog.distlto", "Runs the outdated actions of a graph of distlto index.")],
    ),
    (
        "distlto-prepare",
        &[("distlto prepare --archive libx.a --objects-out x", "Unpacks an archive into the directory x.")],
    ),
    (
        "distlto-index",
        &[(
            "distlto index -- clang++ -flto=thin -fuse-ld=lld a.o libx.a -o prog",
            "Writes prog.distlto/index/graph.json and the index shards.",
        )],
    ),
    (
        "distlto-kbuild-index",
        &[(
            "distlto kbuild-index -- ld.lld --thinlto-index-only=list a.o b.o",
            "Performs this thin link, and replaces only shards that differ.",
        )],
    ),
    (
        "distlto-kbuild-archive",
        &[(
            "distlto kbuild-archive --out vmlinux.a --order objects --index list -- llvm-ar cDPrST",
            "Makes the archive of a kernel's objects.",
        )],
    ),
    (
        "distlto-plan",
        &[
            ("distlto plan prog.distlto", "Prints modules, imports, costs and simulated times."),
            ("distlto plan prog.distlto --ninja link.ninja", "Writes a file for ninja -f link.ninja."),
        ],
    ),
    (
        "distlto-inspect",
        &[
            ("distlto inspect prog", "Prints the bound of the last link, and its hubs."),
            ("distlto inspect prog --modules --filter net/", "Lists modules with their costs."),
            ("distlto inspect -- clang++ -flto=thin a.o b.o -o prog", "Predicts a link that was not made."),
        ],
    ),
    (
        "distlto-explain",
        &[
            ("distlto explain prog a.o", "Prints why the backend of a.o ran, and its imports."),
            (
                "distlto explain prog a.o b.o",
                "Lists the functions that a.o imports from b.o, and why not others.",
            ),
            ("distlto explain prog a.o --miss", "Compares its key with earlier ones."),
        ],
    ),
    (
        "distlto-diff",
        &[
            ("distlto diff prog", "Compares the last two runs."),
            ("distlto diff old/prog new/prog", "Compares two links."),
        ],
    ),
    (
        "distlto-verify",
        &[(
            "distlto verify -- clang++ -flto=thin -fuse-ld=lld a.o b.o -o prog",
            "Compares the program with that of lld alone; writes no prog.",
        )],
    ),
    ("distlto-report", &[("distlto report prog -o prog.html", "Writes a page on the last link.")]),
    (
        "distlto-opt",
        &[(
            "distlto opt --out a.native.o --input a.o --index a.o.thinlto.bc -- clang -O2",
            "Runs one backend, and checks its object.",
        )],
    ),
    (
        "distlto-distribute",
        &[(
            "distlto distribute -j 8 -v job.json",
            "Runs the jobs of a link by DTLTO. lld starts it so, given --thinlto-distributor.",
        )],
    ),
    ("distlto-cache", &[("distlto cache stats", "Prints the size of the store, hits and misses.")]),
    (
        "distlto-cache-stats",
        &[("distlto cache stats --json", "Prints size, age, hits and misses for tools.")],
    ),
    (
        "distlto-cache-prune",
        &[(
            "distlto cache prune --max-size 2G --max-age 14d",
            "Removes the least recently used objects, and those not used for 14 days.",
        )],
    ),
    (
        "distlto-cache-verify",
        &[("distlto cache verify", "Reads the whole store, and removes damaged files.")],
    ),
    (
        "distlto-cache-export",
        &[("distlto cache export objects.tar --max-size 1G", "Writes the most recently used objects.")],
    ),
    ("distlto-cache-import", &[("distlto cache import objects.tar", "Adds the objects of such a file.")]),
    (
        "distlto-stats",
        &[
            ("distlto stats", "Counts the links of all builds of this user."),
            ("distlto stats .", "Counts those below the current directory."),
        ],
    ),
    (
        "distlto-doctor",
        &[
            ("distlto doctor", "Checks this machine."),
            ("distlto doctor -- clang++ -flto=thin -fuse-ld=lld a.o -o prog", "Checks this link, too."),
        ],
    ),
    ("distlto-config", &[("distlto config", "Prints each option of a link with its value and origin.")]),
    ("distlto-demo", &[("distlto demo", "Writes a small program, and shows links of it.")]),
    (
        "distlto-remote",
        &[("distlto remote check grpcs://build.example.org", "Asks a server for its capabilities.")],
    ),
    (
        "distlto-remote-check",
        &[
            ("distlto remote check", "Checks the configured server."),
            ("distlto remote check grpcs://build.example.org", "Checks another one."),
        ],
    ),
    ("distlto-copy", &[("distlto copy --from a --to b", "Copies a file with its mode.")]),
    (
        "distlto-archive-mapper",
        &[("distlto archive-mapper --objects_dir x --object_to_map a.o out/a.o", "Copies x/a.o to out/a.o.")],
    ),
    (
        "distlto-compiler-stats-merger",
        &[(
            "distlto compiler-stats-merger --input-stats-filelist list --output-stats-file sum.json",
            "Sums the statistics of the files that the list names.",
        )],
    ),
    (
        "distlto-header-list",
        &[("distlto header-list --out a.headers -- clang -c a.c -o a.o", "Compiles, and lists the headers.")],
    ),
];

/// Files that the programs read and write, each with its content.
pub const FILES: &[(&str, &str)] = &[
    ("$XDG_CACHE_HOME/distlto, ~/.cache/distlto, or --cache DIR", "the store"),
    ("STORE/results-v1/", "objects, each with a record under its key"),
    ("STORE/links-v1/P-0123456789ab/", "the record of a link: output's name, digest of its path"),
    ("distlto.toml, ~/.config/distlto/config.toml", "configuration"),
    ("P.distlto/index/", "graph and shards of distlto index"),
    ("$XDG_RUNTIME_DIR/distlto-ledger-v1, /tmp/distlto-ledger-v1-UID", "the ledger of links at once"),
];

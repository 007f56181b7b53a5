//! The C structures that a linker passes: the same layout as `include/dtlto_plugin.h`, which says what they hold.
//!
//! Field names are those of the interface. Knows nothing of what is done with them.

use std::ffi::{c_char, c_void};

/// A callback of the linker. It may unwind, by mistake or by a C++ exception, which ends the process instead of being
/// undefined.
pub type Emit = unsafe extern "C-unwind" fn(context: *const c_void, text: *const c_char);

/// What concerns the whole call.
#[repr(C)]
#[expect(non_snake_case, reason = "the interface's own names")]
pub struct Config {
    pub DbsName: *const c_char,
    pub DiagContext: *const c_void,
    pub EmitError: Option<Emit>,
    pub EmitWarn: Option<Emit>,
}

/// One backend compilation.
#[repr(C)]
#[expect(non_snake_case, reason = "the interface's own names")]
pub struct Node {
    pub ModuleId: *const c_char,
    pub ModulePath: *const c_char,
    pub ModuleSize: usize,
    pub SummaryIndexPath: *const c_char,
    pub NativeObjectPath: *const c_char,
    pub ImportsListSize: usize,
    pub ImportsList: *const *const c_char,
    pub TargetTriple: *const c_char,
    pub TaskNumber: usize,
}

#[cfg(test)]
mod tests {
    use super::{Config, Node};
    use std::fmt::Write;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    /// One line for each field, from Rust; and a C program that prints the same lines from the header.
    macro_rules! fields {
        ($($c:ident $rust:ident: $($field:ident)*;)*) => {{
            let (mut lines, mut program) = (String::new(), String::new());
            $(
                writeln!(lines, "{} {}", stringify!($c), size_of::<$rust>()).unwrap();
                writeln!(program, "printf(\"{0} %zu\\n\", sizeof({0}));", stringify!($c)).unwrap();
                $(
                    writeln!(lines, "{}.{} {}", stringify!($c), stringify!($field), offset_of!($rust, $field)).unwrap();
                    writeln!(program, "printf(\"{0}.{1} %zu\\n\", offsetof({0}, {1}));", stringify!($c), stringify!($field))
                        .unwrap();
                )*
            )*
            (lines, program)
        }};
    }

    #[test]
    fn the_header_describes_the_same_layout() {
        let (lines, statements) = fields! {
            DtltoConfig Config: DbsName DiagContext EmitError EmitWarn;
            DtltoNode Node: ModuleId ModulePath ModuleSize SummaryIndexPath NativeObjectPath ImportsListSize ImportsList
                TargetTriple TaskNumber;
        };
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("layout.c");
        let program = place.path().join("layout");
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/dtlto_plugin.h");
        let text = format!(
            "#include \"{}\"\n#include <stdio.h>\nint main(void) {{\n{statements}return 0; }}\n",
            header.display()
        );
        std::fs::write(&source, text).unwrap();
        let status = Command::new("clang-22")
            .args(["-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(&source)
            .status()
            .expect("clang-22 is missing; install it with `cargo xtask setup`");
        assert!(status.success());
        let said = Command::new(&program).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), lines);
    }
}

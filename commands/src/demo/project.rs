//! The program of `distlto demo`: parts of C++ that import from one another, their `main`, and a broken compiler.
//!
//! Sources need no header but `<cstdio>`. Knows nothing of links.

use std::fmt::Write;
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{write_if_changed, write_if_changed_with_mode};

/// How many parts there are, besides `main.cpp`.
const PARTS: u32 = 12;

/// The part that is edited, what is edited in it, and the new text. Both are words of sed too.
pub const EDITED: (&str, &str, &str) = ("part05.cpp", "x [*] 13", "x * 14");

/// Writes all files.
pub fn write(folder: &Path) -> Result<(), IoError> {
    for part in 0..PARTS {
        write_if_changed(&folder.join(format!("part{part:02}.cpp")), source(part).as_bytes())?;
    }
    write_if_changed(&folder.join("main.cpp"), main().as_bytes())?;
    write_if_changed_with_mode(&folder.join("badclang"), include_bytes!("badclang"), 0o755)?;
    Ok(())
}

fn source(part: u32) -> String {
    let later = |by: u32| format!("{:02}", (part + by) % PARTS);
    include_str!("part.cpp")
        .replace("@PARTS@", &PARTS.to_string())
        .replace("@PART@", &later(0))
        .replace("@NEXT@", &later(1))
        .replace("@AFTER@", &later(2))
        .replace("@FACTOR@", &(2 * part + 3).to_string())
}

fn main() -> String {
    let (mut declared, mut called) = (String::new(), String::new());
    for part in 0..PARTS {
        // Writing to a string cannot fail.
        let _ = writeln!(declared, "unsigned part{part:02}(unsigned);");
        let _ = writeln!(called, "  x = part{part:02}(x);");
    }
    format!(
        "#include <cstdio>\n\n{declared}\nint main() {{\n  unsigned x = 1;\n{called}  std::printf(\"the sum is %u\\n\", x);\n}}\n"
    )
}

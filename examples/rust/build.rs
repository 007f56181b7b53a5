//! Compiles the part that is written in C++; by the lines in `.cargo/config.toml` to bitcode.

fn main() {
    println!("cargo::rerun-if-changed=src/letters.cpp");
    cc::Build::new().cpp(true).file("src/letters.cpp").compile("letters");
}

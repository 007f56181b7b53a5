// Rust calls C++ that calls Rust, all in bitcode.
//# llvm: 22
//# step: %rustc --edition 2024 --crate-type staticlib -C linker-plugin-lto -C opt-level=3 -C codegen-units=4 -C panic=abort rusty.rs -o librusty.a
//# step: %ar rcs libcpp.a shape.o
//# link: main.o librusty.a libcpp.a -lpthread -ldl -lm
//# not for macho wasm coff mingw: needs other libraries
//--- main.cpp
#include <cstdio>
extern "C" int rusty(int);
int main() { std::printf("%d\n", rusty(5)); }
//--- shape.cpp
#include <string>
extern "C" int back(int);
extern "C" int shape(int n) { return std::to_string(n).size() + back(n); }
//--- rusty.rs
unsafe extern "C" {
    fn shape(n: i32) -> i32;
}
#[unsafe(no_mangle)]
pub extern "C" fn rusty(n: i32) -> i32 {
    let mut seen = std::collections::BTreeMap::new();
    for i in 0..n {
        seen.insert(i, unsafe { shape(i) });
    }
    seen.values().sum()
}
#[unsafe(no_mangle)]
pub extern "C" fn back(n: i32) -> i32 {
    n * n
}

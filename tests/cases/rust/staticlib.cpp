// A Rust staticlib in bitcode linked into a C++ program: std's own native members stay native, calls are inlined across.
//# llvm: 22
//# step: %rustc --edition 2024 --crate-type staticlib -C linker-plugin-lto -C opt-level=2 -C panic=abort rusty.rs -o librusty.a
//# link: main.o librusty.a -lpthread -ldl -lm
//# not for macho wasm coff mingw: needs other libraries
//--- main.cpp
#include <cstdint>
#include <cstdio>
extern "C" uint64_t rusty_sum(const uint32_t *, size_t);
extern "C" int rusty_greet(const char *);
int main() {
  uint32_t numbers[] = {1, 2, 3, 4, 5};
  std::printf("%llu %d\n", (unsigned long long)rusty_sum(numbers, 5), rusty_greet("C++"));
}
//--- rusty.rs
use std::ffi::{CStr, c_char, c_int};
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rusty_sum(data: *const u32, len: usize) -> u64 {
    unsafe { std::slice::from_raw_parts(data, len) }.iter().map(|&n| u64::from(n)).sum()
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rusty_greet(name: *const c_char) -> c_int {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let greeting = format!("hello from Rust, {name}");
    println!("{greeting}");
    c_int::try_from(greeting.len()).unwrap_or(0)
}

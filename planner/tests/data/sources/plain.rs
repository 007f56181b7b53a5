//! A library of one function, which tests compile with rustc to bitcode and objects that take part in LTO.
//! Nothing recorded depends on its bytes.

#[unsafe(no_mangle)]
pub fn triple(x: u32) -> u32 {
    x.wrapping_mul(3)
}

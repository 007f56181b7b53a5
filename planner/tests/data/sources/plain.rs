#[unsafe(no_mangle)]
pub fn triple(x: u32) -> u32 {
    x.wrapping_mul(3)
}

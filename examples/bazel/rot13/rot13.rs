//! One letter, rotated by thirteen places.
#![no_std]

#[no_mangle]
pub extern "C" fn rot13_letter(letter: u8) -> u8 {
    match letter {
        b'a'..=b'z' => (letter - b'a' + 13) % 26 + b'a',
        b'A'..=b'Z' => (letter - b'A' + 13) % 26 + b'A',
        _ => letter,
    }
}

//! Prints how often each word occurs, linked by distlto from the bitcode of two crates and a file of C++.

unsafe extern "C" {
    safe fn is_letter(byte: u8) -> bool;
}

/// A text with a space in place of all that is no letter.
fn letters(text: &str) -> String {
    text.bytes().map(|byte| if is_letter(byte) { char::from(byte) } else { ' ' }).collect()
}

fn main() {
    for (word, count) in words::count(&letters("the cat, and the dog, and the bird")) {
        println!("{count} {word}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn commas_are_no_letters() {
        assert_eq!(super::letters("a,b"), "a b");
    }
}

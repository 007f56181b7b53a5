//! Prints how often each word occurs, linked by distlto from the bitcode of two crates.

fn main() {
    for (word, count) in words::count("the cat and the dog and the bird") {
        println!("{count} {word}");
    }
}

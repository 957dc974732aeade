//! `cargo +nightly fuzz run apply`

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match entourage_fuzz::check("apply", input) {
        true => Corpus::Keep,
        false => Corpus::Reject,
    }
});

//! `cargo +nightly fuzz run selector`

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match entourage_fuzz::check("selector", input) {
        true => Corpus::Keep,
        false => Corpus::Reject,
    }
});

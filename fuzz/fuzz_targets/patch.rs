//! `cargo +nightly fuzz run patch`

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match entourage_fuzz::check("patch", input) {
        true => Corpus::Keep,
        false => Corpus::Reject,
    }
});

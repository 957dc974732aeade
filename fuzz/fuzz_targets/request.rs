//! `cargo +nightly fuzz run request`

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

mod interpreter;

fuzz_target!(
    init: interpreter::tolerate(),
    |input: &[u8]| -> Corpus {
        match entourage_fuzz::check("request", input) {
            true => Corpus::Keep,
            false => Corpus::Reject,
        }
    }
);

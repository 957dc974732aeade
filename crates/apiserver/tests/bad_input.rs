//! The laws of the fuzz targets, on stable: over the seeds, and over random choices.
//!
//! The laws are in `fuzz/src`; `fuzz/seeds/TARGET` holds cases written out, every crash that a fuzzer found among them.

use std::{fs, path::Path};

use proptest::prelude::*;

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

#[test]
fn every_seed_keeps_the_laws_of_its_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for target in fuzz::TARGETS {
        let mut count = 0;
        for seed in fs::read_dir(seeds.join(target.name)).unwrap() {
            let path = seed.unwrap().path();
            println!("{}", path.display());
            let input = fs::read(&path).unwrap();
            assert!(
                (target.check)(&input),
                "{} is no case of {}",
                path.display(),
                target.name
            );
            assert!((target.show)(&input).is_some());
            count += 1;
        }
        assert!(count > 0, "{} has no seeds", target.name);
    }
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_patch_breaks_a_law(input in choices()) {
        fuzz::check("patch", &input);
    }

    #[test]
    fn no_apply_takes_what_others_own(input in choices()) {
        fuzz::check("apply", &input);
    }

    #[test]
    fn selectors_are_read_as_they_are_written(input in choices()) {
        fuzz::check("selector", &input);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn custom_resources_are_shaped_once(input in choices()) {
        fuzz::check("schema", &input);
    }

    #[test]
    fn every_request_gets_a_well_formed_answer(input in choices()) {
        fuzz::check("request", &input);
    }
}

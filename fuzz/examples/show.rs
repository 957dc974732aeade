//! `cargo run --example show -- TARGET FILE`: what an input means, as a seed is written.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, file] = args.as_slice() else {
        eprintln!("usage: show TARGET FILE");
        return ExitCode::FAILURE;
    };
    let target = entourage_fuzz::TARGETS.iter().find(|target| target.name == name);
    let shown = std::fs::read(file)
        .ok()
        .zip(target)
        .and_then(|(input, target)| (target.show)(&input));
    let Some(shown) = shown else {
        eprintln!("no such target, no such file, or an input without a meaning");
        return ExitCode::FAILURE;
    };
    println!("{shown}");
    ExitCode::SUCCESS
}

//! The `entourage` command.
fn main() {}

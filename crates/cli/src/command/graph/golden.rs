//! The golden cases of `entourage graph`: files in `testdata/graph`, each a command line after `#`, and its output for the
//! manifests beside it. `UPDATE_GOLDEN=1` rewrites the output.

use super::{of_files, rendered};
use crate::{command::Command, golden};

#[test]
fn every_command_line_comes_out_as_its_file_says() {
    golden::command_lines("graph", 8, |command| {
        let Command::Graph(mut args) = command else {
            panic!("not a graph: {command:?}");
        };
        for path in &mut args.files.filename {
            *path = golden::folder("graph").join(&*path);
        }
        match of_files(&args).and_then(|drawing| rendered(&args, drawing)) {
            Ok(text) => text,
            Err(error) => format!("error: {error:#}\n"),
        }
    });
}

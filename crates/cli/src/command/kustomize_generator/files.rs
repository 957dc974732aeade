//! Reads the files that a configuration names. Errors do not contain the path: it may be a value that belongs to the literals.

use std::{
    fs, io,
    path::{Component, Path},
};

use super::Reach;

/// Returns the content of a file.
///
/// # Errors
/// The reason why it cannot be read, and the remedy.
pub(super) fn load(here: &Path, reach: Reach, path: &str) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "not found; paths begin at the current directory".to_owned(),
        _ => format!("the file cannot be read: {error}"),
    };
    if reach == Reach::Anywhere {
        return fs::read(here.join(path)).map_err(unreadable);
    }
    let outside = |why: &str| format!("{why}; only files below it are read: copy the file there");
    let is_below = |component| matches!(component, Component::Normal(_) | Component::CurDir);
    if !Path::new(path).components().all(is_below) {
        return Err(outside("the path leads out of the current directory"));
    }
    let here = fs::canonicalize(here).map_err(unreadable)?;
    let real = fs::canonicalize(here.join(path)).map_err(unreadable)?;
    if !real.starts_with(&here) {
        return Err(outside("a link leads out of the current directory"));
    }
    // Reading a pipe or a device may never end.
    if !fs::metadata(&real).map_err(unreadable)?.is_file() {
        return Err("it is not a file; name the files in it one by one".to_owned());
    }
    fs::read(real).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_configuration_reaches_what_is_below_and_nothing_else() {
        let above = tempfile::tempdir().unwrap();
        let here = above.path().join("here");
        fs::create_dir_all(here.join("sub")).unwrap();
        fs::create_dir(above.path().join("here-too")).unwrap();
        fs::write(here.join("sub/in"), "in").unwrap();
        for outside in ["out", "here-too/out"] {
            fs::write(above.path().join(outside), "canary").unwrap();
        }
        for (to, link) in [
            ("sub/in", "link-in"),
            ("../out", "link-out"),
            ("..", "folder-out"),
            ("../here-too/out", "link-too"),
            ("link-out", "link-of-link"),
        ] {
            std::os::unix::fs::symlink(to, here.join(link)).unwrap();
        }
        for path in ["sub/in", "./sub/in", "link-in", "sub/./in"] {
            assert_eq!(load(&here, Reach::Below, path), Ok(b"in".to_vec()), "{path}");
        }
        let absolute = here.join("sub/in").to_str().unwrap().to_owned();
        for (path, why) in [
            ("../out", "the path leads out"),
            ("sub/../sub/in", "the path leads out"),
            (&absolute, "the path leads out"),
            ("link-out", "a link leads out"),
            ("folder-out/out", "a link leads out"),
            ("folder-out/here/sub/../../out", "the path leads out"),
            ("link-too", "a link leads out"),
            ("link-of-link", "a link leads out"),
            ("sub", "it is not a file"),
            ("absent", "not found"),
        ] {
            let error = load(&here, Reach::Below, path).unwrap_err();
            assert!(error.contains(why), "{path}: {error}");
            assert!(!error.contains("canary"), "{path}: {error}");
        }
        for path in ["../out", "link-out", &absolute] {
            assert!(load(&here, Reach::Anywhere, path).is_ok(), "{path}");
        }
    }
}

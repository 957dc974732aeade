//! The file: a tar archive (POSIX ustar), compressed with gzip, that only its owner may read. It is written as its content comes: a hub
//! does not fit into memory.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use tempfile::NamedTempFile;

/// The size of a block of an archive.
const BLOCK: usize = 512;

/// The longest name that a header has room for.
const LONGEST_NAME: usize = 100;

/// An archive that is being written.
pub struct Archive {
    out: GzEncoder<NamedTempFile>,
    file: PathBuf,
    modified: Timestamp,
    names: BTreeSet<String>,
}

impl Archive {
    /// Begins an archive. Until [`Self::finish`] it is a file of another name, which is removed if it is not finished.
    ///
    /// # Errors
    /// The directory is missing or cannot be written.
    pub fn create(file: &Path, modified: Timestamp) -> io::Result<Self> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        // It is created with mode 0600.
        let temporary = NamedTempFile::new_in(parent.unwrap_or(Path::new(".")))?;
        Ok(Self {
            out: GzEncoder::new(temporary, Compression::default()),
            file: file.to_owned(),
            modified,
            names: BTreeSet::new(),
        })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let name = self.unique(path);
        self.out.write_all(&header(&name, content.len(), self.modified))?;
        self.out.write_all(content)?;
        let rest = content.len() % BLOCK;
        if rest > 0 {
            self.out.write_all(&[0; BLOCK][rest..])?;
        }
        self.names.insert(name);
        Ok(())
    }

    /// The number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True before the first file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Ends the archive, and gives it its name at once: there is never half a file of that name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        let temporary = self.out.finish()?;
        temporary.as_file().sync_all()?;
        temporary.persist(&self.file).map_err(|error| error.error)?;
        Ok(())
    }

    /// Names that are cut off may become the same: an unpacker would keep the last of them only.
    fn unique(&self, path: &str) -> String {
        let name = safe(path);
        if !self.names.contains(&name) {
            return name;
        }
        let numbered = (2_usize..).map(|number| {
            let end = format!("-{number}");
            let kept = name.len().min(LONGEST_NAME - end.len());
            format!("{}{end}", &name[..kept])
        });
        let mut free = numbered.filter(|name| !self.names.contains(name));
        free.next().unwrap_or_default()
    }
}

/// The header of a file. The checksum counts its own field as spaces.
fn header(name: &str, size: usize, modified: Timestamp) -> [u8; BLOCK] {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000600");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{:011o}", modified.as_second().max(0)));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

/// A path without anything that an unpacker could misunderstand, in the length that fits: ASCII, relative, and never up.
fn safe(path: &str) -> String {
    let letters = path.chars().map(|letter| {
        if letter.is_ascii_alphanumeric() || "-_./".contains(letter) {
            letter
        } else {
            '_'
        }
    });
    let letters: String = letters.collect();
    let mut safe = letters.trim_start_matches('/').replace("..", "__");
    safe.truncate(LONGEST_NAME);
    safe
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read as _;

    use super::*;

    /// A file in an archive.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(in super::super) struct Entry {
        /// Its path.
        pub(in super::super) path: String,
        /// Its content.
        pub(in super::super) content: Vec<u8>,
    }

    /// The entries of a file, read as tar reads them.
    pub(in super::super) fn unpacked(file: &Path) -> Vec<Entry> {
        let compressed = std::fs::read(file).unwrap();
        let mut all = Vec::new();
        flate2::read::GzDecoder::new(compressed.as_slice())
            .read_to_end(&mut all)
            .unwrap();
        assert_eq!(all.len() % BLOCK, 0);
        let mut entries = Vec::new();
        let mut rest = all.as_slice();
        while rest[0] != 0 {
            let (header, after) = rest.split_at(BLOCK);
            let text = |from: usize, to: usize| {
                let text = String::from_utf8(header[from..to].to_vec()).unwrap();
                text.trim_end_matches(['\0', ' ']).to_owned()
            };
            assert_eq!(text(257, 262), "ustar");
            let mut summed = header.to_vec();
            summed[148..156].fill(b' ');
            let sum: u32 = summed.iter().copied().map(u32::from).sum();
            assert_eq!(u32::from_str_radix(&text(148, 154), 8), Ok(sum));
            let size = usize::from_str_radix(&text(124, 135), 8).unwrap();
            entries.push(Entry {
                path: text(0, LONGEST_NAME),
                content: after[..size].to_vec(),
            });
            rest = &after[size.next_multiple_of(BLOCK)..];
        }
        entries
    }

    #[test]
    fn what_is_packed_is_unpacked_and_is_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.tar.gz");
        let entries: Vec<Entry> = [0, 1, 511, 512, 513, 5000]
            .map(|size| Entry {
                path: format!("hub/{size}.json"),
                content: vec![b'x'; size],
            })
            .into();
        let mut archive = Archive::create(&file, Timestamp::from_second(1_700_000_000).unwrap()).unwrap();
        assert!(archive.is_empty());
        for entry in &entries {
            archive.add(&entry.path, &entry.content).unwrap();
        }
        assert_eq!(archive.len(), entries.len());
        assert!(!file.exists(), "half a file");
        archive.finish().unwrap();
        assert_eq!(unpacked(&file), entries);
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_archive_that_is_not_finished_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut archive = Archive::create(&directory.path().join("a"), Timestamp::UNIX_EPOCH).unwrap();
        archive.add("x", b"y").unwrap();
        drop(archive);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_are_harmless_and_fit_and_are_there_once() {
        assert_eq!(safe("/../etc/x y"), "__/etc/x_y");
        assert_eq!(safe(".\u{2025}./a\n"), "._./a_");
        assert_eq!(safe(&"a".repeat(200)).len(), LONGEST_NAME);

        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.tar.gz");
        let mut archive = Archive::create(&file, Timestamp::UNIX_EPOCH).unwrap();
        for end in ["log", "previous", "metrics"] {
            archive.add(&format!("{}{end}", "a".repeat(150)), b"").unwrap();
        }
        archive.finish().unwrap();
        let names: BTreeSet<String> = unpacked(&file).into_iter().map(|entry| entry.path).collect();
        assert_eq!(names.len(), 3, "{names:?}");
    }
}

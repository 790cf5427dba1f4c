//! `files sum`: one checksum of a file or tree, which the conductor computes alike.
//!
//! It is the SHA-256 of the text that `sha256sum` prints for the files, sorted by relative name: `HEX  NAME` in a line each. A
//! single file is a tree of one file with its own name. Links count as what they lead to, as in the archives that are sent.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, Digest, SHA256};

use super::error::{FilesError, is_missing};
use super::tree::DEEPEST;

const BUFFER_BYTES: usize = 1 << 20;

pub(super) fn run(path: &Path) -> Result<(), FilesError> {
    writeln!(io::stdout(), "{}", checksum(path)?)?;
    Ok(())
}

fn checksum(path: &Path) -> Result<String, FilesError> {
    let metadata = fs::metadata(path).map_err(|error| {
        if is_missing(&error) {
            FilesError::Missing {
                path: path.to_path_buf(),
            }
        } else {
            FilesError::of("read", path)(error)
        }
    })?;
    let mut files = Vec::new();
    if metadata.is_dir() {
        collect(path, Path::new(""), &mut files, DEEPEST)?;
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        files.push((name.unwrap_or_default(), path.to_path_buf()));
    }
    files.sort_unstable();
    let mut whole = Context::new(&SHA256);
    for (name, file) in files {
        let content = content_of(&file).map_err(FilesError::of("read", &file))?;
        whole.update(format!("{}  {name}\n", hexadecimal(&content)).as_bytes());
    }
    Ok(hexadecimal(&whole.finish()))
}

/// Regular files by relative name; a link that leads nowhere counts for nothing.
fn collect(root: &Path, below: &Path, files: &mut Vec<(String, PathBuf)>, depth: usize) -> Result<(), FilesError> {
    let folder = root.join(below);
    let failed = FilesError::of("read", &folder);
    if depth == 0 {
        return Err(FilesError::refused(
            "read",
            &folder,
            "the tree is too deep, or has a symbolic link loop",
        ));
    }
    for entry in fs::read_dir(&folder).map_err(&failed)? {
        let name = below.join(entry.map_err(&failed)?.file_name());
        let path = root.join(&name);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => collect(root, &name, files, depth - 1)?,
            Ok(metadata) if metadata.is_file() => files.push((name.to_string_lossy().into_owned(), path)),
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

fn content_of(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut content = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(content.finish()),
            bytes => content.update(&buffer[..bytes]),
        }
    }
}

fn hexadecimal(digest: &Digest) -> String {
    let mut text = String::with_capacity(2 * digest.as_ref().len());
    for byte in digest.as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let digest = ring::digest::digest(&SHA256, b"abc");
        assert_eq!(
            hexadecimal(&digest),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}

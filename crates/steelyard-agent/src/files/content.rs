//! `files read`, `write`, `texts`: contents of single files.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::error::{FilesError, is_missing};
use crate::atomic_file;

/// Larger files do not count as texts.
const LARGEST_TEXT: u64 = 16 << 20;
const MOST_MODE: u32 = 0o7777;

#[derive(clap::Args)]
pub struct ReadArguments {
    path: PathBuf,
    /// Leave out the first N bytes.
    #[arg(long = "from", default_value_t = 0, value_name = "N")]
    from_byte: u64,
    /// Of what follows, print only the last M bytes.
    #[arg(long, value_name = "M")]
    most: Option<u64>,
}

#[derive(clap::Args)]
pub struct WriteArguments {
    path: PathBuf,
    /// Permission bits of the file, such as 600; nobody else can read it before it has them.
    #[arg(long, value_name = "OCTAL", value_parser = parse_mode)]
    mode: Option<u32>,
    /// How long the content is: if standard input ends earlier, as when a connection breaks, nothing is written.
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
}

pub(super) fn read(arguments: &ReadArguments) -> Result<(), FilesError> {
    let path = &arguments.path;
    let failed = |error: io::Error| {
        if is_missing(&error) {
            FilesError::Missing { path: path.clone() }
        } else {
            FilesError::of("read", path)(error)
        }
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(FilesError::refused("read", path, "it is not a regular file"));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if metadata.len() == 0 {
        // Files of /proc and /sys do not say how long they are.
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        let (start, end) = part(content.len() as u64, arguments);
        out.write_all(&content[start as usize..end as usize])?;
        return Ok(());
    }
    let (start, end) = part(metadata.len(), arguments);
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    io::copy(&mut file.take(end - start), &mut out)?;
    Ok(())
}

/// First byte and end of what is asked for, of a file that is `length` bytes long now.
fn part(length: u64, arguments: &ReadArguments) -> (u64, u64) {
    let last = arguments.most.map_or(0, |most| length.saturating_sub(most));
    (arguments.from_byte.max(last).min(length), length)
}

pub(super) fn write(arguments: &WriteArguments) -> Result<(), FilesError> {
    let path = &arguments.path;
    let mut read = 0;
    let outcome = atomic_file::replace(path, arguments.mode, |file| {
        read = io::copy(&mut io::stdin().lock(), file)?;
        match arguments.bytes {
            Some(expected) if expected != read => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    });
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(FilesError::Cut {
            path: path.clone(),
            read,
            expected: arguments.bytes.unwrap_or(read),
        }),
        outcome => outcome.map_err(FilesError::of("write", path)),
    }
}

pub(super) fn texts(paths: &[PathBuf]) -> Result<(), FilesError> {
    let texts: Map<String, Json> = paths
        .iter()
        .filter_map(|path| Some((path.to_string_lossy().into_owned(), Json::from(text(path)?))))
        .collect();
    writeln!(io::stdout(), "{}", Json::Object(texts))?;
    Ok(())
}

/// None if it cannot be read or is not a regular file: a pipe would never end.
fn text(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST_TEXT {
        return None;
    }
    let content = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

fn parse_mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= MOST_MODE)
        .ok_or_else(|| "allowed: permission bits in octal, such as 600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_of_what_follows() {
        for (from_byte, most, expected) in [
            (0, None, (0, 10)),
            (4, None, (4, 10)),
            (4, Some(100), (4, 10)),
            (4, Some(3), (7, 10)),
            (0, Some(0), (10, 10)),
            (11, Some(3), (10, 10)),
        ] {
            let arguments = ReadArguments {
                path: PathBuf::new(),
                from_byte,
                most,
            };
            assert_eq!(part(10, &arguments), expected, "{from_byte} {most:?}");
        }
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(parse_mode("600"), Ok(0o600));
        assert_eq!(parse_mode("0755"), Ok(0o755));
        for refused in ["800", "10000", "rw", "", "-1"] {
            assert!(parse_mode(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn texts_are_of_regular_files() {
        assert!(text(Path::new("/proc/self/stat")).is_some_and(|text| text.contains('(')));
        assert_eq!(text(Path::new("/proc/self")), None);
        assert_eq!(text(Path::new("/dev/null")), None);
        assert_eq!(text(Path::new("/nowhere")), None);
    }
}

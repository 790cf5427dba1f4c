//! `tail`: what is added to a text file, a line of JSON at every interval, also where nothing was added.
//!
//! `{"t_s": 1790000000.0, "seconds": 1.0, "lines": ["..."]}`; `{"t_s": ..., "missing": true}` while there is no such file. A
//! file that takes the name over, as logs do when they rotate, is read from its beginning after the rest of the former one.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use crate::seconds::interval;
use crate::ticks::{listened_to, until_next};
use crate::wall_clock::WallClock;

/// Most bytes of one interval; what is beyond comes with the next.
const MOST_BYTES: u64 = 1 << 20;

#[derive(clap::Args)]
pub struct Arguments {
    /// Print what was added at every whole multiple of this many seconds.
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = interval)]
    every: f64,
    /// The file; what is in it already is passed over.
    file: PathBuf,
}

/// Ends when standard output closes.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let clock = WallClock::from_environment()?;
    let mut out = io::stdout().lock();
    let mut followed = Followed::at_end(&arguments.file);
    let mut before = Instant::now();
    while listened_to(until_next(clock.now_s(), arguments.every)) {
        let t_s = clock.now_s();
        let now = Instant::now();
        let line = match followed.added().map_err(|error| format!("tail: {error}"))? {
            Some(lines) => json!({"t_s": t_s, "seconds": (now - before).as_secs_f64(), "lines": lines}),
            None => json!({"t_s": t_s, "missing": true}),
        };
        before = now;
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

/// A file that is read while it grows.
struct Followed<'a> {
    path: &'a Path,
    open: Option<File>,
    /// The beginning of a line whose end is not there yet.
    begun: Vec<u8>,
}

impl<'a> Followed<'a> {
    fn at_end(path: &'a Path) -> Self {
        let open = File::open(path).ok().and_then(|mut file| {
            file.seek(SeekFrom::End(0)).ok()?;
            Some(file)
        });
        Self {
            path,
            open,
            begun: Vec::new(),
        }
    }

    /// Whole lines that were added since the call before; `None` where there is no such file.
    fn added(&mut self) -> io::Result<Option<Vec<String>>> {
        let mut bytes = std::mem::take(&mut self.begun);
        if let Some(file) = &mut self.open {
            if file.metadata()?.len() < file.stream_position()? {
                file.rewind()?;
            }
            file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        }
        if self.replaced() {
            if bytes.last().is_some_and(|byte| *byte != b'\n') {
                bytes.push(b'\n');
            }
            self.open = File::open(self.path).ok();
            if let Some(file) = &mut self.open {
                file.take(MOST_BYTES).read_to_end(&mut bytes)?;
            }
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.begun = bytes.split_off(whole);
        if self.open.is_none() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some(text.lines().map(str::to_owned).collect()))
    }

    /// Whether another file has the name now, or the first has come.
    fn replaced(&self) -> bool {
        let Ok(named) = std::fs::metadata(self.path) else {
            return false;
        };
        match self.open.as_ref().map(File::metadata) {
            Some(Ok(open)) => (open.dev(), open.ino()) != (named.dev(), named.ino()),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_that_were_added_are_given_once() {
        let folder = std::env::temp_dir().join(format!("steelyard-tail-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("gc.log");
        let append = |text: &str| {
            let mut file = File::options().create(true).append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let lines = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());

        let mut late = Followed::at_end(&path);
        assert_eq!(late.added().unwrap(), None);
        append("old\n");
        assert_eq!(
            late.added().unwrap(),
            lines(&["old"]),
            "a file that comes is read from its beginning"
        );
        let mut followed = Followed::at_end(&path);
        assert_eq!(followed.added().unwrap(), lines(&[]));
        append("one\ntw");
        assert_eq!(followed.added().unwrap(), lines(&["one"]));
        append("o\nlast");
        std::fs::rename(&path, folder.join("gc.log.0")).unwrap();
        append("of the new\nnewer\n");
        assert_eq!(
            followed.added().unwrap(),
            lines(&["two", "last", "of the new", "newer"])
        );
        std::fs::write(&path, "x\n").unwrap();
        assert_eq!(
            followed.added().unwrap(),
            lines(&["x"]),
            "a file that shrank is read from its beginning"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

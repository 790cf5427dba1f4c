//! Counters of a block device that one node has for itself, such as the loop device of its file system.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::counter::Counter;
use crate::proc_file::ProcFile;
use crate::{Readings, SampleError, parse};

/// Devices by their numbers.
const DEVICES: &str = "/sys/dev/block";

/// A device and its counters.
#[derive(Debug)]
pub struct Device {
    stat: ProcFile,
    reads: Counter,
    read_bytes: Counter,
    writes: Counter,
    written_bytes: Counter,
}

impl Device {
    /// The device of the file system that a folder is on. Raises `Unreadable`.
    pub fn of(folder: &Path) -> Result<Self, SampleError> {
        let unreadable = |path: PathBuf| move |source| SampleError::Unreadable { path, source };
        let number = std::fs::metadata(folder).map_err(unreadable(folder.to_owned()))?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let path = Path::new(DEVICES).join(format!("{major}:{minor}")).join("stat");
        let stat = ProcFile::open(&path).map_err(unreadable(path))?;
        Ok(Self::from(stat))
    }

    /// Bytes and operations per second since the reading before.
    pub fn read(&mut self, elapsed_s: f64, into: &mut Readings) {
        let now = self.stat.read().and_then(parse::device_totals);
        for (name, counter, count) in [
            (
                "node_disk_read_bytes_per_s",
                &mut self.read_bytes,
                now.map(|now| now.read_bytes),
            ),
            (
                "node_disk_write_bytes_per_s",
                &mut self.written_bytes,
                now.map(|now| now.written_bytes),
            ),
            (
                "node_disk_read_operations_per_s",
                &mut self.reads,
                now.map(|now| now.reads),
            ),
            (
                "node_disk_write_operations_per_s",
                &mut self.writes,
                now.map(|now| now.writes),
            ),
        ] {
            into.put(name, counter.rate(count, elapsed_s));
        }
    }
}

impl From<ProcFile> for Device {
    fn from(stat: ProcFile) -> Self {
        Self {
            stat,
            reads: Counter::default(),
            read_bytes: Counter::default(),
            writes: Counter::default(),
            written_bytes: Counter::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_counters() {
        let path = std::env::temp_dir().join(format!("steelyard-device-{}", std::process::id()));
        std::fs::write(&path, "  10  1  80  5  20  2  160  9  0  14  14  0 0 0 0 0 0\n").unwrap();
        let mut device = Device::from(ProcFile::open(&path).unwrap());
        let mut readings = Readings::default();
        device.read(0.0, &mut readings);
        assert_eq!(readings.iter().count(), 0, "the first reading is the baseline");
        std::fs::write(&path, "  14  1 144  5  26  2 1184  9  0  14  14  0 0 0 0 0 0\n").unwrap();
        device.read(2.0, &mut readings);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(readings.get("node_disk_read_operations_per_s"), Some(2.0));
        assert_eq!(readings.get("node_disk_write_operations_per_s"), Some(3.0));
        assert_eq!(readings.get("node_disk_read_bytes_per_s"), Some(16_384.0));
        assert_eq!(readings.get("node_disk_write_bytes_per_s"), Some(262_144.0));
    }

    #[test]
    fn a_file_system_without_a_device_is_refused() {
        let error = Device::of(Path::new("/proc")).unwrap_err();
        assert!(error.to_string().contains("/sys/dev/block"), "{error}");
    }
}

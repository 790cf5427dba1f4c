//! Devices of a /sys folder that have hardware (or a hypervisor) behind them.

use std::collections::HashSet;
use std::path::Path;

/// Names of the entries of `folder` (/sys/block, /sys/class/net) that have a device; none where it cannot be read.
pub fn with_hardware(folder: &Path) -> HashSet<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return HashSet::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.path().join("device").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disks_with_a_device() {
        let folder = std::env::temp_dir().join(format!("steelyard-block-{}", std::process::id()));
        for path in ["vda/device", "loop0", "dm-0"] {
            std::fs::create_dir_all(folder.join(path)).unwrap();
        }
        assert_eq!(with_hardware(&folder), HashSet::from(["vda".to_string()]));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(with_hardware(&folder).is_empty());
    }
}

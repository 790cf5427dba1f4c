//! The sampler on folders that look like cgroups: the files are plain, so every value is known.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::fs;

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("steelyard-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        folder.write(&[("cgroup.procs", "")]);
        folder.write(files);
        folder
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::write(self.0.join(name), text).unwrap();
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn twice(folders: &[&Folder], change: impl Fn()) -> Readings {
    let source = NodeSource {
        cgroups: folders.iter().map(|folder| folder.0.clone()).collect(),
        process_ids: vec![],
        disk: None,
    };
    let mut sampler = NodeSampler::open(&source).unwrap();
    let mut readings = Readings::default();
    sampler.read(0.0, &mut readings);
    readings.clear();
    change();
    sampler.read(2.0, &mut readings);
    readings
}

fn assert_values(readings: &Readings, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        let got = readings.get(name);
        assert!(
            got.is_some_and(|got| (got - value).abs() < 1e-9),
            "{name}: {got:?}, not {value}"
        );
    }
}

#[test]
fn version_1_in_three_folders() {
    let account = Folder::new(
        "acct",
        &[
            ("cpuacct.usage", "1000000000\n"),
            ("cpuacct.stat", "user 80\nsystem 20\n"),
        ],
    );
    let quota = Folder::new(
        "quota",
        &[("cpu.stat", "nr_periods 100\nnr_throttled 10\nthrottled_time 5\n")],
    );
    let memory = Folder::new(
        "memory",
        &[
            ("memory.usage_in_bytes", "5000\n"),
            ("memory.stat", "cache 1\nrss 2\ntotal_cache 3000\ntotal_rss 2000\n"),
            ("memory.failcnt", "7\n"),
        ],
    );
    let readings = twice(&[&quota, &account, &memory], || {
        account.write(&[
            ("cpuacct.usage", "2000000000\n"),
            ("cpuacct.stat", "user 110\nsystem 90\n"),
        ]);
        quota.write(&[("cpu.stat", "nr_periods 120\nnr_throttled 15\nthrottled_time 9\n")]);
        memory.write(&[("memory.failcnt", "9\n")]);
    });
    assert_values(
        &readings,
        &[
            // 1 s of CPU in 2 s, split 30 : 70
            ("node_cpu_user_cores", 0.15),
            ("node_cpu_system_cores", 0.35),
            ("node_throttled_fraction", 0.25),
            ("node_memory_bytes", 5000.0),
            ("node_memory_rss_bytes", 2000.0),
            ("node_memory_limit_hits", 2.0),
            ("node_processes", 0.0),
        ],
    );
}

#[test]
fn version_2_in_one_folder() {
    let group = Folder::new(
        "v2",
        &[
            (
                "cpu.stat",
                "usage_usec 300\nuser_usec 200\nsystem_usec 100\nnr_periods 0\nnr_throttled 0\n",
            ),
            ("memory.current", "9000\n"),
            ("memory.stat", "anon 4000\nfile 5000\n"),
            ("memory.events", "low 0\nhigh 0\nmax 3\noom 0\n"),
        ],
    );
    let readings = twice(&[&group], || {
        let text = "usage_usec 3000300\nuser_usec 2000200\nsystem_usec 1000100\nnr_periods 0\nnr_throttled 0\n";
        group.write(&[("cpu.stat", text)]);
    });
    assert_values(
        &readings,
        &[
            ("node_cpu_user_cores", 1.0),
            ("node_cpu_system_cores", 0.5),
            ("node_throttled_fraction", 0.0),
            ("node_memory_bytes", 9000.0),
            ("node_memory_rss_bytes", 4000.0),
            ("node_memory_limit_hits", 0.0),
        ],
    );
}

#[test]
fn a_counter_that_steps_back_and_a_file_that_empties_yield_fewer_values() {
    let group = Folder::new(
        "reset",
        &[("cpuacct.usage", "900\n"), ("cpuacct.stat", "user 1\nsystem 1\n")],
    );
    let readings = twice(&[&group], || group.write(&[("cpuacct.usage", "100\n")]));
    assert_eq!(readings.get("node_cpu_user_cores"), None);
    let readings = twice(&[&group], || group.write(&[("cpuacct.usage", "")]));
    assert_eq!(readings.get("node_cpu_user_cores"), None);
    assert_eq!(
        readings.get("node_memory_bytes"),
        None,
        "no memory controller and no process"
    );
}

#[test]
fn processes_stand_in_for_cgroups() {
    let mut process = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let source = NodeSource {
        cgroups: vec![],
        process_ids: vec![process.id()],
        disk: None,
    };
    let mut sampler = NodeSampler::open(&source).unwrap();
    let mut readings = Readings::default();
    let loaded = |readings: &Readings| readings.get("node_memory_bytes").is_some_and(|bytes| bytes > 100_000.0);
    // A program that was just executed holds a few pages until its libraries are mapped.
    for time_s in 0..1000 {
        readings.clear();
        sampler.read(f64::from(time_s), &mut readings);
        if time_s > 0 && loaded(&readings) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    for name in [
        "node_cpu_user_cores",
        "node_cpu_system_cores",
        "node_disk_write_bytes_per_s",
        "node_read_calls_per_s",
    ] {
        assert!(readings.get(name).is_some_and(|rate| rate >= 0.0), "{name}");
    }
    assert!(loaded(&readings));
    assert_eq!(readings.get("node_processes"), Some(1.0));
    assert_eq!(readings.get("node_throttled_fraction"), None);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_folder_that_is_no_cgroup_is_refused() {
    let source = NodeSource {
        cgroups: vec![PathBuf::from("/nowhere/at/all")],
        process_ids: vec![],
        disk: None,
    };
    let error = NodeSampler::open(&source).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[test]
fn every_reading_is_in_the_table() {
    let mut readings = Readings::default();
    let source = NodeSource {
        cgroups: vec![],
        process_ids: vec![std::process::id()],
        disk: None,
    };
    let mut samplers: Vec<Box<dyn Sampler>> = vec![
        Box::new(crate::MachineSampler::open().unwrap()),
        Box::new(crate::NetworkSampler::open(crate::Scope::Machine).unwrap()),
        Box::new(crate::NetworkSampler::open(crate::Scope::Node).unwrap()),
        Box::new(NodeSampler::open(&source).unwrap()),
    ];
    for _ in 0..2 {
        for sampler in &mut samplers {
            sampler.read(1.0, &mut readings);
        }
    }
    for (name, _) in readings.iter() {
        assert!(crate::METRICS.iter().any(|metric| metric.name == name), "{name}");
    }
}

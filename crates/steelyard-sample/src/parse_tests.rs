//! Tables of captured text (Linux 6.18, cgroup v1; 6.1, cgroup v2).

use super::*;

const DISKSTATS: &str = "   7       0 loop0 9 9 9 9 9 9 9 9 0 0 0 0 0 0 0 0 0 0
 254       0 vda 54222 9677 3943746 12283 26295 34566 5687144 14529 0 8548 27506 8173 41 1357848 586 3277 106
 254       1 vda1 54000 9677 3943000 12283 26295 34566 5687144 14529 0 8548 27506
   8       0 sda 100 0 2048 0 50 0 1024 0 0 0 0
 253       0 zram0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
";

const NET_DEV: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
  eth0: 599619254   12461    0    0    0     0          0         0   640280    7596    0    0    0     0       0          0
veth1:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0
";

#[test]
fn cpu_times_of_the_first_line() {
    let stat = "cpu  9512 3 3641 232348 594 2 98 46 7 0\ncpu0 3298 0 1529 118015 212 0 9 19 0 0\n";
    let times = cpu_times(stat).unwrap();
    assert_eq!(
        times,
        CpuTimes {
            user: 9515,
            system: 3741,
            interrupts: 100,
            idle: 232_348,
            iowait: 594,
            steal: 46
        }
    );
    assert_eq!(times.total(), 9515 + 3741 + 232_348 + 594 + 46);
    // Kernels of old said four numbers.
    assert_eq!(
        cpu_times("cpu  1 2 3 4\n"),
        Some(CpuTimes {
            user: 3,
            system: 3,
            interrupts: 0,
            idle: 4,
            iowait: 0,
            steal: 0
        })
    );
    for broken in ["", "cpu", "cpu  1 2 3\n", "cpu0 1 2 3 4\n", "intr 5\n"] {
        assert_eq!(cpu_times(broken), None, "{broken:?}");
    }
}

#[test]
fn keyed_numbers() {
    let text = "user 9802\nsystem 3853\nuser_usec 5\ncpu.max\nmax x\n";
    for (key, value) in [
        ("user", Some(9802)),
        ("system", Some(3853)),
        ("user_usec", Some(5)),
        ("max", None),
        ("cpu.max", None),
    ] {
        assert_eq!(keyed(text, key), value, "{key}");
    }
}

#[test]
fn memory_and_load() {
    let meminfo = "MemTotal:       24650000 kB\nMemFree: 1 kB\nMemAvailable:   12000 kB\n";
    assert_eq!(memory_available(meminfo), Some(12000 * 1024));
    assert_eq!(memory_available("MemTotal: 5 kB\n"), None);
    assert_eq!(load_average("0.52 0.58 0.59 1/345 6789\n"), Some(0.52));
    assert_eq!(load_average(""), None);
    assert_eq!(newest_id("0.52 0.58 0.59 1/345 6789\n"), Some(6789));
    assert_eq!(newest_id("0.00 0.00 0.00 0/0 0\n"), None);
    assert_eq!(number("123456\n"), Some(123_456));
    assert_eq!(number("max\n"), None);
    assert_eq!(ids("12\n7\n\nx\n").collect::<Vec<_>>(), [12, 7]);
}

#[test]
fn disks_are_summed_without_partitions() {
    let totals = disk_totals(DISKSTATS, |name| ["vda", "sda"].contains(&name)).unwrap();
    assert_eq!(totals.reads, 54222 + 100);
    assert_eq!(totals.read_bytes, (3_943_746 + 2048) * 512);
    assert_eq!(totals.writes, 26295 + 50);
    assert_eq!(totals.written_bytes, (5_687_144 + 1024) * 512);
    assert_eq!(disk_totals(DISKSTATS, |_| false), None);
    assert_eq!(disk_totals("8 0 sda 1 2\n", |_| true), None);
}

#[test]
fn interfaces_with_and_without_a_space_behind_the_colon() {
    let all: Vec<_> = interfaces(NET_DEV).collect();
    assert_eq!(
        all,
        [("lo", 3193, 3193), ("eth0", 599_619_254, 640_280), ("veth1", 7, 8)]
    );
}

#[test]
fn processes() {
    let stat = "10219 (a ) (b) c) S 1 10219 10219 0 -1 4194304 100 0 0 0 250 31 4 2 20 0 5 0 12345 1000 200 18446744073709551615\n";
    let times = ProcessTimes {
        user: 250,
        system: 31,
        waited_user: 4,
        waited_system: 2,
    };
    assert_eq!(process_times(stat), Some(times));
    assert_eq!(parent(stat), Some(1));
    assert_eq!(process_times("1 (x) S 1\n"), None);
    assert_eq!(process_pages("5000 300 120 10 0 400 0\n"), Some((300, 180)));
    let io =
        "rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
    let expected = ProcessIo {
        read_calls: 10,
        write_calls: 2,
        read_bytes: 4096,
        written_bytes: 8192,
    };
    assert_eq!(process_io(io), Some(expected));
    assert_eq!(process_io("rchar: 6976\n"), None);
}

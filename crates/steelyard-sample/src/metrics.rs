//! Every metric that the samplers report, with its unit; docs/reference/metrics.md says what each means.

/// A quantity's name and unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name in records.
    pub name: &'static str,
    /// Unit of its values.
    pub unit: &'static str,
}

const fn metric(name: &'static str, unit: &'static str) -> Metric {
    Metric { name, unit }
}

/// In the order of the page.
pub const METRICS: &[Metric] = &[
    metric("machine_cpu_user_fraction", "fraction"),
    metric("machine_cpu_system_fraction", "fraction"),
    metric("machine_cpu_interrupt_fraction", "fraction"),
    metric("machine_cpu_iowait_fraction", "fraction"),
    metric("machine_cpu_steal_fraction", "fraction"),
    metric("machine_cpu_idle_fraction", "fraction"),
    metric("machine_memory_available_bytes", "bytes"),
    metric("machine_load_average_1min", "processes"),
    metric("machine_disk_read_bytes_per_s", "bytes/s"),
    metric("machine_disk_write_bytes_per_s", "bytes/s"),
    metric("machine_disk_read_operations_per_s", "operations/s"),
    metric("machine_disk_write_operations_per_s", "operations/s"),
    metric("machine_network_receive_bytes_per_s", "bytes/s"),
    metric("machine_network_transmit_bytes_per_s", "bytes/s"),
    metric("machine_loopback_bytes_per_s", "bytes/s"),
    metric("node_network_receive_bytes_per_s", "bytes/s"),
    metric("node_network_transmit_bytes_per_s", "bytes/s"),
    metric("node_cpu_user_cores", "cores"),
    metric("node_cpu_system_cores", "cores"),
    metric("node_throttled_fraction", "fraction"),
    metric("node_memory_bytes", "bytes"),
    metric("node_memory_rss_bytes", "bytes"),
    metric("node_memory_limit_hits", "hits"),
    metric("node_disk_read_bytes_per_s", "bytes/s"),
    metric("node_disk_write_bytes_per_s", "bytes/s"),
    metric("node_disk_read_operations_per_s", "operations/s"),
    metric("node_disk_write_operations_per_s", "operations/s"),
    metric("node_read_calls_per_s", "calls/s"),
    metric("node_write_calls_per_s", "calls/s"),
    metric("node_processes", "processes"),
];

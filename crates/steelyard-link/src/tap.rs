//! A TAP device in a network namespace: an Ethernet interface whose cable is this program.
//!
//! The device is not persistent: it goes with the file that holds it, so that nothing is left of a program that is killed.
//! Without `IFF_VNET_HDR` the kernel hands over no segments larger than the MTU and computes every checksum itself.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A hardware address.
pub type Mac = [u8; 6];

/// The kernel's `struct ifreq`, and more than that on 32 bits: a name, then whatever the request wants.
const REQUEST_BYTES: usize = 40;
const NAME_BYTES: usize = libc::IFNAMSIZ;
/// Enough for the counters of all interfaces of a namespace.
const COUNTERS_BYTES: usize = 16 << 10;
/// Place of the column `drop` among the transmitted ones of /proc/net/dev, after eight received ones.
const TRANSMIT_DROPPED: usize = 8 + 3;
const USABLE_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(1);

/// A device to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// The file of its network namespace.
    pub namespace: PathBuf,
    /// Its name there.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Length of the network's prefix.
    pub prefix_length: u8,
    /// Its hardware address.
    pub mac: Mac,
    /// Most bytes of an IP packet.
    pub mtu: u32,
}

/// Which step failed, on what.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages say what the fields are
pub enum TapError {
    /// The namespace is not there, or forbidden.
    #[error("cannot open the network namespace {path}: {source}; `ip netns` lists those that exist")]
    NamespaceOpen { path: PathBuf, source: io::Error },
    /// It is no network namespace, or cannot be joined.
    #[error("cannot join the network namespace {path}: {source}; this requires CAP_SYS_ADMIN")]
    NamespaceJoin { path: PathBuf, source: io::Error },
    /// The kernel has no TAP devices, or not for us.
    #[error("cannot open /dev/net/tun: {source}; `modprobe tun` loads the driver")]
    Driver { source: io::Error },
    /// A step of the set-up was refused.
    #[error("{interface} in {namespace}: cannot {step}: {source}{hint}")]
    Step {
        step: &'static str,
        interface: String,
        namespace: PathBuf,
        source: io::Error,
        hint: &'static str,
    },
    /// No interface can have that name.
    #[error("the interface {name:?}: a name has 1 to {} letters, without / and spaces", NAME_BYTES - 1)]
    Name { name: String },
    /// The thread in the namespace died.
    #[error("the thread that makes {interface} in {namespace} died")]
    Thread { interface: String, namespace: PathBuf },
}

/// A TAP device that is up. Dropping it removes it.
#[derive(Debug)]
pub struct Tap {
    file: File,
    interface: String,
    /// /proc/net/dev of the namespace, which an open file stays tied to.
    counters: File,
}

impl Tap {
    /// Makes the device. The calling thread stays in its own namespace: another one goes there.
    pub fn create(config: &TapConfig) -> Result<Self, TapError> {
        let join = std::thread::scope(|scope| scope.spawn(|| Self::create_in(config)).join());
        join.unwrap_or_else(|_| {
            Err(TapError::Thread {
                interface: config.interface.clone(),
                namespace: config.namespace.clone(),
            })
        })
    }

    fn create_in(config: &TapConfig) -> Result<Self, TapError> {
        join(&config.namespace)?;
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(|source| TapError::Driver { source })?;
        let failed = |step: &'static str, hint: &'static str| {
            move |source: io::Error| TapError::Step {
                step,
                interface: config.interface.clone(),
                namespace: config.namespace.clone(),
                source,
                hint,
            }
        };
        let request = Request::named(&config.interface)?;
        let flags = flag(libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL);
        let taken = "; does an interface of that name already exist?";
        request
            .with(&flags)
            .send(file.as_fd(), libc::TUNSETIFF)
            .map_err(failed("make the TAP device", taken))?;
        // Requests about interfaces go to any socket of the namespace.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed("open a socket for the set-up", ""))?;
        let socket = socket.as_fd();
        let mtu = config.mtu.to_ne_bytes();
        request
            .with(&mtu)
            .send(socket, libc::SIOCSIFMTU as _)
            .map_err(failed("set the MTU", "; allowed: 68 to 65521"))?;
        let mut hardware = [0; 8];
        hardware[..2].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
        hardware[2..].copy_from_slice(&config.mac);
        let unicast = "; an interface's MAC has an even first byte";
        request
            .with(&hardware)
            .send(socket, libc::SIOCSIFHWADDR as _)
            .map_err(failed("set the MAC", unicast))?;
        request
            .with(&flag(libc::IFF_UP))
            .send(socket, libc::SIOCSIFFLAGS as _)
            .map_err(failed("switch it on", ""))?;
        match config.address {
            IpAddr::V4(address) => add_address(&request, socket, address, config.prefix_length),
            IpAddr::V6(address) => add_address_6(&request, &config.interface, address, config.prefix_length),
        }
        .map_err(failed("set the address", ""))?;
        let counters = File::open("/proc/thread-self/net/dev").map_err(failed("read the counters", ""))?;
        Ok(Self {
            file,
            interface: config.interface.clone(),
            counters,
        })
    }

    /// Reads one Ethernet frame; `None` where none waits.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands one Ethernet frame to the node.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.file, frame)?;
        Ok(())
    }

    /// Frames of the node that the kernel dropped because nobody fetched them in time.
    pub fn dropped_by_kernel(&self) -> io::Result<u64> {
        let mut text = vec![0; COUNTERS_BYTES];
        let bytes = self.counters.read_at(&mut text, 0)?;
        Ok(transmit_dropped(&String::from_utf8_lossy(&text[..bytes]), &self.interface).unwrap_or_default())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn join(namespace: &Path) -> Result<(), TapError> {
    let path = namespace.to_path_buf();
    let file = File::open(namespace).map_err(|source| TapError::NamespaceOpen {
        path: path.clone(),
        source,
    })?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| TapError::NamespaceJoin {
        path,
        source: error.into(),
    })
}

/// The column `drop` of what was sent, from a line such as `eth0: 1 2 3 ...` of /proc/net/dev.
fn transmit_dropped(text: &str, interface: &str) -> Option<u64> {
    let columns = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    columns.split_whitespace().nth(TRANSMIT_DROPPED)?.parse().ok()
}

/// Flags of an interface are 16 bits wide.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn flag(flags: libc::c_int) -> [u8; 2] {
    (flags as u16).to_ne_bytes()
}

fn add_address(request: &Request, socket: BorrowedFd<'_>, address: Ipv4Addr, prefix_length: u8) -> io::Result<()> {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix_length)).unwrap_or(0);
    let broadcast = Ipv4Addr::from(u32::from(address) | !mask);
    for (ioctl, value) in [
        (libc::SIOCSIFADDR, address),
        (libc::SIOCSIFNETMASK, Ipv4Addr::from(mask)),
        (libc::SIOCSIFBRDADDR, broadcast),
    ] {
        request.with(&socket_address(value)).send(socket, ioctl as _)?;
    }
    Ok(())
}

/// The kernel's `struct sockaddr_in`, without a port.
fn socket_address(address: Ipv4Addr) -> [u8; 16] {
    let mut bytes = [0; 16];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // AF_INET is 2
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[4..8].copy_from_slice(&address.octets());
    bytes
}

/// Without detection of duplicates, for the second in which the address could not be used.
fn add_address_6(request: &Request, interface: &str, address: Ipv6Addr, prefix_length: u8) -> io::Result<()> {
    std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/accept_dad"), "0")?;
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    let index = request.with(&[]).send(socket.as_fd(), libc::SIOCGIFINDEX as _)?;
    // The kernel's `struct in6_ifreq`: address, length of the prefix, index of the interface.
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..16].copy_from_slice(&address.octets());
    bytes[16..20].copy_from_slice(&u32::from(prefix_length).to_ne_bytes());
    bytes[20..24].copy_from_slice(&index.0[NAME_BYTES..NAME_BYTES + 4]);
    Request(bytes).send(socket.as_fd(), libc::SIOCSIFADDR as _)?;
    // It can be used once a work queue of the kernel has run.
    let deadline = Instant::now() + USABLE_WITHIN;
    while let Err(error) = UdpSocket::bind((address, 0)) {
        if Instant::now() > deadline {
            return Err(error);
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// The bytes of a `struct ifreq`.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Request([u8; REQUEST_BYTES]);

impl Request {
    fn named(interface: &str) -> Result<Self, TapError> {
        let usable = (1..NAME_BYTES).contains(&interface.len())
            && !interface.contains(|letter: char| letter == '/' || letter == '%' || !letter.is_ascii_graphic());
        if !usable {
            return Err(TapError::Name {
                name: interface.to_owned(),
            });
        }
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..interface.len()].copy_from_slice(interface.as_bytes());
        Ok(Self(bytes))
    }

    /// The same interface, with what the request wants after the name.
    fn with(&self, value: &[u8]) -> Self {
        let mut bytes = self.0;
        bytes[NAME_BYTES..NAME_BYTES + value.len()].copy_from_slice(value);
        Self(bytes)
    }

    /// Gives it to the kernel, and back with what the kernel answered.
    #[allow(unsafe_code)]
    fn send(mut self, file: BorrowedFd<'_>, ioctl: libc::Ioctl) -> io::Result<Self> {
        // SAFETY: each of the requests above reads or writes at most a `struct ifreq` or `struct in6_ifreq`, neither of which is
        // larger than these bytes (40 on 64 bits, 32 on 32 bits), which live until the call returns.
        let outcome = unsafe { libc::ioctl(file.as_raw_fd(), ioctl, self.0.as_mut_ptr()) };
        if outcome < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(self)
        }
    }
}

/// Parses `02:00:00:00:00:01`.
pub fn parse_mac(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// Parses `10.113.0.1/16` and `fd00::1/64`.
pub fn parse_address(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|length| *length <= most)?;
    Some((address, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_and_addresses_are_read() {
        assert_eq!(parse_mac("02:00:00:0a:00:ff"), Some([2, 0, 0, 10, 0, 255]));
        for refused in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "02-00-00-00-00-01",
            "0g:00:00:00:00:01",
        ] {
            assert_eq!(parse_mac(refused), None, "{refused}");
        }
        assert_eq!(
            parse_address("10.113.0.1/16"),
            Some((Ipv4Addr::new(10, 113, 0, 1).into(), 16))
        );
        assert_eq!(parse_address("fd00::1/64"), Some(("fd00::1".parse().unwrap(), 64)));
        for refused in ["10.0.0.1", "10.0.0.1/33", "fd00::1/129", "host/8", "10.0.0.1/-1"] {
            assert_eq!(parse_address(refused), None, "{refused}");
        }
    }

    #[test]
    fn names_of_interfaces_fit() {
        assert!(Request::named("eth0").is_ok());
        for refused in ["", "a/b", "with space", "sixteen-letters-", "tap%d"] {
            assert!(
                matches!(Request::named(refused), Err(TapError::Name { .. })),
                "{refused}"
            );
        }
    }

    #[test]
    fn drops_are_found_in_the_table_of_interfaces() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes ...\n    \
                     lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n  \
                     eth0:    1       2    3    4    5     6          7         8        9       10    11    12    13     14       15          16\n";
        assert_eq!(transmit_dropped(table, "eth0"), Some(12));
        assert_eq!(transmit_dropped(table, "eth1"), None);
    }

    #[test]
    fn a_namespace_that_is_not_there_is_named() {
        let config = TapConfig {
            namespace: "/nowhere/at/all".into(),
            interface: "eth0".to_owned(),
            address: Ipv4Addr::new(10, 0, 0, 1).into(),
            prefix_length: 16,
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
        };
        let message = Tap::create(&config).unwrap_err().to_string();
        assert!(message.contains("/nowhere/at/all"), "{message}");
    }
}

//! Is io_uring cheaper than epoll for one connection with many requests in flight? Requests of 64 bytes, answers of 96, no
//! protocol: what is left is what the kernel takes. `uring serve`, then `uring epoll|uring|deferred IN_FLIGHT OPERATIONS`.

use std::io::{Error, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::{ClockId, clock_gettime};

const ADDRESS: &str = "127.113.9.3:29111";
const REQUEST_BYTES: usize = 64;
const ANSWER_BYTES: usize = 96;
const BUFFER_BYTES: usize = 1 << 16;

fn serve() -> Result<()> {
    for stream in TcpListener::bind(ADDRESS)?.incoming() {
        let mut stream = stream?;
        stream.set_nodelay(true)?;
        std::thread::spawn(move || {
            let (mut input, output) = (vec![0; BUFFER_BYTES], vec![7; 2 * BUFFER_BYTES]);
            let mut rest = 0;
            while let Ok(count @ 1..) = stream.read(&mut input) {
                let whole = (rest + count) / REQUEST_BYTES;
                rest = (rest + count) % REQUEST_BYTES;
                if stream.write_all(&output[..whole * ANSWER_BYTES]).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

fn with_epoll(mut stream: TcpStream, in_flight: usize, operations: usize) -> Result<()> {
    stream.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &stream, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    let output = vec![1; REQUEST_BYTES * in_flight];
    let mut input = Vec::with_capacity(BUFFER_BYTES);
    let mut events = Vec::with_capacity(8);
    let (mut done, mut rest) = (0, 0);
    stream.write_all(&output)?;
    while done < operations {
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        events.clear();
        input.clear();
        let count = rustix::io::read(&stream, spare_capacity(&mut input))?;
        let whole = (rest + count) / ANSWER_BYTES;
        rest = (rest + count) % ANSWER_BYTES;
        done += whole;
        stream.write_all(&output[..whole * REQUEST_BYTES])?;
    }
    Ok(())
}

fn with_ring(stream: &TcpStream, in_flight: usize, operations: usize, deferred: bool) -> Result<()> {
    let fd = types::Fd(stream.as_raw_fd());
    let mut builder = IoUring::builder();
    if deferred {
        builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
    }
    let mut ring: IoUring = builder.build(64)?;
    let output = vec![1_u8; REQUEST_BYTES * in_flight];
    let mut input = vec![0_u8; BUFFER_BYTES];
    let send = |count: usize| {
        opcode::Send::new(fd, output.as_ptr(), (REQUEST_BYTES * count) as u32)
            .build()
            .user_data(1)
    };
    let receive = opcode::Recv::new(fd, input.as_mut_ptr(), BUFFER_BYTES as u32)
        .build()
        .user_data(2);
    // SAFETY: both buffers outlive the ring's use of them, and nothing else touches them meanwhile.
    let push =
        |ring: &mut IoUring, entry: &squeue::Entry| unsafe { ring.submission().push(entry).map_err(Error::other) };
    push(&mut ring, &send(in_flight))?;
    push(&mut ring, &receive)?;
    let (mut done, mut rest) = (0, 0);
    let mut ended = Vec::with_capacity(8);
    while done < operations {
        ring.submit_and_wait(1)?;
        ended.clear();
        ended.extend(ring.completion().map(|entry| (entry.user_data(), entry.result())));
        for (what, count) in &ended {
            if *what == 2 {
                let count = usize::try_from(*count).map_err(Error::other)?;
                let whole = (rest + count) / ANSWER_BYTES;
                rest = (rest + count) % ANSWER_BYTES;
                done += whole;
                push(&mut ring, &receive)?;
                if whole > 0 {
                    push(&mut ring, &send(whole))?;
                }
            }
        }
    }
    Ok(())
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    let (Some(way), Some(in_flight), Some(operations)) = (words.first(), number(1), number(2)) else {
        return serve();
    };
    let stream = TcpStream::connect(ADDRESS)?;
    stream.set_nodelay(true)?;
    let (began, cpu) = (Instant::now(), cpu_s());
    match way.as_str() {
        "epoll" => with_epoll(stream, in_flight, operations)?,
        _ => with_ring(&stream, in_flight, operations, way == "deferred")?,
    }
    let (taken_s, cpu) = (began.elapsed().as_secs_f64(), cpu_s() - cpu);
    let each_us = cpu * 1e6 / operations as f64;
    println!(
        "{way}, {in_flight} in flight: {:.0} op/s, {each_us:.3} us CPU/op",
        operations as f64 / taken_s
    );
    Ok(())
}

//! The scaffold of hand-written servers: a listener, a thread for each connection, requests in, answers out.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Appends the answer to the first request of a connection's bytes, and returns its length.
type Answering = dyn Fn(&TcpStream, &[u8], &mut Vec<u8>) -> Option<usize> + Send + Sync;

/// A listening server, until this is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    accepted: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Server {
    /// Starts a server that listens until `accepts` connections have come. `answer` reads the request with which the bytes of a
    /// connection begin, and appends its answer. It returns the length of the request, 0 where that is not whole yet; None closes
    /// the connection after what was appended.
    pub fn start(
        address: SocketAddr,
        accepts: usize,
        answer: impl Fn(&TcpStream, &[u8], &mut Vec<u8>) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            accepted: Arc::default(),
            ended: Arc::default(),
            streams: Arc::default(),
        };
        let (closing, kept, counted) = (
            Arc::clone(&server.ended),
            Arc::clone(&server.streams),
            Arc::clone(&server.accepted),
        );
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().take(accepts) {
                if closing.load(Ordering::Relaxed) {
                    return;
                }
                counted.fetch_add(1, Ordering::Relaxed);
                let (stream, answer) = (stream.unwrap(), Arc::clone(&answer));
                kept.lock().unwrap().push(stream.try_clone().unwrap());
                thread::spawn(move || {
                    serve(&stream, &*answer);
                    // The copy that is kept would hold it open.
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        server
    }

    /// The address in words.
    pub fn contact(&self) -> String {
        self.address.to_string()
    }

    /// Connections that were accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    /// As if it was killed: the address is free, connections are cut.
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // The listener waits for a connection.
        let _ = TcpStream::connect(self.address);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(mut stream: &TcpStream, answer: &Answering) {
    let (mut input, mut chunk) = (Vec::new(), [0; 4096]);
    let _ = stream.set_nodelay(true);
    loop {
        let (mut out, mut at) = (Vec::new(), 0);
        let goes_on = loop {
            match answer(stream, &input[at..], &mut out) {
                Some(0) => break true,
                Some(length) => at += length,
                None => break false,
            }
        };
        input.drain(..at);
        if stream.write_all(&out).is_err() || !goes_on {
            return;
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(count) => input.extend_from_slice(&chunk[..count]),
        }
    }
}

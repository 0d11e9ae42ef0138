//! What every back end promises, tested on each through the same calls.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use weir_net::{
    Backend, Driver, Endpoint, EpollDriver, Errno, Event, MAX_LINGERING, Payload, Slot, Stamping, UringDriver, Wait,
};

const A_WHILE: Wait = Wait::AtMostNs(5_000_000_000);

/// A back end whose connections are stamped: it promises the same.
struct Stamped<D>(D);

impl<D: Backend> Backend for Stamped<D> {
    const NAME: &'static str = D::NAME;

    fn new(capacity: usize) -> std::io::Result<Self> {
        let mut driver = D::new(capacity)?;
        driver.stamp_arrivals();
        Ok(Self(driver))
    }
}

impl<D: Driver> Driver for Stamped<D> {
    const GATHERS_SENDS: bool = D::GATHERS_SENDS;

    fn stamp_arrivals(&mut self) {}

    fn register(&mut self, bytes: Vec<u8>) -> Payload {
        self.0.register(bytes)
    }

    fn connect(&mut self, slot: Slot, endpoint: &Endpoint) {
        self.0.connect(slot, endpoint);
    }

    fn send(&mut self, slot: Slot, payload: Payload) {
        self.0.send(slot, payload);
    }

    fn send_once(&mut self, slot: Slot, bytes: &[u8]) {
        self.0.send_once(slot, bytes);
    }

    fn send_bytes(&mut self, slot: Slot, bytes: &[u8]) {
        self.0.send_bytes(slot, bytes);
    }

    fn has_unsent(&self, slot: Slot) -> bool {
        self.0.has_unsent(slot)
    }

    fn close(&mut self, slot: Slot) {
        self.0.close(slot);
    }

    fn close_after_peer(&mut self, slot: Slot) {
        self.0.close_after_peer(slot);
    }

    fn wait(&mut self, wait: Wait) -> std::io::Result<bool> {
        self.0.wait(wait)
    }

    fn next(&mut self) -> Option<Event<'_>> {
        self.0.next()
    }
}

/// What happened, with the bytes of what was received.
#[derive(Debug, PartialEq)]
enum Seen {
    Connected(Slot),
    Received(Slot, Vec<u8>),
    Ended(Slot),
    Failed(Slot, Errno),
}

fn next<D: Driver>(driver: &mut D) -> Seen {
    loop {
        match driver.next() {
            Some(Event::Connected { slot, .. }) => return Seen::Connected(slot),
            Some(Event::Received { slot, bytes, .. }) => {
                return Seen::Received(slot, bytes.to_vec());
            }
            Some(Event::Ended { slot }) => return Seen::Ended(slot),
            Some(Event::Failed { slot, errno, .. }) => return Seen::Failed(slot, errno),
            None => {
                driver.wait(A_WHILE).unwrap();
            }
        }
    }
}

/// The stamp of the next bytes, which are as expected.
fn next_stamp<D: Driver>(driver: &mut D, expected: &[u8]) -> Option<u64> {
    loop {
        match driver.next() {
            Some(Event::Received { bytes, stamp_unix_ns, .. }) => {
                assert_eq!(bytes, expected);
                return stamp_unix_ns;
            }
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        driver.wait(A_WHILE).unwrap();
    }
}

fn listener() -> (TcpListener, Endpoint) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address.into())
}

/// A driver with a connection on slot 0, and the server's end of it.
fn connected<D: Backend>() -> (D, TcpStream) {
    let (listener, address) = listener();
    let mut driver = D::new(2).unwrap();
    driver.connect(0, &address);
    assert_eq!(next(&mut driver), Seen::Connected(0));
    (driver, listener.accept().unwrap().0)
}

fn read_exact(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn bytes_go_there_and_back<D: Backend>() {
    let (mut driver, mut peer) = connected::<D>();
    let payload = driver.register(b"ping".to_vec());
    for _ in 0..3 {
        driver.send(0, payload);
        driver.wait(Wait::Poll).unwrap();
        assert_eq!(read_exact(&mut peer, 4), b"ping");
        peer.write_all(b"pong").unwrap();
        assert_eq!(next(&mut driver), Seen::Received(0, b"pong".to_vec()));
    }
}

fn an_end_right_behind_the_last_bytes_is_seen<D: Backend>() {
    let (mut driver, mut peer) = connected::<D>();
    peer.write_all(b"bye").unwrap();
    drop(peer);
    assert_eq!(next(&mut driver), Seen::Received(0, b"bye".to_vec()));
    assert_eq!(next(&mut driver), Seen::Ended(0));
}

fn much_more_than_a_buffer_arrives_whole<D: Backend>() {
    let (mut driver, peer) = connected::<D>();
    let sent: Vec<u8> = (0..3_000_000u32).map(|n| (n % 253) as u8).collect();
    let sending = {
        let sent = sent.clone();
        let mut peer = peer;
        std::thread::spawn(move || peer.write_all(&sent).unwrap())
    };
    let mut received = Vec::new();
    while received.len() < sent.len() {
        match next(&mut driver) {
            Seen::Received(0, bytes) => received.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    assert!(received == sent);
    assert_eq!(next(&mut driver), Seen::Ended(0));
    sending.join().unwrap();
}

/// Each of many connections has more to say than all receive buffers hold: receiving ends for want of buffers, and goes
/// on.
fn every_connection_is_heard_when_the_buffers_run_out<D: Backend>() {
    const CONNECTIONS: usize = 200;
    const BYTES: usize = 128 * 1024;
    let (listener, address) = listener();
    let mut driver = D::new(CONNECTIONS).unwrap();
    let mut peers = Vec::new();
    for slot in 0..CONNECTIONS as Slot {
        driver.connect(slot, &address);
        assert_eq!(next(&mut driver), Seen::Connected(slot));
        peers.push(listener.accept().unwrap().0);
    }
    // Receiving is under way on each before anything comes.
    driver.wait(Wait::Poll).unwrap();
    for (slot, peer) in peers.iter_mut().enumerate() {
        peer.write_all(&vec![slot as u8; BYTES]).unwrap();
    }
    let mut left = [BYTES; CONNECTIONS];
    while left.iter().any(|&bytes| bytes > 0) {
        match next(&mut driver) {
            Seen::Received(slot, bytes) => {
                assert!(bytes.iter().all(|&byte| byte == slot as u8));
                left[slot as usize] -= bytes.len();
            }
            other => panic!("{other:?}"),
        }
    }
    // And all of them once more, to see that each still listens.
    for (slot, peer) in peers.iter_mut().enumerate() {
        peer.write_all(b"again").unwrap();
        assert_eq!(next(&mut driver), Seen::Received(slot as Slot, b"again".to_vec()));
    }
}

fn more_than_the_kernel_takes_at_once_is_sent_in_the_end<D: Backend>() {
    let (mut driver, mut peer) = connected::<D>();
    let sent: Vec<u8> = (0..20_000_000u32).map(|n| (n % 251) as u8).collect();
    let payload = driver.register(sent.clone());
    driver.send(0, payload);
    driver.wait(Wait::Poll).unwrap();
    assert!(driver.has_unsent(0));
    let reading = std::thread::spawn(move || {
        let bytes = read_exact(&mut peer, 20_000_000);
        peer.write_all(b"all").unwrap();
        (bytes, peer)
    });
    assert_eq!(next(&mut driver), Seen::Received(0, b"all".to_vec()));
    assert!(!driver.has_unsent(0));
    assert!(reading.join().unwrap().0 == sent);
}

fn bytes_of_one_request_are_sent_as_they_were_when_they_were_sent<D: Backend>() {
    let (mut driver, mut peer) = connected::<D>();
    for length in [1, 700, 5, 3_000] {
        let mut bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
        driver.send_once(0, &bytes);
        let sent = bytes.clone();
        bytes.fill(0);
        driver.wait(Wait::Poll).unwrap();
        assert_eq!(read_exact(&mut peer, length), sent);
        peer.write_all(b"ok").unwrap();
        assert_eq!(next(&mut driver), Seen::Received(0, b"ok".to_vec()));
    }
    let mut bytes: Vec<u8> = (0..20_000_000u32).map(|n| (n % 251) as u8).collect();
    driver.send_once(0, &bytes);
    let sent = bytes.clone();
    bytes.fill(0);
    driver.wait(Wait::Poll).unwrap();
    assert!(driver.has_unsent(0));
    let reading = std::thread::spawn(move || {
        let bytes = read_exact(&mut peer, 20_000_000);
        peer.write_all(b"all").unwrap();
        (bytes, peer)
    });
    assert_eq!(next(&mut driver), Seen::Received(0, b"all".to_vec()));
    assert!(!driver.has_unsent(0));
    assert!(reading.join().unwrap().0 == sent);
}

fn bytes_sent_once_arrive_in_their_order<D: Backend>() {
    let (mut driver, mut peer) = connected::<D>();
    let mut sent = Vec::new();
    for piece in 0..200u32 {
        // Some fit into the socket at once, and all of them together do not.
        let bytes = vec![piece as u8; 50_000];
        driver.send_bytes(0, &bytes);
        sent.extend(bytes);
    }
    driver.wait(Wait::Poll).unwrap();
    assert!(driver.has_unsent(0));
    let length = sent.len();
    let reading = std::thread::spawn(move || {
        let bytes = read_exact(&mut peer, length);
        peer.write_all(b"all").unwrap();
        (bytes, peer)
    });
    assert_eq!(next(&mut driver), Seen::Received(0, b"all".to_vec()));
    assert!(!driver.has_unsent(0));
    assert!(reading.join().unwrap().0 == sent);
}

fn a_unix_socket_is_as_good_as_any<D: Backend>() {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("weir-net-{}-{number}", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut driver = D::new(1).unwrap();
    driver.connect(0, &Endpoint::unix(path.to_str().unwrap()).unwrap());
    assert_eq!(next(&mut driver), Seen::Connected(0));
    let mut peer = listener.accept().unwrap().0;
    std::fs::remove_file(path).unwrap();
    let payload = driver.register(b"ping".to_vec());
    driver.send(0, payload);
    driver.wait(Wait::Poll).unwrap();
    let mut bytes = [0; 4];
    peer.read_exact(&mut bytes).unwrap();
    peer.write_all(b"pong").unwrap();
    assert_eq!(next(&mut driver), Seen::Received(0, b"pong".to_vec()));
    drop(peer);
    assert_eq!(next(&mut driver), Seen::Ended(0));
}

fn a_connection_comes_from_the_address_it_is_told<D: Backend>() {
    let (listener, endpoint) = listener();
    let Endpoint::Tcp { to, .. } = endpoint else { panic!("{endpoint}") };
    let from: IpAddr = "127.0.0.77".parse().unwrap();
    let mut driver = D::new(1).unwrap();
    let from_there = Endpoint::Tcp { to, from: Some(from) };
    driver.connect(0, &from_there);
    assert_eq!(next(&mut driver), Seen::Connected(0));
    assert_eq!(listener.accept().unwrap().1.ip(), from);
}

fn a_refused_connection_fails_and_its_slot_can_be_used_again<D: Backend>() {
    // No other test listens on this IP address, so none can take the port.
    let refused = TcpListener::bind("127.0.0.9:0").unwrap().local_addr().unwrap();
    let mut driver = D::new(1).unwrap();
    driver.connect(0, &refused.into());
    assert_eq!(next(&mut driver), Seen::Failed(0, Errno::CONNREFUSED));
    let (_listener, address) = listener();
    driver.connect(0, &address);
    assert_eq!(next(&mut driver), Seen::Connected(0));
}

fn nothing_is_heard_of_a_closed_connection_on_a_slot_used_again<D: Backend>() {
    let (listener, address) = listener();
    let mut driver = D::new(1).unwrap();
    for _ in 0..100 {
        driver.connect(0, &address);
        assert_eq!(next(&mut driver), Seen::Connected(0));
        let mut peer = listener.accept().unwrap().0;
        // Events of this connection may be under way when it is closed.
        peer.write_all(b"late").unwrap();
        drop(peer);
        driver.wait(Wait::Poll).unwrap();
        driver.close(0);
    }
    driver.connect(0, &address);
    assert_eq!(next(&mut driver), Seen::Connected(0));
    let mut peer = listener.accept().unwrap().0;
    peer.write_all(b"mine").unwrap();
    assert_eq!(next(&mut driver), Seen::Received(0, b"mine".to_vec()));
}

/// Whether this end of a connection has been closed, as its peer sees it.
fn is_closed(peer: &mut TcpStream) -> bool {
    peer.set_nonblocking(true).unwrap();
    match peer.read(&mut [0]) {
        Ok(0) => true,
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => false,
        other => panic!("{other:?}"),
    }
}

fn a_connection_that_its_peer_is_to_close_is_closed_when_it_has<D: Backend>() {
    let (listener, address) = listener();
    let mut driver = D::new(1).unwrap();
    let mut peers: Vec<TcpStream> = Vec::new();
    for _ in 0..3 {
        driver.connect(0, &address);
        assert_eq!(next(&mut driver), Seen::Connected(0));
        peers.push(listener.accept().unwrap().0);
        driver.close_after_peer(0);
    }
    driver.connect(0, &address);
    assert_eq!(next(&mut driver), Seen::Connected(0));
    let mut present = listener.accept().unwrap().0;
    for peer in &mut peers {
        assert!(!is_closed(peer));
        peer.shutdown(Shutdown::Write).unwrap();
        while !is_closed(peer) {
            driver.wait(A_WHILE).unwrap();
            assert_eq!(driver.next(), None);
            driver.wait(Wait::Poll).unwrap();
        }
    }
    present.write_all(b"mine").unwrap();
    assert_eq!(next(&mut driver), Seen::Received(0, b"mine".to_vec()));
}

fn a_connection_that_its_peer_has_closed_already_is_closed_at_once<D: Backend>() {
    let (mut driver, mut peer) = connected::<D>();
    peer.write_all(b"bye").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(next(&mut driver), Seen::Received(0, b"bye".to_vec()));
    driver.close_after_peer(0);
    assert_eq!(driver.next(), None);
    driver.wait(Wait::Poll).unwrap();
    assert!(is_closed(&mut peer));

    let (mut driver, mut peer) = connected::<D>();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(next(&mut driver), Seen::Ended(0));
    driver.close_after_peer(0);
    driver.wait(Wait::Poll).unwrap();
    assert!(is_closed(&mut peer));
}

fn a_peer_that_never_closes_is_not_waited_for_for_ever<D: Backend>() {
    let (mut driver, mut peer) = connected::<D>();
    driver.close_after_peer(0);
    while !is_closed(&mut peer) {
        driver.wait(Wait::AtMostNs(1_000_000)).unwrap();
        assert_eq!(driver.next(), None);
    }
}

fn of_too_many_connections_that_wait_for_their_peers_the_oldest_are_closed<D: Backend>() {
    let (listener, address) = listener();
    let mut driver = D::new(1).unwrap();
    let mut peers: Vec<TcpStream> = Vec::new();
    for _ in 0..MAX_LINGERING + 20 {
        driver.connect(0, &address);
        assert_eq!(next(&mut driver), Seen::Connected(0));
        peers.push(listener.accept().unwrap().0);
        driver.close_after_peer(0);
    }
    driver.wait(Wait::Poll).unwrap();
    assert!(peers[..20].iter_mut().all(is_closed));
}

fn a_reset_is_a_failure_and_not_an_end<D: Backend>() {
    let (mut driver, peer) = connected::<D>();
    let payload = driver.register(b"unread".to_vec());
    driver.send(0, payload);
    driver.wait(Wait::Poll).unwrap();
    // Closing a socket with data unread sends RST.
    let mut byte = [0];
    peer.peek(&mut byte).unwrap();
    drop(peer);
    assert_eq!(next(&mut driver), Seen::Failed(0, Errno::CONNRESET));
}

fn a_wait_is_as_long_as_asked_to_the_tenth_of_a_millisecond<D: Backend>() {
    let mut driver = D::new(1).unwrap();
    let shortest = (0..50)
        .map(|_| {
            let begin = std::time::Instant::now();
            assert!(!driver.wait(Wait::AtMostNs(300_000)).unwrap());
            begin.elapsed()
        })
        .min()
        .unwrap();
    // A wait rounded to milliseconds would take one each time.
    assert!((300..900).contains(&shortest.as_micros()), "{shortest:?}");
}

fn unix_ns() -> u64 {
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap();
    since_1970.as_nanos() as u64
}

/// The stamp is of when the bytes came, and not of when they were read.
fn what_comes_is_stamped_when_it_comes_if_so_asked<D: Backend>() {
    let _stamping = Stamping::begin().unwrap();
    let (mut driver, mut peer) = connected::<Stamped<D>>();
    driver.wait(Wait::Poll).unwrap();
    peer.set_nodelay(true).unwrap();
    let mut earlier_ns = unix_ns();
    for _ in 0..10 {
        peer.write_all(b"stamped").unwrap();
        // Over loopback the bytes are there when the write returns.
        let there_ns = unix_ns();
        let stamp_ns = next_stamp(&mut driver, b"stamped").unwrap();
        assert!((earlier_ns..=there_ns).contains(&stamp_ns));
        earlier_ns = stamp_ns;
    }
}

fn nothing_is_stamped_unasked<D: Backend>() {
    let _stamping = Stamping::begin().unwrap();
    let (mut driver, mut peer) = connected::<D>();
    peer.write_all(b"plain").unwrap();
    assert_eq!(next_stamp(&mut driver, b"plain"), None);
}

macro_rules! on_every_back_end {
    ($($name:ident),* $(,)?) => {
        mod epoll {
            $(#[test] fn $name() { super::$name::<super::EpollDriver>(); })*
        }
        mod epoll_with_stamps {
            $(#[test] fn $name() { super::$name::<super::Stamped<super::EpollDriver>>(); })*
        }
        /// Nothing is tested where io_uring is not allowed: there the engine does not use it.
        mod io_uring {
            $(#[test] fn $name() {
                if <super::UringDriver as super::Backend>::new(1).is_ok() {
                    super::$name::<super::UringDriver>();
                }
            })*
        }
        mod io_uring_with_stamps {
            $(#[test] fn $name() {
                if <super::UringDriver as super::Backend>::new(1).is_ok() {
                    super::$name::<super::Stamped<super::UringDriver>>();
                }
            })*
        }
    };
}

on_every_back_end!(
    bytes_go_there_and_back,
    an_end_right_behind_the_last_bytes_is_seen,
    much_more_than_a_buffer_arrives_whole,
    every_connection_is_heard_when_the_buffers_run_out,
    more_than_the_kernel_takes_at_once_is_sent_in_the_end,
    bytes_of_one_request_are_sent_as_they_were_when_they_were_sent,
    bytes_sent_once_arrive_in_their_order,
    a_unix_socket_is_as_good_as_any,
    a_connection_comes_from_the_address_it_is_told,
    a_refused_connection_fails_and_its_slot_can_be_used_again,
    nothing_is_heard_of_a_closed_connection_on_a_slot_used_again,
    a_connection_that_its_peer_is_to_close_is_closed_when_it_has,
    a_connection_that_its_peer_has_closed_already_is_closed_at_once,
    a_peer_that_never_closes_is_not_waited_for_for_ever,
    of_too_many_connections_that_wait_for_their_peers_the_oldest_are_closed,
    a_reset_is_a_failure_and_not_an_end,
    a_wait_is_as_long_as_asked_to_the_tenth_of_a_millisecond,
    what_comes_is_stamped_when_it_comes_if_so_asked,
);

mod unasked {
    #[test]
    fn epoll_stamps_nothing() {
        super::nothing_is_stamped_unasked::<super::EpollDriver>();
    }

    #[test]
    fn io_uring_stamps_nothing() {
        if <super::UringDriver as super::Backend>::new(1).is_ok() {
            super::nothing_is_stamped_unasked::<super::UringDriver>();
        }
    }
}

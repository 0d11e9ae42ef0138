//! Compares the observed thread states with a program of a known mix.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use weir_observe::{Observer, PoolTimes, Reading};

const THREADS: usize = 24;
/// With 24 threads, the shares found differ from the true ones by some 0.7 points in the mean.
const SWEEPS: usize = 500;
const PERIOD: Duration = Duration::from_millis(10);

/// Seconds in event waits, sleeps, locks and socket reads, on a CPU, and in all.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    waits: [f64; 4],
    on_cpu: f64,
    whole: f64,
}

/// A moment of a thread: time, CPU used, time waited for a CPU.
fn moment() -> [f64; 3] {
    let seconds = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let waited: f64 = schedstat.split(' ').nth(1).unwrap().parse().unwrap();
    [seconds(ClockId::Monotonic), seconds(ClockId::ThreadCPUTime), waited / 1e9]
}

/// Waits in one of four ways, by turns that no clock drives, and burns a little.
fn mix(seed: u64, over: &AtomicBool) -> Spent {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let (mut here, _there) = UnixStream::pair().unwrap();
    let mut spent = Spent::default();
    while !over.load(Ordering::Relaxed) {
        let kind = match random(20) {
            0..8 => 0,
            8..13 => 1,
            13..17 => 2,
            _ => 3,
        };
        let pause = Duration::from_micros(4_000 + random(16_000));
        let before = moment();
        match kind {
            0 => {
                let timeout = Timespec::try_from(pause).unwrap();
                let mut waits = [PollFd::new(&here, PollFlags::IN)];
                poll(&mut waits, Some(&timeout)).unwrap();
            }
            1 => std::thread::sleep(pause),
            2 => std::thread::park_timeout(pause),
            _ => {
                here.set_read_timeout(Some(pause)).unwrap();
                let _ = here.read(&mut [0]);
            }
        }
        let burning = Instant::now();
        while burning.elapsed() < Duration::from_micros(300) {}
        let after = moment();
        let [whole, on_cpu, runnable] = std::array::from_fn(|index| after[index] - before[index]);
        spent.waits[kind] += whole - on_cpu - runnable;
        spent.on_cpu += on_cpu;
        spent.whole += whole;
    }
    spent
}

fn pool(observer: &mut Observer, name: &str) -> Option<PoolTimes> {
    let sample = observer.sweep(Reading::Full).unwrap();
    let pools = sample.groups[0].threads_by_state.clone().unwrap();
    pools.into_iter().find(|pool| pool.pool == name)
}

fn own_observer() -> Observer {
    let mut observer = Observer::new().unwrap();
    let own = i32::try_from(std::process::id()).unwrap();
    observer.add_tree("own", "app", own, true).unwrap();
    observer
}

#[test]
fn known_mix_is_found_within_three_points() {
    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let over = over.clone();
            let builder = std::thread::Builder::new().name(format!("mix-{number}"));
            builder.spawn(move || mix(number as u64 + 1, &over)).unwrap()
        })
        .collect();
    let mut observer = own_observer();
    let mut found = None;
    // Until all have taken their names the observer may have booked them elsewhere.
    while found.is_none_or(|pool: PoolTimes| pool.threads < THREADS as u64) {
        found = pool(&mut observer, "mix");
    }
    let first = pool(&mut observer, "mix").unwrap();
    for _ in 0..SWEEPS {
        std::thread::sleep(PERIOD);
        observer.sweep(Reading::Full).unwrap();
    }
    let last = pool(&mut observer, "mix").unwrap();
    over.store(true, Ordering::Relaxed);
    let mut expected = Spent::default();
    for thread in threads {
        let one = thread.join().unwrap();
        expected.on_cpu += one.on_cpu;
        expected.whole += one.whole;
        for (sum, wait) in expected.waits.iter_mut().zip(one.waits) {
            *sum += wait;
        }
    }
    type Seconds = fn(&PoolTimes) -> f64;
    let states: [(&str, Seconds, f64); 5] = [
        ("event_wait", |pool| pool.event_wait_s, expected.waits[0]),
        ("sleep", |pool| pool.sleep_s, expected.waits[1]),
        ("lock", |pool| pool.lock_s, expected.waits[2]),
        ("socket_io", |pool| pool.socket_io_s, expected.waits[3]),
        ("on_cpu", |pool| pool.on_cpu_s, expected.on_cpu),
    ];
    let all = |pool: &PoolTimes| {
        states.iter().map(|(_, of, _)| of(pool)).sum::<f64>()
            + pool.runnable_s
            + pool.accept_s
            + pool.disk_s
            + pool.other_s
    };
    let whole = all(&last) - all(&first);
    for (state, of, expected_s) in states {
        let share = (of(&last) - of(&first)) / whole;
        let expected_share = expected_s / expected.whole;
        println!("{state}: {share:.3}, expected {expected_share:.3}");
        assert!((share - expected_share).abs() < 0.03, "{state}: {share:.3}, expected {expected_share:.3}");
    }
}

#[test]
fn accept_and_read_are_distinguished() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = std::thread::Builder::new().name("acceptor-1".to_owned());
    let acceptor = acceptor.spawn(move || listener.accept().unwrap()).unwrap();
    let mut observer = own_observer();
    let accepting = loop {
        std::thread::sleep(PERIOD);
        let found = pool(&mut observer, "acceptor").filter(|pool| pool.accept_s > 0.1);
        if let Some(pool) = found {
            break pool;
        }
    };
    assert_eq!(accepting.threads, 1);
    assert!(accepting.accept_s > 0.9 * (accepting.accept_s + accepting.socket_io_s));
    drop(std::net::TcpStream::connect(address).unwrap());
    acceptor.join().unwrap();
}

#[test]
fn full_reading_includes_idle_threads() {
    let over = Arc::new(AtomicBool::new(false));
    let named = Arc::new(Barrier::new(THREADS + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (over, named) = (over.clone(), named.clone());
            let builder = std::thread::Builder::new().name(format!("idle-{number}"));
            let wait = move || {
                named.wait();
                while !over.load(Ordering::Relaxed) {
                    std::thread::park();
                }
            };
            builder.spawn(wait).unwrap()
        })
        .collect();
    named.wait();
    let mut observer = own_observer();
    for _ in 0..100 {
        observer.sweep(Reading::Full).unwrap();
    }
    let (since, first) = (Instant::now(), pool(&mut observer, "idle").unwrap());
    std::thread::sleep(PERIOD);
    let least_s = since.elapsed().as_secs_f64() * THREADS as f64;
    let last = pool(&mut observer, "idle").unwrap();
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
    let waited_s = last.lock_s - first.lock_s;
    assert!(waited_s > 0.9 * least_s, "{waited_s} s of at least {least_s} s");
}

//! Measures the cost of observing, at 10 Hz with memory every 5 s:
//! `cargo test --release -p weir-observe --test cost -- --ignored --nocapture`. Let nothing else run meanwhile. The
//! JVMs need a JDK; their heap of 2 GiB is resident from the start.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_observe::{Observer, Reading, Ticker, raise_open_files};

const PERIOD: Duration = Duration::from_millis(100);
const MEMORY_PERIOD: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(10);

/// Observes as the host does, and prints the share of a CPU that it took.
fn report(what: &str, observer: &mut Observer) {
    let _ = rustix::process::setpriority_process(None, 19);
    let first = observer.sweep(Reading::Full).unwrap();
    let mut last = first.clone();
    let begin = Instant::now();
    let mut usual = Ticker::new(begin + PERIOD, PERIOD);
    let mut memory = Ticker::new(begin + MEMORY_PERIOD, MEMORY_PERIOD);
    let mut longest = Duration::ZERO;
    while begin.elapsed() < WINDOW {
        std::thread::sleep(usual.due().saturating_duration_since(Instant::now()));
        let now = Instant::now();
        usual.tick(now);
        let reading = if memory.tick(now) { Reading::Memory } else { Reading::Usual };
        last = observer.sweep(reading).unwrap();
        longest = longest.max(now.elapsed());
    }
    let cpu_s = last.observer.cpu_s - first.observer.cpu_s;
    let processes: u64 = last.groups.iter().map(|group| group.processes).sum();
    let threads: u64 = last.groups.iter().map(|group| group.threads).sum();
    println!(
        "{what:<40} {processes:>3} processes {threads:>5} threads {:>5.2} % of a CPU, {:>5.0} us a sweep, {} passes over threads in {} sweeps, longest {:.1} ms",
        100.0 * cpu_s / begin.elapsed().as_secs_f64(),
        1e6 * cpu_s / (last.observer.sweeps - first.observer.sweeps) as f64,
        last.observer.thread_sweeps - first.observer.thread_sweeps,
        last.observer.sweeps - first.observer.sweeps,
        longest.as_secs_f64() * 1e3,
    );
}

fn of_tree(pid: u32) -> Observer {
    let mut observer = Observer::new().unwrap();
    let pid = i32::try_from(pid).unwrap();
    observer.add_tree(&pid.to_string(), "", pid, true).unwrap();
    observer
}

struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// This process with so many threads, each of which runs every `pause`.
fn with_threads(what: &str, count: usize, pause: Duration) {
    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let over = over.clone();
            let run = move || {
                while !over.load(Ordering::Relaxed) {
                    std::thread::park_timeout(pause);
                }
            };
            let builder = std::thread::Builder::new().stack_size(64 * 1024);
            builder.spawn(run).unwrap()
        })
        .collect();
    report(what, &mut of_tree(std::process::id()));
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

const JVM: &str = "public class Sleeper { public static void main(String[] arguments) throws Exception {
    System.out.println(\"ready\"); Thread.sleep(1000000); } }";

/// A JVM whose whole heap is resident, if there is a JDK.
fn jvm(heap: &str) -> Option<Running> {
    let folder = std::env::temp_dir().join(format!("weir-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("Sleeper.java");
    std::fs::write(&source, JVM).unwrap();
    let mut command = Command::new("java");
    command.args([&format!("-Xms{heap}"), &format!("-Xmx{heap}")]).arg("-XX:+AlwaysPreTouch").arg(&source);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok();
    let mut running = Running(child.into_iter().collect());
    let output = running.0.first_mut()?.stdout.take();
    let said = BufReader::new(output?).lines().next();
    std::fs::remove_dir_all(&folder).unwrap();
    said.map(|_| running)
}

#[test]
#[ignore = "a measurement, not a check"]
fn cost_of_observing() {
    raise_open_files();
    report("no groups", &mut Observer::new().unwrap());
    let sleepers = (0..5).map(|_| Command::new("sleep").arg("1000").spawn().unwrap());
    let sleepers = Running(sleepers.collect());
    let mut observer = Observer::new().unwrap();
    for child in &sleepers.0 {
        let pid = i32::try_from(child.id()).unwrap();
        observer.add_tree(&pid.to_string(), "", pid, true).unwrap();
    }
    report("five processes", &mut observer);
    drop(observer);
    let hour = Duration::from_secs(3600);
    with_threads("300 threads that wait", 300, hour);
    with_threads("300 threads, each runs 20 times a second", 300, Duration::from_millis(50));
    with_threads("3,000 threads that wait", 3000, hour);
    with_threads("3,000 threads, 300 run each tenth of a second", 3000, Duration::from_secs(1));
    with_threads("3,000 threads, each runs 5 times a second", 3000, Duration::from_millis(200));
    for heap in ["64m", "2g"] {
        match jvm(heap) {
            Some(running) => report(&format!("a JVM with {heap} of heap"), &mut of_tree(running.0[0].id())),
            None => println!("a JVM with {heap} of heap: left out, there is no JDK"),
        }
    }
}

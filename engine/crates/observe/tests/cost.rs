//! What a sweep costs: `cargo test --release -p weir-observe -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use weir_observe::{Observer, Reading};

const SWEEPS: u32 = 200;

fn mean_us(mut sweep: impl FnMut()) -> f64 {
    sweep();
    let begin = Instant::now();
    (0..SWEEPS).for_each(|_| sweep());
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(SWEEPS)
}

fn report(what: &str, observer: &mut Observer) {
    let usual = mean_us(|| drop(observer.sweep(Reading::Usual).unwrap()));
    let full = mean_us(|| drop(observer.sweep(Reading::Full).unwrap()));
    let sample = observer.sweep(Reading::Usual).unwrap();
    let processes: u64 = sample.groups.iter().map(|group| group.processes).sum();
    let threads: u64 = sample.groups.iter().map(|group| group.threads).sum();
    println!(
        "{what}, {processes} processes, {threads} threads: usual {usual:.0} us, full {full:.0} us"
    );
}

struct Sleepers(Vec<Child>);

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
#[ignore = "a measurement, not a check"]
fn cost_of_a_sweep() {
    let sleepers = Sleepers(
        (0..5)
            .map(|_| Command::new("sleep").arg("1000").spawn().unwrap())
            .collect(),
    );
    let mut observer = Observer::new().unwrap();
    report("no groups", &mut observer);
    for child in &sleepers.0 {
        let pid = i32::try_from(child.id()).unwrap();
        observer.add_tree(&pid.to_string(), "", pid, true).unwrap();
    }
    report("trees among all processes", &mut observer);

    let (stop, stopped) = channel::<()>();
    let stopped = std::sync::Arc::new(std::sync::Mutex::new(stopped));
    for _ in 0..200 {
        let stopped = stopped.clone();
        std::thread::spawn(move || {
            let _ = stopped.lock().unwrap().recv();
        });
    }
    let mut observer = Observer::new().unwrap();
    let own = i32::try_from(std::process::id()).unwrap();
    observer.add_tree("threads", "", own, true).unwrap();
    report("one tree with a process of many threads", &mut observer);
    drop(stop);

    let namespace = Command::new("unshare")
        .args([
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
        ])
        .arg("for i in 1 2 3 4 5; do sleep 1000 & done; wait")
        .spawn()
        .unwrap();
    let namespace = Sleepers(vec![namespace]);
    let outside = i32::try_from(namespace.0[0].id()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        let inside = weir_observe::descendants(outside, &[]);
        if inside.len() < 6 {
            std::thread::yield_now();
            continue;
        }
        let mut observer = Observer::new().unwrap();
        observer.add_namespace("namespace", "", inside[0]).unwrap();
        report("a PID namespace", &mut observer);
        return;
    }
    println!("a PID namespace: left out, making one takes root");
}

//! The floor of response times: what does a client measure that only waits for one response at a time?
//!
//! The client has one connection and one thread. It spins until a request is due, writes it with one system call, and
//! spins on a non-blocking read until the response is complete. Without event loop, timer and parser it adds almost
//! nothing to a time. After a slow response the next request is late, and its wait counts, as in any open loop.
//! Requests that are unsent at the end are left out. So a rate that is too high shows the most that one connection can
//! carry.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::{positive, response, usage};

struct Measured {
    response_time_ns: Histogram<u64>,
    service_time_ns: Histogram<u64>,
    achieved_rps: f64,
}

/// Measures response times. Returns them as JSON.
pub(crate) fn run(arguments: &[String]) -> io::Result<String> {
    let usage = || usage("floor ADDRESS PATH RATE_RPS DURATION_S");
    let [address, path, rate_rps, duration_s] = arguments else {
        return Err(usage());
    };
    let rate_rps = positive(rate_rps).ok_or_else(usage)?;
    let duration_s = positive(duration_s).ok_or_else(usage)?;
    let measured = measure(address, path, rate_rps, duration_s)?;
    Ok(format!(
        r#"{{"rate_rps": {rate_rps}, "achieved_rps": {}, "requests": {}, "response_time_us": {}, "service_time_us": {}}}"#,
        measured.achieved_rps,
        measured.response_time_ns.len(),
        quantiles_us(&measured.response_time_ns),
        quantiles_us(&measured.service_time_ns)
    ))
}

fn measure(address: &str, path: &str, rate_rps: f64, duration_s: f64) -> io::Result<Measured> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
    // Outside the measurement.
    let response_bytes = response::length(&mut stream, &request)?;
    stream.set_nonblocking(true)?;
    let mut buffer = vec![0; 64 * 1024];
    let requests = (rate_rps * duration_s) as u64;
    let mut measured = Measured { response_time_ns: histogram()?, service_time_ns: histogram()?, achieved_rps: 0.0 };
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(duration_s);
    for index in 0..requests {
        let due = start + Duration::from_secs_f64(index as f64 / rate_rps);
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        let written = Instant::now();
        if written >= end {
            break;
        }
        response::check_sent(stream.write(&request)?, &request)?;
        let mut received = 0;
        while received < response_bytes {
            received += spin_read(&mut stream, &mut buffer[received..])?;
        }
        let completed = Instant::now();
        if received != response_bytes || !buffer.starts_with(b"HTTP/1.1 200 ") {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "a response differs from the first one in status or length",
            ));
        }
        measured.response_time_ns.saturating_record(nanoseconds(completed - due));
        measured.service_time_ns.saturating_record(nanoseconds(completed - written));
    }
    // If all requests were sent early, the rest of the duration counts too.
    let elapsed_s = start.elapsed().as_secs_f64().max(duration_s);
    measured.achieved_rps = measured.response_time_ns.len() as f64 / elapsed_s;
    Ok(measured)
}

fn spin_read(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Ok(0) => return Err(response::closed()),
            Ok(read) => return Ok(read),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
}

fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(Error::other)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns quantiles and the maximum as JSON, in microseconds.
fn quantiles_us(times: &Histogram<u64>) -> String {
    let us = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    format!(
        r#"{{"p50": {}, "p90": {}, "p99": {}, "p99_9": {}, "max": {}}}"#,
        us(0.5),
        us(0.9),
        us(0.99),
        us(0.999),
        times.max() as f64 / 1e3
    )
}

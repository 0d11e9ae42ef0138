//! The floor of response times: what does a client measure that only waits for one response at a time?
//!
//! The client has one connection and one thread. It spins until a request is due, writes it with one system call, and
//! spins on a non-blocking read until the response is complete. Without event loop, timer and parser it adds almost
//! nothing to a time. After a slow response the next request is late, and its wait counts, as in any open loop.
//! Requests that are unsent at the end are left out. So a rate that is too high shows the most that one connection can
//! carry.
//!
//! `weir-bench-floor ADDRESS PATH RATE_RPS DURATION_S` prints one JSON object. Bind it to a CPU with taskset.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

struct Arguments {
    address: String,
    path: String,
    rate_rps: f64,
    duration_s: f64,
}

struct Measured {
    response_time_ns: Histogram<u64>,
    service_time_ns: Histogram<u64>,
    achieved_rps: f64,
}

fn main() -> ExitCode {
    let result = parse(std::env::args().skip(1).collect()).and_then(|arguments| {
        let measured = measure(&arguments)?;
        print(&arguments, &measured)
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "weir-bench-floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: Vec<String>) -> io::Result<Arguments> {
    let usage = || {
        Error::new(
            ErrorKind::InvalidInput,
            "usage: weir-bench-floor ADDRESS PATH RATE_RPS DURATION_S",
        )
    };
    let [address, path, rate_rps, duration_s]: [String; 4] =
        arguments.try_into().map_err(|_| usage())?;
    let positive = |text: &str| {
        text.parse()
            .ok()
            .filter(|number: &f64| *number > 0.0)
            .ok_or_else(usage)
    };
    Ok(Arguments {
        rate_rps: positive(&rate_rps)?,
        duration_s: positive(&duration_s)?,
        address,
        path,
    })
}

fn measure(arguments: &Arguments) -> io::Result<Measured> {
    let mut stream = TcpStream::connect(&arguments.address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n",
        arguments.path, arguments.address
    )
    .into_bytes();
    let mut buffer = vec![0; 64 * 1024];

    let answer_bytes = length_of_first_answer(&mut stream, &request, &mut buffer)?;
    let requests = (arguments.rate_rps * arguments.duration_s) as u64;
    let mut measured = Measured {
        response_time_ns: histogram()?,
        service_time_ns: histogram()?,
        achieved_rps: 0.0,
    };
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(arguments.duration_s);
    for index in 0..requests {
        let due = start + Duration::from_secs_f64(index as f64 / arguments.rate_rps);
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        let written = Instant::now();
        if written >= end {
            break;
        }
        write_at_once(&mut stream, &request)?;
        let mut received = 0;
        while received < answer_bytes {
            received += spin_read(&mut stream, &mut buffer[received..])?;
        }
        let answered = Instant::now();
        if received != answer_bytes || !buffer.starts_with(b"HTTP/1.1 200 ") {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "a response differs from the first one in status or length",
            ));
        }
        measured
            .response_time_ns
            .saturating_record(nanoseconds(answered - due));
        measured
            .service_time_ns
            .saturating_record(nanoseconds(answered - written));
    }
    // If all requests were sent early, the rest of the duration counts too.
    let elapsed_s = start.elapsed().as_secs_f64().max(arguments.duration_s);
    measured.achieved_rps = measured.response_time_ns.len() as f64 / elapsed_s;
    Ok(measured)
}

/// Sends one request outside the measurement and reads head and `Content-Length`. Later responses must be as long.
fn length_of_first_answer(
    stream: &mut TcpStream,
    request: &[u8],
    buffer: &mut [u8],
) -> io::Result<usize> {
    write_at_once(stream, request)?;
    let mut received = 0;
    loop {
        received += spin_read(stream, &mut buffer[received..])?;
        let Some(head) = buffer[..received]
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
        else {
            continue;
        };
        let body = String::from_utf8_lossy(&buffer[..head])
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse::<usize>().ok())
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidData,
                    "the first response has no Content-Length",
                )
            })?;
        if received >= head + 4 + body {
            return Ok(head + 4 + body);
        }
    }
}

/// Fails after a partial write: a request is far smaller than a socket's buffer, so a partial write is an error.
fn write_at_once(stream: &mut TcpStream, request: &[u8]) -> io::Result<()> {
    match stream.write(request)? {
        written if written == request.len() => Ok(()),
        written => Err(Error::new(
            ErrorKind::WriteZero,
            format!("wrote {written} of {} bytes", request.len()),
        )),
    }
}

fn spin_read(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Ok(0) => {
                return Err(Error::new(
                    ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                ));
            }
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

fn print(arguments: &Arguments, measured: &Measured) -> io::Result<()> {
    let clock = |times: &Histogram<u64>| {
        let us = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        let max = times.max() as f64 / 1e3;
        format!(
            r#"{{"p50": {}, "p90": {}, "p99": {}, "p99_9": {}, "max": {max}}}"#,
            us(0.5),
            us(0.9),
            us(0.99),
            us(0.999)
        )
    };
    writeln!(
        io::stdout(),
        r#"{{"rate_rps": {}, "achieved_rps": {}, "requests": {}, "response_time_us": {}, "service_time_us": {}}}"#,
        arguments.rate_rps,
        measured.achieved_rps,
        measured.response_time_ns.len(),
        clock(&measured.response_time_ns),
        clock(&measured.service_time_ns)
    )
}

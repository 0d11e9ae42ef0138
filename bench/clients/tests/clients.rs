//! Runs both clients on a server that sends every response in two pieces.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};

const RESPONSE: [&[u8]; 2] = [b"HTTP/1.1 200 OK\r\nContent-Len", b"gth: 5\r\n\r\nhello"];

/// Starts a server, whose threads end with the test's process.
fn server() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || respond(stream));
        }
    });
    Ok(address)
}

fn respond(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&buffer[..read]),
        }
        if request.ends_with(b"\r\n\r\n") {
            assert!(request.starts_with(b"GET /path HTTP/1.1\r\nHost: 127.0.0.1:"));
            request.clear();
            for piece in RESPONSE {
                stream.write_all(piece)?;
            }
        }
    }
}

fn run(back_end: &str, address: &str) -> io::Result<Output> {
    let file = std::env::temp_dir().join(format!("weir-bench-clients-{address}-{back_end}"));
    std::fs::write(&file, format!("GET /path HTTP/1.1\r\nHost: {address}\r\n\r\n"))?;
    let output = Command::new(env!("CARGO_BIN_EXE_weir-bench-clients"))
        .args(["bare", back_end, address])
        .arg(&file)
        .args(["3", "0.1"])
        .output();
    std::fs::remove_file(file)?;
    output
}

fn counts_responses(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success() && text.starts_with(r#"{"completed": "#) && !text.starts_with(r#"{"completed": 0,"#)
}

#[test]
fn epoll_loop_counts_responses() -> io::Result<()> {
    let output = run("epoll", &server()?.to_string())?;
    assert!(counts_responses(&output), "{output:?}");
    Ok(())
}

#[test]
fn io_uring_loop_counts_responses_or_is_refused() -> io::Result<()> {
    let output = run("io_uring", &server()?.to_string())?;
    let refused = String::from_utf8_lossy(&output.stderr).contains("os error");
    assert!(counts_responses(&output) || refused, "{output:?}");
    Ok(())
}

#[test]
fn missing_server_is_an_error() -> io::Result<()> {
    // No other test listens at this address, so that nobody takes the port between these two lines.
    let address = TcpListener::bind("127.0.0.9:0")?.local_addr()?;
    let output = run("epoll", &address.to_string())?;
    assert!(!output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("refused"), "{output:?}");
    Ok(())
}

#[test]
fn floor_measures_each_response() -> io::Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-bench-clients"))
        .args(["floor", &server()?.to_string(), "/path", "100", "0.1"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.starts_with(r#"{"rate_rps": 100, "#), "{text}");
    assert!(!text.contains(r#""requests": 0,"#), "{text}");
    Ok(())
}

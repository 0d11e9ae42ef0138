//! Runs both loops on a server that sends every response in two pieces.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};

const ANSWER: [&[u8]; 2] = [b"HTTP/1.1 200 OK\r\nContent-Len", b"gth: 5\r\n\r\nhello"];

/// Starts a server, whose threads end with the test's process.
fn server() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
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
            for piece in ANSWER {
                stream.write_all(piece)?;
            }
        }
    }
}

fn run(back_end: &str, address: &str) -> io::Result<Output> {
    let file = std::env::temp_dir().join(format!("weir-bench-bare-{address}-{back_end}"));
    std::fs::write(
        &file,
        format!("GET /path HTTP/1.1\r\nHost: {address}\r\n\r\n"),
    )?;
    let output = Command::new(env!("CARGO_BIN_EXE_weir-bench-bare"))
        .args([back_end, address])
        .arg(&file)
        .args(["3", "0.1"])
        .output();
    std::fs::remove_file(file)?;
    output
}

fn counts_answers(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success()
        && text.starts_with(r#"{"completed": "#)
        && !text.starts_with(r#"{"completed": 0,"#)
}

#[test]
fn the_loop_on_epoll_counts_answers() -> io::Result<()> {
    let output = run("epoll", &server()?.to_string())?;
    assert!(counts_answers(&output), "{output:?}");
    Ok(())
}

#[test]
fn the_loop_on_io_uring_counts_answers_or_says_that_it_may_not() -> io::Result<()> {
    let output = run("io_uring", &server()?.to_string())?;
    let refused = String::from_utf8_lossy(&output.stderr).contains("os error");
    assert!(counts_answers(&output) || refused, "{output:?}");
    Ok(())
}

#[test]
fn a_server_that_is_not_there_is_an_error() -> io::Result<()> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let output = run("epoll", &address.to_string())?;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("refused"));
    Ok(())
}

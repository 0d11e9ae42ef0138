//! The only place that writes to standard output and standard error.
#![allow(clippy::print_stderr)]

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

/// Writes one record as a line of JSON and flushes it. Returns false if the reader is gone.
pub fn write_record(record: &impl Serialize) -> bool {
    let mut line = match serde_json::to_vec(record) {
        Ok(line) => line,
        Err(error) => {
            eprintln!("weir-engine: a record could not be written as JSON: {error}");
            return false;
        }
    };
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).is_ok()
}

/// The record of an error that ends the process.
#[derive(Serialize)]
struct Fatal<'a> {
    record: &'static str,
    code: u8,
    message: &'a str,
    hint: &'a str,
}

/// Reports an error on both streams. Returns the exit code of the process.
pub fn fatal(code: u8, message: &str, hint: &str) -> ExitCode {
    write_record(&Fatal { record: "error", code, message, hint });
    eprintln!("weir-engine: {message}");
    if !hint.is_empty() {
        eprintln!("  {hint}");
    }
    ExitCode::from(code)
}

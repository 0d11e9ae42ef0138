//! The response parser under libFuzzer: `cargo +nightly fuzz run --features libfuzzer response`, in `engine/`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_fuzz::Parser::new().check(bytes));

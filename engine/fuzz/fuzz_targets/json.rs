//! The JSON scanner under libFuzzer, against serde_json: `cargo +nightly fuzz run --features libfuzzer json`, in
//! `engine/`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_scenario::json::differential(bytes));

//! Calls to the operating system that several crates need, or that no safe crate offers.
//!
//! The unsafe code of the engine is here, apart from the memory that the kernel shares: the rings of `weir-net` and of
//! `weir-tap`.

pub mod clock;
pub mod limits;
pub mod pipe;
pub mod process;
pub mod socket;

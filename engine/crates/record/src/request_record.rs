//! The request log's record of one request, in 64 bytes; see `docs/reference/engine.md`.

use serde::Serialize;

use crate::ErrorKind;

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The response is complete and correct.
    Ok,
    /// The request failed.
    Failed(ErrorKind),
    /// The request was in flight at the end of the load.
    Unanswered,
}

impl RequestOutcome {
    /// Returns the number in records. Failures are numbered from 1, in the order of [`ErrorKind::ALL`].
    fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed(kind) => kind as u8 + 1,
            Self::Unanswered => ErrorKind::ALL.len() as u8 + 1,
        }
    }
}

/// One request. Times are nanoseconds since the start of the load, or -1 if they were not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRecord {
    /// Time when the request was due.
    pub intended_ns: i64,
    /// Time when the request was written.
    pub written_ns: i64,
    /// Time of the response's first byte.
    pub first_byte_ns: i64,
    /// Time of the response's last byte.
    pub last_byte_ns: i64,
    /// Time of making the connection, TLS included; 0 if the connection has carried a request before.
    pub connect_ns: i64,
    /// Received bytes of the response.
    pub received_bytes: u32,
    /// Bytes of the body of a complete response.
    pub body_bytes: u32,
    /// Bytes of the request.
    pub sent_bytes: u32,
    /// Index of the connection in the load.
    pub user: u32,
    /// Index of the scenario's step, from 0.
    pub step: u16,
    /// Index of the target, from 0.
    pub target: u16,
    /// Status of a complete response.
    pub status: u16,
    /// Outcome of the request.
    pub outcome: RequestOutcome,
}

impl RequestRecord {
    /// Size of a record.
    pub const BYTES: usize = 64;
    /// The step of a request that failed before its step was known.
    pub const NO_STEP: u16 = u16::MAX;

    /// Encodes the record, little endian.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let moments = [self.intended_ns, self.written_ns, self.first_byte_ns, self.last_byte_ns, self.connect_ns];
        let sizes = [self.received_bytes, self.body_bytes, self.sent_bytes, self.user];
        let small = [self.step, self.target, self.status];
        for (place, value) in bytes[..40].chunks_exact_mut(8).zip(moments) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        for (place, value) in bytes[40..56].chunks_exact_mut(4).zip(sizes) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        for (place, value) in bytes[56..62].chunks_exact_mut(2).zip(small) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        bytes[62] = self.outcome.code();
        bytes
    }
}

/// The result of a request log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestLogSummary {
    /// Number of records in the file.
    pub records: u64,
    /// Number of lost records, because the disk was too slow or full.
    pub lost: u64,
    /// The error after which the file took no more records.
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_fixed_offsets() {
        let record = RequestRecord {
            intended_ns: 1,
            written_ns: -1,
            first_byte_ns: 0x0102_0304_0506_0708,
            last_byte_ns: 4,
            connect_ns: 5,
            received_bytes: 6,
            body_bytes: 7,
            sent_bytes: 8,
            user: 0x0a0b_0c0d,
            step: 9,
            target: 10,
            status: 200,
            outcome: RequestOutcome::Failed(ErrorKind::Check),
        };
        let bytes = record.to_bytes();
        let i64_at =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)) as i64;
        assert_eq!([0, 8, 16, 24, 32].map(i64_at), [1, -1, 0x0102_0304_0506_0708, 4, 5]);
        assert_eq!(bytes[40..52], [6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(bytes[52..56], [0x0d, 0x0c, 0x0b, 0x0a]);
        assert_eq!(bytes[56..], [9, 0, 10, 0, 200, 0, 5, 0]);
    }

    #[test]
    fn outcomes_have_fixed_numbers() {
        let kinds = ErrorKind::ALL.map(|kind| RequestOutcome::Failed(kind).code());
        assert_eq!(kinds, [1, 2, 3, 4, 5]);
        assert_eq!((RequestOutcome::Ok.code(), RequestOutcome::Unanswered.code()), (0, 6));
    }
}

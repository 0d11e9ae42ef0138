//! One request as a record of 64 bytes: what the request log is made of, described in `docs/reference/engine.md`.

use serde::Serialize;

use crate::ErrorKind;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A whole answer that is right.
    Ok,
    /// In one of these ways.
    Failed(ErrorKind),
    /// It was in flight at the end of the load.
    Unanswered,
}

impl Ending {
    /// The number that it has in records: failures have those from 1 on, in the order of [`ErrorKind::ALL`].
    fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed(kind) => kind as u8 + 1,
            Self::Unanswered => ErrorKind::ALL.len() as u8 + 1,
        }
    }
}

/// One request. Moments are nanoseconds since the load began, -1 where they never came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRecord {
    /// When it was due.
    pub intended_ns: i64,
    /// When it was written.
    pub written_ns: i64,
    /// When its answer began.
    pub first_byte_ns: i64,
    /// When that was whole.
    pub last_byte_ns: i64,
    /// How long making its connection took, TLS included; 0 if that had carried a request before.
    pub connect_ns: i64,
    /// Bytes of its answer, or of what came of it.
    pub received_bytes: u32,
    /// Bytes of the body of its answer, if that was whole.
    pub body_bytes: u32,
    /// Bytes of itself.
    pub sent_bytes: u32,
    /// The place of its connection among all of the load.
    pub user: u32,
    /// The step of a scenario, from 0.
    pub step: u16,
    /// The target of several, from 0.
    pub target: u16,
    /// The status of its answer, if that was whole.
    pub status: u16,
    /// How it ended.
    pub ending: Ending,
}

impl RequestRecord {
    /// Bytes of one record.
    pub const BYTES: usize = 64;
    /// The step of a request that failed before it was known.
    pub const NO_STEP: u16 = u16::MAX;

    /// The record, little endian.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let moments = [
            self.intended_ns,
            self.written_ns,
            self.first_byte_ns,
            self.last_byte_ns,
            self.connect_ns,
        ];
        let sizes = [
            self.received_bytes,
            self.body_bytes,
            self.sent_bytes,
            self.user,
        ];
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
        bytes[62] = self.ending.code();
        bytes
    }
}

/// What came of a request log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestLogSummary {
    /// Records in the file.
    pub records: u64,
    /// Records that are not, since the disk did not follow or took no more.
    pub lost: u64,
    /// Why it took no more.
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_record_has_its_place() {
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
            ending: Ending::Failed(ErrorKind::Check),
        };
        let bytes = record.to_bytes();
        let i64_at = |at: usize| {
            bytes[at..at + 8]
                .iter()
                .rev()
                .fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)) as i64
        };
        assert_eq!(
            [0, 8, 16, 24, 32].map(i64_at),
            [1, -1, 0x0102_0304_0506_0708, 4, 5]
        );
        assert_eq!(bytes[40..52], [6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(bytes[52..56], [0x0d, 0x0c, 0x0b, 0x0a]);
        assert_eq!(bytes[56..], [9, 0, 10, 0, 200, 0, 5, 0]);
    }

    #[test]
    fn endings_are_numbered_from_right_to_unanswered() {
        let kinds = ErrorKind::ALL.map(|kind| Ending::Failed(kind).code());
        assert_eq!(kinds, [1, 2, 3, 4, 5]);
        assert_eq!((Ending::Ok.code(), Ending::Unanswered.code()), (0, 6));
    }
}

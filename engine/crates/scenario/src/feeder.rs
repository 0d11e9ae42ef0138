//! Feeders: rows of values from CSV or JSON lines, and the order in which a load thread draws them.
//!
//! A [`Table`] holds only the cells that templates use, in one piece of memory that all threads share. A [`Deck`]
//! is one thread's share of the rows (the indices ≡ k mod n, as for requests), so that no row goes to two threads.

use weir_plan::scenario::{AtEnd, FeederFormat, FeederMode};
use weir_schedule::{Random, Shard};

use crate::json::{self, Pointer};

/// The cells of a feeder.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    data: Box<[u8]>,
    /// Where each cell ends in `data`, row by row.
    ends: Box<[u32]>,
    columns: usize,
    pub(crate) rows: u32,
}

/// An error in a feeder's content: what was found, and what was expected.
pub(crate) type Wrong = (String, String);

impl Table {
    /// Reads the cells of these columns: names of a CSV file's columns, keys or JSON pointers of JSON lines.
    pub(crate) fn read(format: FeederFormat, content: &[u8], columns: &[String]) -> Result<Self, Wrong> {
        let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
        let mut table = Builder::default();
        match format {
            FeederFormat::Csv => table.read_csv(content, columns)?,
            FeederFormat::JsonLines => table.read_json_lines(content, columns)?,
        }
        if table.rows == 0 {
            let found = match format {
                FeederFormat::Csv => "no rows below the line that names the columns",
                FeederFormat::JsonLines => "no lines",
            };
            return Err((found.to_owned(), "at least one row".to_owned()));
        }
        Ok(Self { data: table.data.into(), ends: table.ends.into(), columns: columns.len(), rows: table.rows })
    }

    #[inline]
    pub(crate) fn cell(&self, row: u32, column: usize) -> &[u8] {
        let at = row as usize * self.columns + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.data[start as usize..self.ends[at] as usize]
    }
}

#[derive(Default)]
struct Builder {
    data: Vec<u8>,
    ends: Vec<u32>,
    rows: u32,
}

impl Builder {
    fn read_csv(&mut self, content: &[u8], columns: &[String]) -> Result<(), Wrong> {
        let expected = || "CSV, each line with as many values as the first (RFC 4180)".to_owned();
        let mut reader = csv::Reader::from_reader(content);
        let names = reader.byte_headers().map_err(|error| (error.to_string(), expected()))?.clone();
        let places = columns
            .iter()
            .map(|column| {
                let place = names.iter().position(|name| name == column.as_bytes());
                place.ok_or_else(|| {
                    let known: Vec<_> = names.iter().map(String::from_utf8_lossy).collect();
                    (format!("no column {column:?}"), format!("one of: {}", known.join(", ")))
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut record = csv::ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(|error| (error.to_string(), expected()))? {
            for &place in &places {
                self.data.extend_from_slice(&record[place]);
                self.end_cell()?;
            }
            self.rows += 1;
        }
        Ok(())
    }

    fn read_json_lines(&mut self, content: &[u8], fields: &[String]) -> Result<(), Wrong> {
        let pointers = fields
            .iter()
            .map(|field| {
                if !field.starts_with('/') {
                    return Ok(Pointer::of_key(field));
                }
                Pointer::parse(field).ok_or_else(|| (format!("{field:?}"), "a JSON pointer or a key".to_owned()))
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (index, line) in content.split(|&byte| byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let number = index + 1;
            // The scanner does not validate the values that it skips, but a broken line is an error.
            serde_json::from_slice::<serde_json::Value>(line)
                .map_err(|error| (format!("line {number}: {error}"), "a JSON value on every line".to_owned()))?;
            for (pointer, field) in pointers.iter().zip(fields) {
                let missing = || (format!("line {number} without {field:?}"), "that value on every line".to_owned());
                let value = json::find(line, pointer).ok().flatten().ok_or_else(missing)?;
                json::append_content(value, &mut self.data).map_err(|_| missing())?;
                self.end_cell()?;
            }
            self.rows += 1;
        }
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), Wrong> {
        let end =
            u32::try_from(self.data.len()).map_err(|_| ("values of more than 4 GiB".to_owned(), "less".to_owned()))?;
        self.ends.push(end);
        Ok(())
    }
}

/// One thread's rows of a feeder.
#[derive(Debug)]
pub(crate) struct Deck {
    mode: FeederMode,
    at_end: AtEnd,
    shard: Shard,
    /// Number of this thread's rows.
    own: u64,
    /// Number of rows drawn in this round.
    given: u64,
    /// If rows are shuffled: the drawn rows of this round, then the rest in any order.
    order: Vec<u32>,
}

impl Deck {
    /// Returns `None` if there are fewer rows than threads.
    pub(crate) fn new(rows: u32, mode: FeederMode, at_end: AtEnd, shard: Shard) -> Option<Self> {
        let own = shard.count(u64::from(rows));
        if own == 0 {
            return None;
        }
        let order = match mode {
            FeederMode::Shuffled => (0..own).map(|at| shard.index(at) as u32).collect(),
            FeederMode::Sequential | FeederMode::Random => Vec::new(),
        };
        Some(Self { mode, at_end, shard, own, given: 0, order })
    }

    /// Returns whether all rows were drawn and rows are not repeated.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.given == self.own && self.at_end == AtEnd::Stop
    }

    /// Returns the next row, `None` if all were drawn and rows are not repeated.
    #[inline]
    pub(crate) fn draw(&mut self, random: &mut Random) -> Option<u32> {
        if self.given == self.own {
            if self.at_end == AtEnd::Stop {
                return None;
            }
            self.given = 0;
        }
        let at = self.given;
        self.given += 1;
        Some(match self.mode {
            FeederMode::Sequential => self.shard.index(at) as u32,
            FeederMode::Random => self.shard.index(random.below(self.own)) as u32,
            FeederMode::Shuffled => {
                // One step of a Fisher-Yates shuffle for each row, instead of all steps when a round begins.
                let other = at + random.below(self.own - at);
                self.order.swap(at as usize, other as usize);
                self.order[at as usize]
            }
        })
    }
}

#[cfg(test)]
mod tests;

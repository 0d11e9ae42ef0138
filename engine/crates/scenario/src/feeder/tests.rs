#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn cells(table: &Table) -> Vec<Vec<String>> {
    let text = |row, column| String::from_utf8(table.cell(row, column).to_vec()).unwrap();
    (0..table.rows).map(|row| (0..table.columns).map(|column| text(row, column)).collect()).collect()
}

fn csv(content: &str, columns: &[&str]) -> Result<Vec<Vec<String>>, Wrong> {
    Table::read(FeederFormat::Csv, content.as_bytes(), &names(columns)).map(|table| cells(&table))
}

fn json_lines(content: &str, fields: &[&str]) -> Result<Vec<Vec<String>>, Wrong> {
    Table::read(FeederFormat::JsonLines, content.as_bytes(), &names(fields)).map(|table| cells(&table))
}

fn drawn(rows: u32, mode: FeederMode, at_end: AtEnd, shard: Shard, count: usize) -> Vec<Option<u32>> {
    let mut deck = Deck::new(rows, mode, at_end, shard).unwrap();
    let mut random = Random::new(1, 2);
    (0..count).map(|_| deck.draw(&mut random)).collect()
}

#[test]
fn a_csv_file_gives_the_columns_that_are_asked_for_in_any_order() {
    let content = "\u{feff}id,name,empty\r\n1,\"Smith, \"\"J\"\"\",\r\n2,Zoë,\r\n";
    assert_eq!(csv(content, &["name", "id", "empty"]).unwrap(), [["Smith, \"J\"", "1", ""], ["Zoë", "2", ""]]);
}

#[test]
fn a_json_lines_file_gives_keys_and_pointers() {
    let content = "{\"id\": 1, \"a\": {\"b\": [\"x\\n\"]}}\n\n{\"a\": {\"b\": [true]}, \"id\": \"two\"}";
    assert_eq!(json_lines(content, &["id", "/a/b/0"]).unwrap(), [["1", "x\n"], ["two", "true"]]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    assert_eq!(
        csv("id,name\n1,a\n", &["nme"]).unwrap_err(),
        ("no column \"nme\"".to_owned(), "one of: id, name".to_owned())
    );
    assert!(csv("id,name\n1\n", &["id"]).unwrap_err().0.contains("line: 2"), "{:?}", csv("id,name\n1\n", &["id"]));
    assert!(csv("id,name\n", &["id"]).unwrap_err().0.starts_with("no rows"));
    assert!(csv("", &[]).unwrap_err().0.starts_with("no rows"));
    assert!(json_lines("{\"a\": 1}\n{\"b\": 1}\n", &["a"]).unwrap_err().0.starts_with("line 2 without \"a\""));
    assert!(json_lines("{\"a\": 1}\n{\"a\": 1\n", &["a"]).unwrap_err().0.starts_with("line 2: "));
    assert!(json_lines("\n", &["a"]).unwrap_err().0.starts_with("no lines"));
    assert!(json_lines("{\"a\": 1}", &["/~"]).unwrap_err().1.contains("JSON pointer"));
}

#[test]
fn rows_in_sequence_begin_again_or_end() {
    let sequential = |at_end| drawn(3, FeederMode::Sequential, at_end, Shard::WHOLE, 5);
    assert_eq!(sequential(AtEnd::Wrap), [0, 1, 2, 0, 1].map(Some));
    assert_eq!(sequential(AtEnd::Stop), [Some(0), Some(1), Some(2), None, None]);
}

#[test]
fn a_thread_without_a_row_has_no_deck() {
    let shard = Shard::new(2, 3).unwrap();
    assert!(Deck::new(2, FeederMode::Random, AtEnd::Wrap, shard).is_none());
    assert!(Deck::new(3, FeederMode::Random, AtEnd::Wrap, shard).is_some());
}

#[test]
fn random_rows_come_back_and_all_of_them_come() {
    let mut rows = drawn(10, FeederMode::Random, AtEnd::Wrap, Shard::WHOLE, 200);
    assert_ne!(rows[..10], drawn(10, FeederMode::Sequential, AtEnd::Wrap, Shard::WHOLE, 10));
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), 10);
}

proptest! {
    #[test]
    fn shuffled_rows_come_once_each_time_around(rows in 1_u32..200, times in 1_usize..4) {
        let drawn = drawn(rows, FeederMode::Shuffled, AtEnd::Wrap, Shard::WHOLE, rows as usize * times);
        for around in drawn.chunks(rows as usize) {
            let mut around: Vec<u32> = around.iter().map(|row| row.unwrap()).collect();
            around.sort_unstable();
            prop_assert_eq!(around, (0..rows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_row_goes_to_two_threads_and_none_is_left_out(rows in 8_u32..300, threads in 1_u64..8, shuffled in any::<bool>()) {
        let mode = if shuffled { FeederMode::Shuffled } else { FeederMode::Sequential };
        let mut all = Vec::new();
        for k in 0..threads {
            let shard = Shard::new(k, threads).unwrap();
            let own = drawn(rows, mode, AtEnd::Stop, shard, rows as usize + 1);
            all.extend(own.into_iter().flatten());
        }
        all.sort_unstable();
        prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
    }

    #[test]
    fn random_rows_are_the_threads_own(rows in 8_u32..300, threads in 1_u64..8) {
        for k in 0..threads {
            let own = drawn(rows, FeederMode::Random, AtEnd::Wrap, Shard::new(k, threads).unwrap(), 50);
            prop_assert!(own.into_iter().flatten().all(|row| u64::from(row) % threads == k));
        }
    }
}

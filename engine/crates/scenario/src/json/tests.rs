#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn found(document: &str, pointer: &str) -> Result<Option<String>, Malformed> {
    let found = find(document.as_bytes(), &Pointer::parse(pointer).unwrap())?;
    Ok(found.map(|text| String::from_utf8(text.to_vec()).unwrap()))
}

fn content(text: &str) -> Result<String, Malformed> {
    let mut out = Vec::new();
    append_content(text.as_bytes(), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// Keys that pointers escape, that look like indices, that are empty, and any others.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("a/b".to_owned()),
        Just("~".to_owned()),
        Just("0".to_owned()),
        Just("01".to_owned()),
        "[a-c]",
        ".{0,6}",
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(Value::from("\"\\\n\u{0}\u{7f}é😀")),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Every pointer into a tree, with the value it names.
fn pointers<'a>(tree: &'a Value, at: String, into: &mut Vec<(String, &'a Value)>) {
    match tree {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| pointers(item, format!("{at}/{index}"), into))
        }
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            let token = key.replace('~', "~0").replace('/', "~1");
            pointers(value, format!("{at}/{token}"), into);
        }),
        _ => {}
    }
    into.push((at, tree));
}

/// The tree as text in which every character of every string is an escape.
fn escaped(tree: &Value) -> String {
    let string = |text: &str| {
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("\"{units}\"")
    };
    match tree {
        Value::String(text) => string(text),
        Value::Array(items) => {
            format!("[ {} ]", items.iter().map(escaped).collect::<Vec<_>>().join(" , "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}\t:\r\n{}", string(key), escaped(value))).collect();
            format!("{{ {} }}", members.join(" , "))
        }
        scalar => scalar.to_string(),
    }
}

proptest! {
    #[test]
    fn every_value_of_every_tree_is_found_and_equal_to_itself(tree in tree()) {
        let mut all = Vec::new();
        pointers(&tree, String::new(), &mut all);
        let forms = [tree.to_string(), serde_json::to_string_pretty(&tree).unwrap(), escaped(&tree)];
        for form in &forms {
            for (pointer, expected) in &all {
                prop_assert_eq!(tree.pointer(pointer), Some(*expected));
                let text = find(form.as_bytes(), &Pointer::parse(pointer).unwrap()).unwrap().unwrap();
                prop_assert_eq!(&serde_json::from_slice::<Value>(text).unwrap(), *expected);
                prop_assert_eq!(equals(text, expected), Ok(true));
                if let Value::String(expected) = expected {
                    let mut out = Vec::new();
                    append_content(text, &mut out).unwrap();
                    prop_assert_eq!(out, expected.as_bytes());
                }
            }
        }
    }

    #[test]
    fn what_serde_json_does_not_find_is_not_found(tree in tree(), pointer in "(/([a-c]|[0-9]{1,2}|~0|~1|-)?){0,4}") {
        let text = tree.to_string();
        let found = find(text.as_bytes(), &Pointer::parse(&pointer).unwrap()).unwrap();
        prop_assert_eq!(found.is_some(), tree.pointer(&pointer).is_some());
    }

    #[test]
    fn two_trees_are_equal_when_serde_json_says_so(left in tree(), right in tree()) {
        prop_assert_eq!(equals(left.to_string().as_bytes(), &right), Ok(left == right));
        prop_assert_eq!(equals(escaped(&left).as_bytes(), &right), Ok(left == right));
    }

    #[test]
    fn a_document_cut_anywhere_gives_the_value_or_an_error_and_never_another_one(tree in tree(), cut in any::<prop::sample::Index>()) {
        let text = tree.to_string();
        let cut = &text.as_bytes()[..cut.index(text.len())];
        let mut all = Vec::new();
        pointers(&tree, String::new(), &mut all);
        for (pointer, expected) in all {
            match find(cut, &Pointer::parse(&pointer).unwrap()) {
                // A number at the very end may have lost digits: the caller knows that the document was cut.
                Ok(Some(value)) if value.as_ptr_range().end == cut.as_ptr_range().end => {}
                Ok(Some(value)) => prop_assert_eq!(equals(value, expected), Ok(true)),
                Ok(None) => prop_assert!(false, "{} is not found in a part of {}", pointer, text),
                Err(Malformed) => {}
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        differential(&bytes);
    }

    #[test]
    fn bytes_that_look_like_json_are_read_without_a_panic(text in r#"(/[a0~1]){0,3}\n[\[\]{}",:\\a0-9u. tnrfe-]{0,60}"#) {
        differential(text.as_bytes());
    }
}

#[test]
fn a_pointer_escapes_what_it_must() {
    let document = r#"{"a/b": {"m~n": 1, "": 2}, "~1": 3}"#;
    assert_eq!(found(document, "/a~1b/m~0n"), Ok(Some("1".to_owned())));
    assert_eq!(found(document, "/a~1b/"), Ok(Some("2".to_owned())));
    assert_eq!(found(document, "/~01"), Ok(Some("3".to_owned())));
    for wrong in ["a", "#/a", "/~", "/~2"] {
        assert_eq!(Pointer::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn an_index_has_no_leading_zero_and_a_key_may() {
    assert_eq!(found("[10, 11]", "/1"), Ok(Some("11".to_owned())));
    assert_eq!(found("[10, 11]", "/01"), Ok(None));
    assert_eq!(found("[10, 11]", "/-"), Ok(None));
    assert_eq!(found(r#"{"01": 5}"#, "/01"), Ok(Some("5".to_owned())));
}

#[test]
fn text_that_is_not_json_is_malformed() {
    for wrong in [
        "",
        "  ",
        "nul",
        "<html>",
        "{",
        "[1 2",
        "[1 2]",
        r#"{"a" 1}"#,
        r#"{a: 1}"#,
        r#""abc"#,
        "01",
        "1.",
        "-",
        "1e",
        "+1",
        r#"{"a": 1"#,
    ] {
        let at_end = found(wrong, "/nothing").is_err() || found(wrong, "").is_err() || found(wrong, "/1").is_err();
        assert!(at_end, "{wrong}");
    }
}

#[test]
fn a_document_nested_a_million_deep_is_passed_over_without_recursion() {
    let deep = format!("[{}{}, 7]", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(found(&deep, "/1"), Ok(Some("7".to_owned())));
}

#[test]
fn numbers_are_equal_however_they_are_written() {
    for same in ["1", "1.0", "1e0", "10e-1"] {
        assert_eq!(equals(same.as_bytes(), &json!(1)), Ok(true), "{same}");
    }
    assert_eq!(equals(b"18446744073709551615", &json!(u64::MAX)), Ok(true));
    assert_eq!(equals(b"9007199254740993", &json!(9_007_199_254_740_992_u64)), Ok(false));
    assert_eq!(equals(b"1", &json!(true)), Ok(false));
    assert_eq!(equals(b"\"1\"", &json!(1)), Ok(false));
}

#[test]
fn an_object_with_a_member_more_or_less_is_another_one() {
    let expected = json!({"a": 1, "b": [2]});
    assert_eq!(equals(br#"{"b": [2], "a": 1}"#, &expected), Ok(true));
    assert_eq!(equals(br#"{"b": [2]}"#, &expected), Ok(false));
    assert_eq!(equals(br#"{"b": [2], "a": 1, "c": 0}"#, &expected), Ok(false));
    assert_eq!(equals(br#"{"b": [2, 3], "a": 1}"#, &expected), Ok(false));
    assert_eq!(equals(br#"{"b": [], "a": 1}"#, &expected), Ok(false));
}

#[test]
fn a_string_gives_its_content_and_any_other_value_its_json() {
    assert_eq!(content(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#), Ok("a\"\\/\u{8}\u{c}\n\r\té😀".to_owned()));
    assert_eq!(content(r#"{"a": "b"}"#), Ok(r#"{"a": "b"}"#.to_owned()));
    assert_eq!(content("true"), Ok("true".to_owned()));
    for wrong in [r#""\x""#, r#""\u12""#, r#""\ud83d""#, r#""\ud83dx""#, r#""\ud83d\u0041""#, r#""\udc00""#] {
        assert_eq!(content(wrong), Err(Malformed), "{wrong}");
    }
}

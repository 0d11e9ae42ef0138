//! Templates: text with placeholders in double braces.
//!
//! Workloads have the same grammar (`src/weir/model/template.py`); `tests/data/templates.json` tests both. A
//! placeholder begins with `{{`, ends with the next `}}` and has no brace inside, so that JSON may surround it:
//! `{"id":{{seq}}}`.

/// The longest random word.
const MAX_WORD: u32 = 1 << 20;
/// Names of placeholders, which variables cannot have.
const KEYWORDS: [&str; 6] = ["seq", "uuid", "int", "word", "csv", "json"];

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// The text itself.
    Text(&'a str),
    /// The number of the request in the load, from 0.
    Seq,
    /// A random UUID (version 4).
    Uuid,
    /// A random number from the first to the second.
    Int(i64, i64),
    /// So many random letters.
    Word(u32),
    /// A column of a CSV feeder.
    Csv { feeder: &'a str, column: &'a str },
    /// A key, or a JSON pointer, of a JSON lines feeder.
    Json { feeder: &'a str, field: &'a str },
    /// A variable that a step has extracted.
    Variable(&'a str),
}

/// An error in a template: what was found, and what was expected.
pub(crate) type Wrong = (String, String);

/// Splits a template into parts.
pub(crate) fn parse(text: &str) -> Result<Vec<Piece<'_>>, Wrong> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = next_start(rest) {
        if start > 0 {
            pieces.push(Piece::Text(&rest[..start]));
        }
        let inside = &rest[start + 2..];
        let end = inside.find(['{', '}']).unwrap_or(inside.len());
        if !inside[end..].starts_with("}}") {
            let shown: String = rest[start..].chars().take(40).collect();
            return Err((format!("{shown:?}"), "}} after {{, without braces between them".to_owned()));
        }
        pieces.push(placeholder(inside[..end].trim())?);
        rest = &inside[end + 2..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Returns where the next placeholder begins. The first of three braces in a row is text.
fn next_start(text: &str) -> Option<usize> {
    let start = text.find("{{")?;
    let braces = text[start..].bytes().take_while(|&byte| byte == b'{').count();
    Some(start + braces - 2)
}

fn placeholder(inside: &str) -> Result<Piece<'_>, Wrong> {
    let (keyword, rest) = match inside.split_once(char::is_whitespace) {
        Some((keyword, rest)) => (keyword, rest.trim()),
        None => (inside, ""),
    };
    let found = || format!("{{{{{inside}}}}}");
    let wrong = |expected: &str| Err((found(), expected.to_owned()));
    match keyword {
        "seq" if rest.is_empty() => Ok(Piece::Seq),
        "uuid" if rest.is_empty() => Ok(Piece::Uuid),
        "int" => {
            let bounds: Vec<i64> = rest.split_whitespace().filter_map(integer).collect();
            match bounds[..] {
                [low, high] if low <= high && rest.split_whitespace().count() == 2 => Ok(Piece::Int(low, high)),
                _ => wrong("{{int LOW HIGH}}, two whole numbers of at most 64 bits, LOW not above HIGH"),
            }
        }
        "word" => match integer(rest).and_then(|length| u32::try_from(length).ok()) {
            Some(length @ 1..=MAX_WORD) => Ok(Piece::Word(length)),
            _ => wrong("{{word LENGTH}}, a length from 1 to 1048576"),
        },
        "csv" => match rest.split_once('.') {
            Some((feeder, column)) if !feeder.is_empty() && !column.is_empty() => Ok(Piece::Csv { feeder, column }),
            _ => wrong("{{csv FEEDER.COLUMN}}"),
        },
        "json" => match rest.split_once('.') {
            Some((feeder, field)) if !feeder.is_empty() && !field.is_empty() => Ok(Piece::Json { feeder, field }),
            _ => wrong("{{json FEEDER.KEY}} or {{json FEEDER./JSON/POINTER}}"),
        },
        variable if rest.is_empty() && is_variable(variable) => Ok(Piece::Variable(variable)),
        _ => wrong(
            "{{seq}}, {{uuid}}, {{int LOW HIGH}}, {{word LENGTH}}, {{csv FEEDER.COLUMN}}, {{json FEEDER.KEY}} or {{VARIABLE}}",
        ),
    }
}

/// Returns whether a text is an integer: digits, with or without a minus sign.
fn integer(text: &str) -> Option<i64> {
    (!text.starts_with('+')).then(|| text.parse().ok()).flatten()
}

/// Returns whether a variable may have this name.
pub(crate) fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !KEYWORDS.contains(&name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_and_placeholders_come_in_their_order() {
        assert_eq!(
            parse("/a/{{ int  -1\t20 }}/{{csv users.first name}}?n={{seq}}").unwrap(),
            [
                Piece::Text("/a/"),
                Piece::Int(-1, 20),
                Piece::Text("/"),
                Piece::Csv { feeder: "users", column: "first name" },
                Piece::Text("?n="),
                Piece::Seq,
            ]
        );
        assert_eq!(
            parse("{{json orders./lines/0/id}}{{token}}").unwrap(),
            [Piece::Json { feeder: "orders", field: "/lines/0/id" }, Piece::Variable("token")]
        );
    }

    #[test]
    fn braces_of_json_around_a_placeholder_are_text() {
        assert_eq!(
            parse(r#"{"a":{"b":{{seq}}}}"#).unwrap(),
            [Piece::Text(r#"{"a":{"b":"#), Piece::Seq, Piece::Text("}}")]
        );
        assert_eq!(parse("{{{seq}}}").unwrap(), [Piece::Text("{"), Piece::Seq, Piece::Text("}")]);
        assert_eq!(parse(r#"{"a":{}}"#).unwrap(), [Piece::Text(r#"{"a":{}}"#)]);
    }

    #[test]
    fn workloads_and_scenarios_agree_on_what_a_template_is() {
        let data: serde_json::Value =
            serde_json::from_str(include_str!("../../../../tests/data/templates.json")).unwrap();
        let texts = |key: &str| -> Vec<String> { serde_json::from_value(data[key].clone()).unwrap() };
        for text in texts("valid") {
            assert!(parse(&text).is_ok(), "{text}: {:?}", parse(&text));
        }
        for text in texts("wrong") {
            assert!(parse(&text).is_err(), "{text}: {:?}", parse(&text));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_placeholder() {
        let (found, expected) = parse("/a/{{int 5 1}}").unwrap_err();
        assert_eq!(found, "{{int 5 1}}");
        assert!(expected.starts_with("{{int LOW HIGH}}"));
        assert_eq!(parse("/{{seq").unwrap_err().0, "\"{{seq\"");
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "([{}a-z0-9 .é-]|\\{\\{|\\}\\}|int |word |csv ){0,30}") {
            if let Ok(pieces) = parse(&text) {
                let texts: usize = pieces.iter().map(|piece| match piece {
                    Piece::Text(text) => text.len(),
                    _ => 0,
                }).sum();
                prop_assert!(texts <= text.len());
            }
        }
    }
}

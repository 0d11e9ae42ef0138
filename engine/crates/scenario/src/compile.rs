//! From a scenario as the plan says it to one that is ready to run, and everything that can be wrong on the way.

use std::collections::BTreeMap;

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};
use weir_plan::scenario::{Cookies, Extract, Scenario, Step, StepCheck};
use weir_plan::{Method, Think};

use crate::bind::Binder;
use crate::check::{Check, Extraction, JsonCheck, Source};
use crate::compiled::{Capture, Compiled, CompiledFeeder, CompiledStep, End, Needs, Order, Pause};
use crate::feeder::Table;
use crate::json::Pointer;
use crate::render::{Part, Place};
use crate::{ScenarioError, template};

/// The most steps or requests of a scenario.
const MAX_STEPS: usize = 10_000;
/// The most bytes of a body that may be kept for each user.
const MAX_CAPTURE_BYTES: usize = 64 * 1024 * 1024;

/// What all requests of a load have in common.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// What `Host` says unless a step says it.
    pub authority: &'a str,
    /// Comes before every path that is not extracted; without a slash at its end.
    pub path_prefix: &'a str,
    /// Whether another request may follow on the connection; if not, requests say so.
    pub keep_alive: bool,
    /// The statuses that are right where a step does not say; none: every status below 400.
    pub right_statuses: Option<&'a [u16]>,
}

/// Makes a scenario ready to run: reads the feeders' contents, given by name, and renders all that is constant.
///
/// # Errors
/// The first thing that is wrong with the scenario. Nothing can be wrong with it later, but for fewer rows than threads
/// ([`Compiled::worker`]).
pub fn compile(
    spec: &Scenario,
    contents: &BTreeMap<String, Vec<u8>>,
    base: &Base<'_>,
) -> Result<Compiled, ScenarioError> {
    let (list, steps, is_ordered) = match (&spec.steps[..], &spec.requests[..]) {
        ([], []) => {
            return Err(ScenarioError::new(
                "steps",
                "nothing",
                "at least one step, or requests instead",
            ));
        }
        (steps, []) => ("steps", steps, true),
        ([], requests) => ("requests", requests, false),
        _ => {
            return Err(ScenarioError::new(
                "requests",
                "steps and requests",
                "one of the two",
            ));
        }
    };
    if steps.len() > MAX_STEPS {
        return Err(ScenarioError::new(
            list,
            format_args!("{} of them", steps.len()),
            format_args!("at most {MAX_STEPS}"),
        ));
    }
    if !(1..=MAX_CAPTURE_BYTES).contains(&spec.capture_bytes) {
        return Err(ScenarioError::new(
            "capture_bytes",
            spec.capture_bytes,
            format_args!("a number from 1 to {MAX_CAPTURE_BYTES}"),
        ));
    }
    let mut compiler = Compiler {
        base,
        binder: Binder::new(&spec.feeders, is_ordered),
        regexes: Vec::new(),
        cookies: spec.cookies,
        capture_bytes: spec.capture_bytes,
    };
    let mut compiled = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        compiled.push(compiler.step(&format!("{list}[{index}]"), step)?);
    }
    name_apart(list, steps, &mut compiled)?;
    let order = if is_ordered {
        Order::Steps
    } else {
        Order::Weights(sums(steps)?)
    };
    let Compiler {
        binder, regexes, ..
    } = compiler;
    let feeders = binder.feeders.iter().map(|feeder| {
        let wrong = |(found, expected)| {
            ScenarioError::new(
                format_args!("feeders.{}.file", feeder.name),
                format_args!("{} with {found}", feeder.spec.file),
                expected,
            )
        };
        let content = contents
            .get(feeder.name)
            .ok_or_else(|| wrong(("no content".to_owned(), "a file that was read".to_owned())))?;
        Ok(CompiledFeeder {
            name: feeder.name.to_owned(),
            table: Table::read(feeder.spec.format, content, &feeder.columns).map_err(wrong)?,
            mode: feeder.spec.mode,
            at_end: feeder.spec.at_end,
        })
    });
    Ok(Compiled {
        feeders: feeders.collect::<Result<_, _>>()?,
        steps: compiled.into(),
        order,
        variables: binder.variables.len(),
        cookies: spec.cookies,
        regexes: regexes.into(),
        capture_bytes: spec.capture_bytes,
    })
}

struct Compiler<'a> {
    base: &'a Base<'a>,
    binder: Binder<'a>,
    regexes: Vec<Regex>,
    cookies: Cookies,
    capture_bytes: usize,
}

impl Compiler<'_> {
    fn step(&mut self, key: &str, step: &Step) -> Result<CompiledStep, ScenarioError> {
        let is_ordered = self.binder.is_ordered;
        if is_ordered && step.weight.is_some() {
            return Err(ScenarioError::new(
                format_args!("{key}.weight"),
                "a weight",
                "none: steps are done in order; use requests",
            ));
        }
        if !is_ordered && !step.extract.is_empty() {
            return Err(ScenarioError::new(
                format_args!("{key}.extract"),
                "a variable",
                "none: requests have no order; use steps",
            ));
        }
        let (start, path_at, path) = self.path(&format!("{key}.path"), step)?;
        let (headers, has_cookies) = self.headers(&format!("{key}.headers"), step)?;
        let end = self.end(&format!("{key}.body"), step)?;
        let mut constant = Some(start.clone());
        let mut feeders = Vec::new();
        let body = match &end {
            End::Constant(bytes) => {
                append_constant(&mut constant, &path);
                append_constant(&mut constant, &headers);
                append_constant(&mut constant, &[Part::Literal(bytes.clone())]);
                &[][..]
            }
            End::Body(parts) => {
                constant = None;
                parts
            }
        };
        for part in path.iter().chain(&headers).chain(body) {
            if let Part::Cell { feeder, .. } = part {
                if !feeders.contains(feeder) {
                    feeders.push(*feeder);
                }
            }
        }
        let check = check(&format!("{key}.check"), &step.check, self.base)?;
        let extract = step
            .extract
            .iter()
            .map(|(name, extract)| self.extraction(&format!("{key}.extract.{name}"), name, extract))
            .collect::<Result<Box<[_]>, _>>()?;
        let reads_header = extract
            .iter()
            .any(|one| matches!(one.source, Source::Header(_)));
        let reads_body = check.equals.is_some()
            || check.contains.is_some()
            || !check.json.is_empty()
            || extract
                .iter()
                .any(|one| !matches!(one.source, Source::Header(_)));
        let needs = Needs {
            head: reads_header || self.cookies != Cookies::Off,
            body: if reads_body {
                Capture::UpTo(self.capture_bytes)
            } else if check.max_body_bytes.is_some() {
                Capture::Length
            } else {
                Capture::Nothing
            },
        };
        Ok(CompiledStep {
            name: step
                .name
                .clone()
                .unwrap_or_else(|| format!("{} {}", step.method.as_str(), step.path)),
            start: start.into(),
            path_at,
            path: path.into(),
            headers: headers.into(),
            has_cookies: has_cookies && self.cookies != Cookies::Off,
            end,
            feeders: feeders.into(),
            constant: constant.map(Into::into),
            think: step.think.map(think),
            check,
            extract,
            needs,
        })
    }

    /// The beginning of the request line, where in it the path begins, and the rest of the path.
    fn path(
        &mut self,
        key: &str,
        step: &Step,
    ) -> Result<(Vec<u8>, usize, Vec<Part>), ScenarioError> {
        let text = &step.path;
        let expected =
            "a path that begins with / or a variable, without spaces but in placeholders";
        let wrong = || ScenarioError::new(key, format_args!("{text:?}"), expected);
        let pieces = template::parse(text)
            .map_err(|(found, expected)| ScenarioError::new(key, found, expected))?;
        for (index, piece) in pieces.iter().enumerate() {
            let is_right = match piece {
                template::Piece::Text(text) => {
                    (index > 0 || text.starts_with('/'))
                        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
                }
                template::Piece::Variable(_)
                | template::Piece::Csv { .. }
                | template::Piece::Json { .. } => true,
                _ => index > 0,
            };
            if !is_right {
                return Err(wrong());
            }
        }
        if pieces.is_empty() {
            return Err(wrong());
        }
        let mut parts = self.binder.bind(key, text, Place::Path)?;
        let mut start = format!("{} ", step.method.as_str()).into_bytes();
        let path_at = start.len();
        if let Some(Part::Literal(_)) = parts.first() {
            start.extend_from_slice(self.base.path_prefix.as_bytes());
            if let Part::Literal(text) = parts.remove(0) {
                start.extend_from_slice(&text);
            }
        }
        Ok((start, path_at, parts))
    }

    /// What follows the path, and whether the jar's cookies are sent.
    fn headers(&mut self, key: &str, step: &Step) -> Result<(Vec<Part>, bool), ScenarioError> {
        let has = |wanted: &str| {
            step.headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        let mut parts = vec![literal(" HTTP/1.1\r\n")];
        if !has("host") {
            parts.push(literal(&format!("Host: {}\r\n", self.base.authority)));
        }
        if !self.base.keep_alive && !has("connection") {
            parts.push(literal("Connection: close\r\n"));
        }
        for (name, value) in &step.headers {
            check_header(key, name, value)?;
            parts.push(literal(&format!("{name}: ")));
            parts.extend(
                self.binder
                    .bind(&format!("{key}.{name}"), value, Place::Header)?,
            );
            parts.push(literal("\r\n"));
        }
        Ok((merged(parts), !has("cookie")))
    }

    fn end(&mut self, key: &str, step: &Step) -> Result<End, ScenarioError> {
        let Some(body) = &step.body else {
            // RFC 9110, section 8.6: a method that anticipates a body says its length even when there is none.
            let wants_length = matches!(step.method, Method::Post | Method::Put | Method::Patch);
            let end: &[u8] = if wants_length {
                b"Content-Length: 0\r\n\r\n"
            } else {
                b"\r\n"
            };
            return Ok(End::Constant(end.into()));
        };
        let parts = merged(self.binder.bind(key, body, Place::Body)?);
        Ok(match &parts[..] {
            [] => End::Constant((*b"Content-Length: 0\r\n\r\n").into()),
            [Part::Literal(body)] => {
                let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
                bytes.extend_from_slice(body);
                End::Constant(bytes.into())
            }
            _ => End::Body(parts.into()),
        })
    }

    fn extraction(
        &mut self,
        key: &str,
        name: &str,
        extract: &Extract,
    ) -> Result<Extraction, ScenarioError> {
        if !template::is_variable(name) {
            return Err(ScenarioError::new(
                key,
                format_args!("the name {name:?}"),
                "letters, digits and _, no digit first, and no placeholder's name",
            ));
        }
        let source = match extract {
            Extract::Json(text) => Source::Json(pointer(&format!("{key}.json"), text)?),
            Extract::Header(name) if is_token(name) => Source::Header(name.clone()),
            Extract::Header(name) => {
                return Err(ScenarioError::new(
                    format_args!("{key}.header"),
                    format_args!("{name:?}"),
                    "the name of a header",
                ));
            }
            Extract::Regex(text) => {
                let built = RegexBuilder::new(text).unicode(false).build();
                let regex = built.map_err(|error| {
                    ScenarioError::new(
                        format_args!("{key}.regex"),
                        format_args!("{text:?}: {}", last_line(&error.to_string())),
                        "a regular expression (the syntax of Rust's regex)",
                    )
                })?;
                self.regexes.push(regex.clone());
                Source::Regex {
                    regex,
                    locations: self.regexes.len() - 1,
                }
            }
        };
        Ok(Extraction {
            name: name.to_owned(),
            variable: self.binder.add_variable(name),
            source,
        })
    }
}

fn literal(text: &str) -> Part {
    Part::Literal(text.as_bytes().into())
}

/// The same parts with neighbouring text in one.
fn merged(parts: Vec<Part>) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (merged.last_mut(), part) {
            (Some(Part::Literal(before)), Part::Literal(text)) => {
                *before = [&before[..], &text].concat().into();
            }
            (_, part) => merged.push(part),
        }
    }
    merged
}

/// Appends parts to what is constant so far; nothing is left of it if one of them is not.
fn append_constant(constant: &mut Option<Vec<u8>>, parts: &[Part]) {
    for part in parts {
        match (constant.as_mut(), part) {
            (Some(bytes), Part::Literal(text)) => bytes.extend_from_slice(text),
            _ => *constant = None,
        }
    }
}

fn check_header(key: &str, name: &str, value: &str) -> Result<(), ScenarioError> {
    if !is_token(name) {
        return Err(ScenarioError::new(
            key,
            format_args!("the name {name:?}"),
            "letters, digits and !#$%&'*+-.^_`|~",
        ));
    }
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(ScenarioError::new(
            key,
            format_args!("the value {value:?} of {name}"),
            "a value of one line",
        ));
    }
    if ["transfer-encoding", "content-length"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
    {
        return Err(ScenarioError::new(
            key,
            format_args!("the name {name:?}"),
            "no such header: the body is sent with its Content-Length",
        ));
    }
    Ok(())
}

/// RFC 9110, section 5.6.2.
fn is_token(name: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token_byte)
}

fn pointer(key: &str, text: &str) -> Result<Pointer, ScenarioError> {
    Pointer::parse(text).ok_or_else(|| {
        ScenarioError::new(
            key,
            format_args!("{text:?}"),
            "a JSON pointer, \"/a/0/b\" or \"\" for all of the body",
        )
    })
}

fn check(key: &str, check: &StepCheck, base: &Base<'_>) -> Result<Check, ScenarioError> {
    if let Some(statuses) = &check.status {
        let wrong = statuses
            .iter()
            .find(|status| !(200..=599).contains(*status));
        let found = match wrong {
            Some(status) => Some(status.to_string()),
            None => statuses.is_empty().then(|| "[]".to_owned()),
        };
        if let Some(found) = found {
            return Err(ScenarioError::new(
                format_args!("{key}.status"),
                found,
                "statuses from 200 to 599, at least one",
            ));
        }
    }
    let json = check.json.iter().map(|(text, expected)| {
        Ok(JsonCheck {
            text: text.clone(),
            pointer: pointer(&format!("{key}.json"), text)?,
            expected: expected.clone(),
        })
    });
    Ok(Check {
        status: check
            .status
            .as_deref()
            .or(base.right_statuses)
            .map(Into::into),
        max_body_bytes: check.max_body_bytes,
        equals: check
            .body_equals
            .as_ref()
            .map(|text| text.as_bytes().into()),
        contains: check
            .body_contains
            .as_ref()
            .map(|text| Finder::new(text).into_owned()),
        json: json.collect::<Result<_, _>>()?,
    })
}

/// A pause of a validated plan.
fn think(think: Think) -> Pause {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    match think {
        Think::ConstantS(time) => Pause::Constant(ns(time)),
        Think::UniformS(low, high) => Pause::Uniform {
            low: ns(low),
            count: ns(high - low) + 1,
        },
        Think::ExponentialS(mean) => Pause::Exponential { mean: mean * 1e9 },
    }
}

/// The sums of the weights up to each request.
fn sums(requests: &[Step]) -> Result<Box<[u64]>, ScenarioError> {
    let mut sum = 0;
    let sums = requests
        .iter()
        .enumerate()
        .map(|(index, request)| match request.weight {
            Some(0) => Err(ScenarioError::new(
                format_args!("requests[{index}].weight"),
                0,
                "a whole number from 1 on",
            )),
            weight => {
                sum += u64::from(weight.unwrap_or(1));
                Ok(sum)
            }
        });
    sums.collect()
}

/// Results are told apart by name: one that was given twice is an error, one that was not given gets a number.
fn name_apart(
    list: &str,
    steps: &[Step],
    compiled: &mut [CompiledStep],
) -> Result<(), ScenarioError> {
    for (index, step) in steps.iter().enumerate() {
        let (before, rest) = compiled.split_at_mut(index);
        let is_taken = |name: &str| before.iter().any(|other| other.name == name);
        let name = &mut rest[0].name;
        if !is_taken(name) {
            continue;
        }
        if step.name.is_some() {
            return Err(ScenarioError::new(
                format_args!("{list}[{index}].name"),
                format_args!("{name:?} again"),
                "another name",
            ));
        }
        let mut number = 2;
        while is_taken(&format!("{name} #{number}")) {
            number += 1;
        }
        *name = format!("{name} #{number}");
    }
    Ok(())
}

/// What is wrong with a regular expression; the lines before it draw where.
fn last_line(message: &str) -> &str {
    message
        .lines()
        .last()
        .unwrap_or(message)
        .trim_start_matches("error: ")
}

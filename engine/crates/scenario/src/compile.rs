//! Compiles the plan's scenario, and finds every error in it.

mod request;
mod response;

use std::collections::BTreeMap;

use regex::bytes::Regex;
use weir_http::RequestWriter;
use weir_plan::Think;
use weir_plan::scenario::{Cookies, Scenario, Step};

use self::request::{constant_request, takes_cookies};
use self::response::check;
use crate::ScenarioError;
use crate::bind::Binder;
use crate::check::Source;
use crate::compiled::{Capture, Compiled, CompiledFeeder, CompiledStep, Content, Needs, Order, Pause};
use crate::feeder::Table;
use crate::render::Part;

/// The most steps or requests of a scenario.
const MAX_STEPS: usize = 10_000;
/// The most bytes of a body that may be kept for each user.
const MAX_CAPTURE_BYTES: usize = 64 * 1024 * 1024;

/// The parts that all requests of a load share.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// Value of `Host` in steps that have none.
    pub authority: &'a str,
    /// Precedes every path that is not extracted. Has no slash at its end.
    pub path_prefix: &'a str,
    /// Whether a connection carries several requests. If not, requests have `Connection: close`.
    pub keep_alive: bool,
    /// The right statuses of steps that name none. `None`: every status below 400.
    pub right_statuses: Option<&'a [u16]>,
}

/// Compiles a scenario. Reads the feeders' contents, given by name, and renders the constant parts of requests.
///
/// # Errors
/// The first error in the scenario. Only [`Compiled::worker`] can find another: fewer rows than threads.
pub fn compile<W: RequestWriter>(
    spec: &Scenario,
    contents: &BTreeMap<String, Vec<u8>>,
    base: &Base<'_>,
) -> Result<Compiled, ScenarioError> {
    let (list, steps, is_ordered) = match (&spec.steps[..], &spec.requests[..]) {
        ([], []) => {
            return Err(ScenarioError::new("steps", "nothing", "at least one step, or requests instead"));
        }
        (steps, []) => ("steps", steps, true),
        ([], requests) => ("requests", requests, false),
        _ => {
            return Err(ScenarioError::new("requests", "steps and requests", "one of the two"));
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
        compiled.push(compiler.step::<W>(&format!("{list}[{index}]"), step)?);
    }
    name_apart(list, steps, &mut compiled)?;
    let order = if is_ordered { Order::Steps } else { Order::Weights(sums(steps)?) };
    let Compiler { binder, regexes, .. } = compiler;
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
        on_failure: spec.on_failure,
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
    fn step<W: RequestWriter>(&mut self, key: &str, step: &Step) -> Result<CompiledStep, ScenarioError> {
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
        let (start, path_at, path) = self.path::<W>(&format!("{key}.path"), step)?;
        let fields = self.fields::<W>(&format!("{key}.headers"), step)?;
        let content = self.content::<W>(&format!("{key}.body"), step)?;
        let constant = constant_request(&start, &path, &fields, &content);
        let mut feeders = Vec::new();
        let body = match &content {
            Content::Encoded(_) => &[][..],
            Content::Body(parts) => parts,
        };
        for part in path.iter().chain(&fields).chain(body) {
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
        let reads_header = extract.iter().any(|one| matches!(one.source, Source::Header(_)));
        let reads_body = check.equals.is_some()
            || check.contains.is_some()
            || !check.matches.is_empty()
            || !check.lacks.is_empty()
            || !check.json.is_empty()
            || extract.iter().any(|one| !matches!(one.source, Source::Header(_)));
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
            name: step.name.clone().unwrap_or_else(|| format!("{} {}", step.method.as_str(), step.path)),
            method: step.method,
            start: start.into(),
            path_at,
            path: path.into(),
            fields: fields.into(),
            has_cookies: takes_cookies(step) && self.cookies != Cookies::Off,
            content,
            feeders: feeders.into(),
            constant,
            think: step.think.map(think),
            check,
            extract,
            needs,
        })
    }
}

/// A pause of a validated plan.
fn think(think: Think) -> Pause {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    match think {
        Think::ConstantS(time) => Pause::Constant(ns(time)),
        Think::UniformS(low, high) => Pause::Uniform { low: ns(low), count: ns(high - low) + 1 },
        Think::ExponentialS(mean) => Pause::Exponential { mean: mean * 1e9 },
    }
}

/// Returns the sum of the weights up to each request.
fn sums(requests: &[Step]) -> Result<Box<[u64]>, ScenarioError> {
    let mut sum = 0;
    let sums = requests.iter().enumerate().map(|(index, request)| match request.weight {
        Some(0) => Err(ScenarioError::new(format_args!("requests[{index}].weight"), 0, "a whole number from 1 on")),
        weight => {
            sum += u64::from(weight.unwrap_or(1));
            Ok(sum)
        }
    });
    sums.collect()
}

/// Returns the names of steps, which results are reported by. A duplicate is an error, a missing name becomes a number.
fn name_apart(list: &str, steps: &[Step], compiled: &mut [CompiledStep]) -> Result<(), ScenarioError> {
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

//! One user of a scenario, and the thread it lives on.
//!
//! Hot path. Rules: no allocation once buffers have grown to the size of requests, variables and cookies; no lock.

use regex::bytes::CaptureLocations;
use weir_http::RequestWriter;
use weir_plan::Method;
use weir_plan::scenario::Cookies;
use weir_schedule::{Random, Shard};

use crate::ScenarioError;
use crate::check::{Reason, Response};
use crate::compiled::{Compiled, CompiledStep, Content, Order, Pause};
use crate::cookies::Jar;
use crate::feeder::Deck;
use crate::render::{Values, render};

/// Numbers of random streams of a seed. Inputs of users and rows of threads are numbered from here. The load's users
/// begin at 0, its arrivals at 2^62.
const INPUTS: u64 = 1 << 61;
const ROWS: u64 = 1 << 63;

/// No row drawn.
const NO_ROW: u32 = u32::MAX;

/// The rows and request numbers that the users of one thread share.
#[derive(Debug)]
pub struct Worker {
    shard: Shard,
    issued: u64,
    decks: Box<[Deck]>,
    random: Random,
    locations: Box<[CaptureLocations]>,
    body: Vec<u8>,
}

/// One user.
#[derive(Debug)]
pub struct User {
    random: Random,
    /// The step that comes next; 0 begins a round.
    position: u32,
    /// Its row of each feeder in this round.
    rows: Box<[u32]>,
    variables: Box<[Vec<u8>]>,
    jar: Jar,
    /// Path and query of the last request, if cookies depend on them and they are not constant.
    path: Vec<u8>,
}

/// A request to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    /// Index of its step.
    pub step: usize,
    /// Its bytes are [`Compiled::constant`], and none were rendered.
    pub is_constant: bool,
    /// It is a HEAD, so its response has no body.
    pub is_head: bool,
}

impl Compiled {
    /// Returns a thread's share of the rows and numbers.
    ///
    /// # Errors
    /// When a feeder has fewer rows than there are threads.
    pub fn worker(&self, shard: Shard, seed: u64) -> Result<Worker, ScenarioError> {
        let decks = self.feeders.iter().map(|feeder| {
            Deck::new(feeder.table.rows, feeder.mode, feeder.at_end, shard).ok_or_else(|| {
                ScenarioError::new(
                    format_args!("feeders.{}.file", feeder.name),
                    format_args!("{} rows", feeder.table.rows),
                    "at least as many rows as there are load threads",
                )
            })
        });
        Ok(Worker {
            shard,
            issued: 0,
            decks: decks.collect::<Result<_, _>>()?,
            random: Random::new(seed, ROWS + shard.index(0)),
            locations: self.regexes.iter().map(|regex| regex.capture_locations()).collect(),
            body: Vec::new(),
        })
    }

    /// Returns the user of this number. The same seed and number draw the same inputs, except for rows, which the users
    /// of a thread share.
    pub fn user(&self, number: u64, seed: u64) -> User {
        User {
            random: Random::new(seed, INPUTS + number),
            position: 0,
            rows: vec![NO_ROW; self.feeders.len()].into(),
            variables: vec![Vec::new(); self.variables].into(),
            jar: Jar::default(),
            path: Vec::new(),
        }
    }
}

impl User {
    /// Appends the next request to `out` unless it is constant. Returns `None` if a feeder that ends has no row left
    /// for this user.
    pub fn next<W: RequestWriter>(
        &mut self,
        compiled: &Compiled,
        worker: &mut Worker,
        out: &mut Vec<u8>,
    ) -> Option<Issued> {
        if self.position == 0 {
            self.rows.fill(NO_ROW);
            if compiled.cookies == Cookies::Round {
                self.jar.clear();
            }
        }
        let index = match &compiled.order {
            Order::Steps => self.position as usize,
            Order::Weights(sums) => {
                let at = self.random.below(sums.last().copied().unwrap_or(1));
                sums.partition_point(|&sum| sum <= at)
            }
        };
        let step = &compiled.steps[index];
        for &feeder in &step.feeders {
            if self.rows[feeder] == NO_ROW {
                self.rows[feeder] = worker.decks[feeder].draw(&mut worker.random)?;
            }
        }
        if let Order::Steps = compiled.order {
            self.position = (self.position + 1) % compiled.steps.len() as u32;
        }
        let seq = worker.shard.index(worker.issued);
        worker.issued += 1;
        let sends_cookies = step.has_cookies && !self.jar.is_empty();
        let is_constant = step.constant.is_some() && !sends_cookies;
        if !is_constant {
            let Self { random, rows, variables, jar, path, .. } = self;
            let mut values = Values {
                seq,
                random,
                cell: &|feeder, column| compiled.feeders[feeder].table.cell(rows[feeder], column),
                variables,
            };
            let path_from = out.len() + step.path_at;
            out.extend_from_slice(&step.start);
            render(&step.path, &mut values, out);
            if compiled.cookies != Cookies::Off && step.constant_path().is_none() {
                path.clear();
                path.extend_from_slice(&out[path_from..]);
            }
            render(&step.fields, &mut values, out);
            let path = step.constant_path().unwrap_or(path);
            if sends_cookies && jar.has_for(path) {
                W::before_value(out, "Cookie");
                jar.append_for(path, out);
                W::after_value(out);
            }
            match &step.content {
                Content::Encoded(bytes) => out.extend_from_slice(bytes),
                Content::Body(parts) => {
                    worker.body.clear();
                    render(parts, &mut values, &mut worker.body);
                    W::body(out, &worker.body, false);
                }
            }
        }
        Some(Issued { step: index, is_constant, is_head: step.method == Method::Head })
    }

    /// Returns the next step, `None` if it is drawn.
    pub fn next_step(&self, compiled: &Compiled) -> Option<usize> {
        matches!(compiled.order, Order::Steps).then_some(self.position as usize)
    }

    /// Checks the response to a step's request, takes its cookies and extracts its variables. If an extraction fails,
    /// the user begins a new round, because its next steps could not be rendered.
    ///
    /// # Errors
    /// The first failed check or extraction.
    pub fn check_response(
        &mut self,
        compiled: &Compiled,
        worker: &mut Worker,
        step: usize,
        response: &Response<'_>,
    ) -> Result<(), Reason> {
        let step = &compiled.steps[step];
        if compiled.cookies != Cookies::Off {
            let path = step.constant_path().unwrap_or(&self.path);
            for value in response.headers("set-cookie") {
                self.jar.take(value, path);
            }
        }
        let mut verdict = step.check.why_wrong(response);
        for (number, extraction) in step.extract.iter().enumerate() {
            let out = &mut self.variables[extraction.variable];
            if let Err(reason) = extraction.extract(number, response, &mut worker.locations, out) {
                self.position = 0;
                verdict = verdict.and(Err(reason));
            }
        }
        verdict
    }

    /// A step's request got no response. If later steps need its variables, the user begins a new round.
    pub fn failed(&mut self, compiled: &Compiled, step: usize) {
        if !compiled.steps[step].extract.is_empty() {
            self.position = 0;
        }
    }

    /// Makes this a new user at the beginning of its first round, with the same stream of random numbers.
    pub fn restart(&mut self) {
        self.position = 0;
        self.jar.clear();
    }

    /// Draws the pause of this user after a step. Returns `None` if the step has no pause of its own.
    #[inline]
    pub fn think_ns(&mut self, compiled: &Compiled, step: usize) -> Option<u64> {
        Some(match compiled.steps[step].think? {
            Pause::Constant(time) => time,
            Pause::Uniform { low, count } => low + self.random.below(count),
            Pause::Exponential { mean } => (self.random.exponential() * mean) as u64,
        })
    }

    /// Returns whether this user is done: a feeder that its next request may need has no row left.
    pub fn is_done(&self, compiled: &Compiled, worker: &Worker) -> bool {
        let lacks = |step: &CompiledStep| {
            let mut feeders = step.feeders.iter();
            feeders.any(|&feeder| {
                let has_row = self.position != 0 && self.rows[feeder] != NO_ROW;
                !has_row && worker.decks[feeder].is_over()
            })
        };
        match compiled.order {
            Order::Steps => lacks(&compiled.steps[self.position as usize]),
            Order::Weights(_) => compiled.steps.iter().any(lacks),
        }
    }
}

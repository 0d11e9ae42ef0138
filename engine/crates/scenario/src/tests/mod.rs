//! Scenarios from their JSON to the bytes of requests, and responses to verdicts.

#![allow(clippy::unwrap_used)]

mod errors;
mod requests;
mod responses;

use std::collections::BTreeMap;

use serde_json::Value;
use weir_http::Http1Writer;
use weir_plan::scenario::Scenario;
use weir_schedule::Shard;

use crate::{Base, Compiled, Issued, Reason, Response, ScenarioError, User, Worker, compile};

const BASE: Base<'_> = Base { authority: "host:80", path_prefix: "", keep_alive: true, right_statuses: None };

fn try_compile(spec: &Value, contents: &[(&str, &str)]) -> Result<Compiled, ScenarioError> {
    let spec: Scenario = serde_json::from_value(spec.clone()).unwrap();
    let contents: BTreeMap<String, Vec<u8>> =
        contents.iter().map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec())).collect();
    compile::<Http1Writer>(&spec, &contents, &BASE)
}

/// One user of a scenario, alone on its thread.
struct Alone {
    compiled: Compiled,
    worker: Worker,
    user: User,
}

impl Alone {
    fn new(spec: &Value) -> Self {
        Self::with(spec, &[])
    }

    fn with(spec: &Value, contents: &[(&str, &str)]) -> Self {
        let compiled = try_compile(spec, contents).unwrap();
        Self { worker: compiled.worker(Shard::WHOLE, 1).unwrap(), user: compiled.user(0, 1), compiled }
    }

    fn issue(&mut self) -> Option<(Issued, String)> {
        let mut out = Vec::new();
        let issued = self.user.next::<Http1Writer>(&self.compiled, &mut self.worker, &mut out)?;
        if issued.is_constant {
            assert!(out.is_empty());
            out = self.compiled.constant(issued.step).unwrap().to_vec();
        }
        Some((issued, String::from_utf8(out).unwrap()))
    }

    /// The whole next request.
    fn request(&mut self) -> String {
        self.issue().unwrap().1
    }

    /// The path of the next request.
    fn path(&mut self) -> String {
        self.request().split(' ').nth(1).unwrap().to_owned()
    }

    /// The body of the next request.
    fn body(&mut self) -> String {
        self.request().split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn respond(&mut self, step: usize, status: u16, head: &str, body: &str) -> Result<(), Reason> {
        let response = Response { status, head: head.as_bytes(), body: body.as_bytes(), body_bytes: body.len() as u64 };
        self.user.check_response(&self.compiled, &mut self.worker, step, &response)
    }
}

//! How requests arrive: the two primitives, and what each may vary over time.

use serde::Deserialize;

use crate::{MAX_CONNECTIONS, PlanError};

/// The most points of one profile.
const MAX_POINTS: usize = 10_000;
/// No profile's point and no user's pause lies beyond this.
const LONGEST_S: f64 = 86_400.0 * 7.0;

/// How requests arrive.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Load {
    /// A population of users that wait for their answers.
    Closed(Closed),
    /// Arrivals that wait for nobody.
    Open(Open),
}

impl Load {
    /// How many connections the load may have open at once.
    pub fn connections(&self) -> usize {
        match self {
            Self::Closed(closed) => closed.most_users(),
            Self::Open(open) => open.connections,
        }
    }

    /// Whether something is due by the clock, and not only by an answer.
    pub fn is_timed(&self) -> bool {
        match self {
            Self::Closed(closed) => !closed.is_plain(),
            Self::Open(_) => true,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), PlanError> {
        match self {
            Self::Closed(closed) => closed.validate(),
            Self::Open(open) => open.validate(),
        }
    }
}

/// A number that may change over time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number or a list of points [t_s, value]"
)]
pub enum Profile {
    /// The same all the time.
    Constant(f64),
    /// Linear between points (seconds, value); a step where two share a time; constant before the first and after the last.
    Points(Vec<(f64, f64)>),
}

impl Profile {
    /// The points; a constant is one.
    pub fn points(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Constant(value) => vec![(0.0, *value)],
            Self::Points(points) => points.clone(),
        }
    }

    /// The largest value it ever has.
    pub fn most(&self) -> f64 {
        self.points()
            .iter()
            .map(|&(_, value)| value)
            .fold(0.0, f64::max)
    }

    fn validate(&self, key: &'static str, most: f64) -> Result<(), PlanError> {
        let points = self.points();
        if points.is_empty() || points.len() > MAX_POINTS {
            return Err(PlanError::value(
                key,
                format_args!("{} points", points.len()),
                format_args!("a number, or 1 to {MAX_POINTS} points [t_s, value]"),
            ));
        }
        let mut before_s = 0.0;
        for &(t_s, value) in &points {
            if !(before_s..=LONGEST_S).contains(&t_s) {
                return Err(PlanError::value(
                    key,
                    format_args!("a point at {t_s} s after one at {before_s} s"),
                    "points in the order of their times, from 0 s to 7 days",
                ));
            }
            if !(0.0..=most).contains(&value) {
                return Err(PlanError::value(
                    key,
                    value,
                    format_args!("values from 0 to {most}"),
                ));
            }
            before_s = t_s;
        }
        if self.most() <= 0.0 {
            return Err(PlanError::value(key, 0, "a value above 0"));
        }
        Ok(())
    }
}

/// A closed load: users, a connection each, who ask again when they were answered.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// Users without anything else to say about them.
    #[serde(default)]
    pub connections: Option<usize>,
    /// Users over time, in place of `connections`.
    #[serde(default)]
    pub users: Option<Profile>,
    /// How long a user pauses between an answer and the next request.
    #[serde(default)]
    pub think: Option<Think>,
    /// Requests after which a user leaves.
    #[serde(default)]
    pub loops: Option<u64>,
    /// The least time from one request's intended start to the next one's.
    #[serde(default)]
    pub pace_s: Option<f64>,
}

impl Closed {
    /// Users over time.
    pub fn profile(&self) -> Profile {
        match (&self.users, self.connections) {
            (Some(users), _) => users.clone(),
            (None, connections) => Profile::Constant(connections.unwrap_or(0) as f64),
        }
    }

    /// Whether its users are there from the start to the end and ask again at once.
    pub fn is_plain(&self) -> bool {
        let is_constant = matches!(self.users, None | Some(Profile::Constant(_)));
        is_constant && self.think.is_none() && self.loops.is_none() && self.pace_s.is_none()
    }

    fn most_users(&self) -> usize {
        self.profile().most().ceil() as usize
    }

    fn validate(&self) -> Result<(), PlanError> {
        match (&self.users, self.connections) {
            (Some(users), None) => users.validate("load.closed.users", MAX_CONNECTIONS as f64)?,
            (None, Some(connections)) => {
                validate_connections("load.closed.connections", connections)?
            }
            (Some(_), Some(_)) => {
                return Err(PlanError::value(
                    "load.closed",
                    "both users and connections",
                    "one of them: every user has a connection",
                ));
            }
            (None, None) => {
                return Err(PlanError::value(
                    "load.closed",
                    "neither users nor connections",
                    "users, or connections",
                ));
            }
        }
        if let Some(think) = &self.think {
            think.validate("load.closed.think")?;
        }
        if self.loops == Some(0) {
            return Err(PlanError::value("load.closed.loops", 0, "at least 1"));
        }
        match self.pace_s {
            Some(pace_s) if !(pace_s > 0.0 && pace_s <= LONGEST_S) => Err(PlanError::value(
                "load.closed.pace_s",
                pace_s,
                "a number of seconds above 0",
            )),
            _ => Ok(()),
        }
    }
}

/// How long a user pauses, drawn for each pause anew.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Think {
    /// Always as long.
    ConstantS(f64),
    /// Between a shortest and a longest, each length as likely.
    UniformS(f64, f64),
    /// Exponential, with this mean.
    ExponentialS(f64),
}

impl Think {
    pub(crate) fn validate(self, key: &'static str) -> Result<(), PlanError> {
        let (shortest_s, longest_s) = match self {
            Self::ConstantS(pause_s) | Self::ExponentialS(pause_s) => (pause_s, pause_s),
            Self::UniformS(shortest_s, longest_s) => (shortest_s, longest_s),
        };
        if shortest_s >= 0.0 && shortest_s <= longest_s && longest_s <= LONGEST_S {
            return Ok(());
        }
        Err(PlanError::value(
            key,
            format_args!("{shortest_s} to {longest_s}"),
            "seconds from 0 on, the shorter first",
        ))
    }
}

/// An open load: arrivals at a rate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Arrivals a second.
    pub rate_rps: Profile,
    /// How arrivals follow one another.
    #[serde(default)]
    pub arrivals: Process,
    /// The most connections; arrivals beyond them queue.
    pub connections: usize,
    /// What arrives: a single request, or somebody with several.
    #[serde(default)]
    pub session: Option<Session>,
}

impl Open {
    fn validate(&self) -> Result<(), PlanError> {
        self.rate_rps.validate("load.open.rate_rps", 1e9)?;
        validate_connections("load.open.connections", self.connections)?;
        let Some(session) = &self.session else {
            return Ok(());
        };
        if session.requests == 0 {
            return Err(PlanError::value(
                "load.open.session.requests",
                0,
                "at least 1",
            ));
        }
        session
            .think
            .map_or(Ok(()), |think| think.validate("load.open.session.think"))
    }
}

/// How arrivals follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// At even distances.
    #[default]
    Constant,
    /// Independently of one another.
    Poisson,
}

/// Somebody who arrives, asks several times and leaves.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// How often.
    pub requests: u64,
    /// How long the pause is between an answer and the next request.
    #[serde(default)]
    pub think: Option<Think>,
}

fn validate_connections(key: &'static str, connections: usize) -> Result<(), PlanError> {
    if connections == 0 || connections > MAX_CONNECTIONS {
        return Err(PlanError::value(
            key,
            connections,
            format_args!("a number from 1 to {MAX_CONNECTIONS}"),
        ));
    }
    Ok(())
}

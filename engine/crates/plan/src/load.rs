//! The arrivals of requests: closed and open loads, and their profiles over time.

use serde::Deserialize;

use crate::{MAX_CONNECTIONS, PlanError};

/// Maximum number of points of a profile.
const MAX_POINTS: usize = 10_000;
/// Maximum time of a profile's point, and maximum pause of a user.
const MAX_S: f64 = 86_400.0 * 7.0;

/// The arrivals of requests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Load {
    /// Users who wait for their responses.
    Closed(Closed),
    /// Arrivals that do not wait for responses.
    Open(Open),
}

impl Load {
    /// Returns the maximum number of open connections.
    pub fn connections(&self) -> usize {
        match self {
            Self::Closed(closed) => closed.max_users(),
            Self::Open(open) => open.connections,
        }
    }

    /// Returns whether requests are due at times, and not only after responses.
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

/// A number over time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of points [t_s, value]")]
pub enum Profile {
    /// A constant.
    Constant(f64),
    /// Points (seconds, value), linear in between, constant before the first and after the last. Two points at one time
    /// make a step.
    Points(Vec<(f64, f64)>),
}

impl Profile {
    /// Returns the points. A constant has one.
    pub fn points(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Constant(value) => vec![(0.0, *value)],
            Self::Points(points) => points.clone(),
        }
    }

    /// Returns the maximum value.
    pub fn max(&self) -> f64 {
        self.points().iter().map(|&(_, value)| value).fold(0.0, f64::max)
    }

    fn validate(&self, key: &'static str, max: f64) -> Result<(), PlanError> {
        let points = self.points();
        PlanError::reject_if(
            points.is_empty() || points.len() > MAX_POINTS,
            key,
            format_args!("{} points", points.len()),
            format_args!("a number, or 1 to {MAX_POINTS} points [t_s, value]"),
        )?;
        let mut before_s = 0.0;
        for &(t_s, value) in &points {
            PlanError::reject_if(
                !(before_s..=MAX_S).contains(&t_s),
                key,
                format_args!("a point at {t_s} s after one at {before_s} s"),
                "points in the order of their times, from 0 s to 7 days",
            )?;
            PlanError::reject_if(!(0.0..=max).contains(&value), key, value, format_args!("values from 0 to {max}"))?;
            before_s = t_s;
        }
        PlanError::reject_if(self.max() <= 0.0, key, 0, "a value above 0")?;
        Ok(())
    }
}

/// A closed load: users with one connection each, who send the next request after the response.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// A constant number of users.
    pub connections: Option<usize>,
    /// Number of users over time, instead of `connections`.
    pub users: Option<Profile>,
    /// Pause between a response and the next request.
    pub think: Option<Think>,
    /// Number of requests after which a user leaves.
    pub loops: Option<u64>,
    /// Minimum time between the intended starts of two requests of a user.
    pub pace_s: Option<f64>,
}

impl Closed {
    /// Returns the number of users over time.
    pub fn profile(&self) -> Profile {
        match (&self.users, self.connections) {
            (Some(users), _) => users.clone(),
            (None, connections) => Profile::Constant(connections.unwrap_or(0) as f64),
        }
    }

    /// Returns whether the number of users is constant and they send requests without a pause.
    pub fn is_plain(&self) -> bool {
        let is_constant = matches!(self.users, None | Some(Profile::Constant(_)));
        is_constant && self.think.is_none() && self.loops.is_none() && self.pace_s.is_none()
    }

    fn max_users(&self) -> usize {
        self.profile().max().ceil() as usize
    }

    fn validate(&self) -> Result<(), PlanError> {
        match (&self.users, self.connections) {
            (Some(users), None) => users.validate("load.closed.users", MAX_CONNECTIONS as f64)?,
            (None, Some(connections)) => validate_connections("load.closed.connections", connections)?,
            (Some(_), Some(_)) => {
                return Err(PlanError::value(
                    "load.closed",
                    "both users and connections",
                    "one of them: every user has a connection",
                ));
            }
            (None, None) => {
                return Err(PlanError::value("load.closed", "neither users nor connections", "users, or connections"));
            }
        }
        if let Some(think) = &self.think {
            think.validate("load.closed.think")?;
        }
        PlanError::reject_if(self.loops == Some(0), "load.closed.loops", 0, "at least 1")?;
        match self.pace_s {
            Some(pace_s) if !(pace_s > 0.0 && pace_s <= MAX_S) => {
                Err(PlanError::value("load.closed.pace_s", pace_s, "a number of seconds above 0"))
            }
            _ => Ok(()),
        }
    }
}

/// The distribution of a user's pauses.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Think {
    /// A constant.
    ConstantS(f64),
    /// Uniform between these two.
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
        if shortest_s >= 0.0 && shortest_s <= longest_s && longest_s <= MAX_S {
            return Ok(());
        }
        Err(PlanError::value(key, format_args!("{shortest_s} to {longest_s}"), "seconds from 0 on, the shorter first"))
    }
}

/// An open load: arrivals at a rate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Arrivals per second.
    pub rate_rps: Profile,
    /// The arrival process.
    #[serde(default)]
    pub arrivals: Process,
    /// Maximum number of connections; further arrivals queue.
    pub connections: usize,
    /// A session per arrival. `None`: one request per arrival.
    pub session: Option<Session>,
}

impl Open {
    fn validate(&self) -> Result<(), PlanError> {
        self.rate_rps.validate("load.open.rate_rps", 1e9)?;
        validate_connections("load.open.connections", self.connections)?;
        let Some(session) = &self.session else {
            return Ok(());
        };
        PlanError::reject_if(session.requests == 0, "load.open.session.requests", 0, "at least 1")?;
        session.think.map_or(Ok(()), |think| think.validate("load.open.session.think"))
    }
}

/// The arrival process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// At constant distances.
    #[default]
    Constant,
    /// A Poisson process.
    Poisson,
}

/// A user who arrives, sends several requests and leaves.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Number of requests.
    pub requests: u64,
    /// Pause between a response and the next request.
    pub think: Option<Think>,
}

fn validate_connections(key: &'static str, connections: usize) -> Result<(), PlanError> {
    PlanError::reject_if(
        connections == 0 || connections > MAX_CONNECTIONS,
        key,
        connections,
        format_args!("a number from 1 to {MAX_CONNECTIONS}"),
    )?;
    Ok(())
}

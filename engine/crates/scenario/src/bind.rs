//! From templates to parts: names of feeders, columns and variables become numbers.

use std::collections::BTreeMap;

use weir_plan::scenario::{Feeder, FeederFormat};

use crate::ScenarioError;
use crate::render::{Part, Place, append_path};
use crate::template::{self, Piece};

/// The names that templates may use, and the ones that they have used so far.
pub(crate) struct Binder<'a> {
    pub(crate) feeders: Vec<FeederUse<'a>>,
    pub(crate) variables: Vec<String>,
    /// Whether steps have an order, so that a step may use variables of earlier ones.
    pub(crate) is_ordered: bool,
}

pub(crate) struct FeederUse<'a> {
    pub(crate) name: &'a str,
    pub(crate) spec: &'a Feeder,
    /// The columns or fields that templates use.
    pub(crate) columns: Vec<String>,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(feeders: &'a BTreeMap<String, Feeder>, is_ordered: bool) -> Self {
        let feeders = feeders.iter().map(|(name, spec)| FeederUse { name, spec, columns: Vec::new() });
        Self { feeders: feeders.collect(), variables: Vec::new(), is_ordered }
    }

    /// Returns the parts of a template at `place`. Neighbouring text is one part.
    pub(crate) fn bind(&mut self, key: &str, text: &str, place: Place) -> Result<Vec<Part>, ScenarioError> {
        let pieces = template::parse(text).map_err(|(found, expected)| ScenarioError::new(key, found, expected))?;
        let mut parts = Vec::with_capacity(pieces.len());
        for (index, piece) in pieces.into_iter().enumerate() {
            let place = match (place, index) {
                (Place::Path, 0) => Place::Target,
                (place, _) => place,
            };
            parts.push(self.part(key, piece, place)?);
        }
        Ok(parts)
    }

    fn part(&mut self, key: &str, piece: Piece<'_>, place: Place) -> Result<Part, ScenarioError> {
        let cell = |(feeder, column)| Part::Cell { feeder, column, place };
        Ok(match piece {
            Piece::Text(text) => {
                let mut bytes = Vec::with_capacity(text.len());
                match place {
                    Place::Target | Place::Path => append_path(text, &mut bytes),
                    Place::Header | Place::Body => bytes.extend_from_slice(text.as_bytes()),
                }
                Part::Literal(bytes.into())
            }
            Piece::Seq => Part::Seq,
            Piece::Uuid => Part::Uuid,
            Piece::Int(low, high) => Part::Int { low, count: (high.wrapping_sub(low) as u64).wrapping_add(1) },
            Piece::Word(length) => Part::Word(length),
            Piece::Csv { feeder, column } => cell(self.column(key, FeederFormat::Csv, feeder, column)?),
            Piece::Json { feeder, field } => cell(self.column(key, FeederFormat::JsonLines, feeder, field)?),
            Piece::Variable(name) => Part::Variable { index: self.variable(key, name)?, place },
        })
    }

    fn column(
        &mut self,
        key: &str,
        format: FeederFormat,
        name: &str,
        column: &str,
    ) -> Result<(usize, usize), ScenarioError> {
        let keyword = match format {
            FeederFormat::Csv => "csv",
            FeederFormat::JsonLines => "json",
        };
        let found = format!("{{{{{keyword} {name}.{column}}}}}");
        let Some(number) = self.feeders.iter().position(|feeder| feeder.name == name) else {
            let known = self.feeders.iter().map(|feeder| feeder.name.to_owned());
            return Err(ScenarioError::new(
                key,
                found,
                one_of("a feeder", known.collect(), "but there are no feeders"),
            ));
        };
        let feeder = &mut self.feeders[number];
        if feeder.spec.format != format {
            let other = match feeder.spec.format {
                FeederFormat::Csv => "csv",
                FeederFormat::JsonLines => "json",
            };
            return Err(ScenarioError::new(
                key,
                found,
                format_args!("{{{{{other} {name}.{column}}}}}, as its feeder's format is"),
            ));
        }
        let place = feeder.columns.iter().position(|known| known == column);
        let place = place.unwrap_or_else(|| {
            feeder.columns.push(column.to_owned());
            feeder.columns.len() - 1
        });
        Ok((number, place))
    }

    fn variable(&self, key: &str, name: &str) -> Result<usize, ScenarioError> {
        let found = self.variables.iter().position(|known| known == name);
        found.ok_or_else(|| {
            let none = if self.is_ordered { "but none extracts any" } else { "but requests have no order: use steps" };
            ScenarioError::new(
                key,
                format_args!("{{{{{name}}}}}"),
                one_of("a placeholder, or a variable that an earlier step extracts", self.variables.clone(), none),
            )
        })
    }

    /// Returns the index of a variable that the present step extracts.
    pub(crate) fn add_variable(&mut self, name: &str) -> usize {
        let known = self.variables.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.variables.push(name.to_owned());
            self.variables.len() - 1
        })
    }
}

fn one_of(what: &str, known: Vec<String>, none: &str) -> String {
    if known.is_empty() { format!("{what}, {none}") } else { format!("{what}: {}", known.join(", ")) }
}

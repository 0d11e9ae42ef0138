//! A quantity over time, linear between points: users, or arrivals per second.
//!
//! Its integral, the inverse integral and the times above a level have closed forms, so no error accumulates.

const NS_PER_S: f64 = 1e9;

/// The line from one point to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    start_s: f64,
    /// Infinite for the last segment.
    length_s: f64,
    from: f64,
    to: f64,
    /// The integral up to the start of the segment.
    before: f64,
}

impl Line {
    fn slope(&self) -> f64 {
        if self.from == self.to { 0.0 } else { (self.to - self.from) / self.length_s }
    }

    /// Returns the integral from the start to `elapsed_s` later.
    fn area(&self, elapsed_s: f64) -> f64 {
        elapsed_s * (self.from + self.slope() * elapsed_s / 2.0)
    }

    fn end_s(&self) -> f64 {
        self.start_s + self.length_s
    }
}

/// A piecewise linear curve without negative values.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve(Vec<Line>);

impl Curve {
    /// Returns the curve through points (seconds, value), constant before the first and after the last. Two points at
    /// one time make a step. Returns `None` unless times are in order and values are finite and not negative.
    pub fn new(points: &[(f64, f64)]) -> Option<Self> {
        let (&(first_s, first), &(last_s, last)) = (points.first()?, points.last()?);
        let is_ordered = points.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        let is_usable = |&(t_s, value): &(f64, f64)| t_s.is_finite() && t_s >= 0.0 && value.is_finite() && value >= 0.0;
        if !is_ordered || !points.iter().all(is_usable) {
            return None;
        }
        let mut pairs = vec![((0.0, first), (first_s, first))];
        pairs.extend(points.windows(2).map(|pair| (pair[0], pair[1])));
        pairs.push(((last_s, last), (f64::INFINITY, last)));
        let mut before = 0.0;
        let mut segments = Vec::new();
        for ((start_s, from), (end_s, to)) in pairs {
            if start_s == end_s {
                continue;
            }
            let segment = Line { start_s, length_s: end_s - start_s, from, to, before };
            if end_s.is_finite() {
                before += segment.area(segment.length_s);
            }
            segments.push(segment);
        }
        Some(Self(segments))
    }

    /// Returns the integral from 0 to `until_s`.
    pub fn integral(&self, until_s: f64) -> f64 {
        let index = self.0.partition_point(|segment| segment.start_s <= until_s);
        self.0
            .get(index.saturating_sub(1))
            .map_or(0.0, |segment| segment.before + segment.area(until_s - segment.start_s))
    }

    /// Returns the time in nanoseconds after which the integral is above `area`, or `u64::MAX` if it never is.
    /// `segment` is a hint that this function advances: pass 0 for the first of growing areas.
    #[inline]
    pub fn inverse_integral_ns(&self, area: f64, segment: &mut usize) -> u64 {
        while let Some(next) = self.0.get(*segment + 1) {
            if next.before > area {
                break;
            }
            *segment += 1;
        }
        let here = &self.0[*segment];
        let rest = (area - here.before).max(0.0);
        let slope = here.slope();
        let root = if slope == 0.0 {
            here.from
        } else {
            // This form neither divides by the slope nor subtracts two similar numbers.
            (here.from * here.from + 2.0 * slope * rest).max(0.0).sqrt()
        };
        let divisor = here.from + root;
        if divisor == 0.0 {
            return if here.length_s.is_finite() && slope > 0.0 { (here.start_s * NS_PER_S) as u64 } else { u64::MAX };
        }
        let elapsed_ns = 2.0 * rest * NS_PER_S / divisor;
        (here.start_s * NS_PER_S + elapsed_ns.min(here.length_s * NS_PER_S)) as u64
    }

    /// Returns the next period, in nanoseconds from `from_ns` on, in which the value is above `level`. An endless
    /// period ends at `u64::MAX`.
    pub fn next_above(&self, level: f64, from_ns: u64) -> Option<(u64, u64)> {
        let mut stretch: Option<(u64, u64)> = None;
        for segment in &self.0 {
            let Some((start_ns, end_ns)) = above(segment, level) else {
                continue;
            };
            match &mut stretch {
                Some((_, end)) if *end == start_ns => *end = end_ns,
                Some((_, end)) if *end > from_ns => break,
                _ => stretch = Some((start_ns, end_ns)),
            }
        }
        let (start_ns, end_ns) = stretch.filter(|&(_, end_ns)| end_ns > from_ns)?;
        Some((start_ns.max(from_ns), end_ns))
    }
}

/// Returns the part of a segment above a level.
fn above(segment: &Line, level: f64) -> Option<(u64, u64)> {
    let Line { from, to, .. } = *segment;
    if from <= level && to <= level {
        return None;
    }
    let crossing_s = segment.start_s + (level - from) / (to - from) * segment.length_s;
    let start_s = if from <= level { crossing_s } else { segment.start_s };
    let end_s = if to < level { crossing_s } else { segment.end_s() };
    let start_ns = (start_s * NS_PER_S).round() as u64;
    // The conversion saturates: an endless period ends at the largest number.
    let end_ns = (end_s * NS_PER_S).round() as u64;
    (start_ns < end_ns).then_some((start_ns, end_ns))
}

#[cfg(test)]
mod tests;

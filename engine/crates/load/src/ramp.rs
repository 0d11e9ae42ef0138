//! The ramp of a load whose users leave after a number of requests: it limits the throughput of any server.

use weir_plan::{Load, Plan};
use weir_record::Ramp;

/// Returns the ramp of a load that lasted so long, `None` if it has no ramp or its users do not leave.
pub(crate) fn ramp(plan: &Plan, lasted_s: f64) -> Option<Ramp> {
    let Load::Closed(closed) = &plan.load else {
        return None;
    };
    let (users, within_s) = arrivals(&closed.profile().points(), lasted_s);
    (within_s > 0.0).then_some(Ramp { users, within_s, loops: closed.loops? })
}

/// Returns how many users come until a moment, and when the last one comes. A user and its successor count as two.
fn arrivals(points: &[(f64, f64)], until_s: f64) -> (f64, f64) {
    let mut users = points.first().map_or(0.0, |&(_, there)| there);
    let mut last_s = 0.0;
    for pair in points.windows(2) {
        let [(from_s, from), (to_s, to)] = [pair[0], pair[1]];
        if to <= from || from_s >= until_s {
            continue;
        }
        last_s = to_s.min(until_s);
        let share = if to_s > from_s { (last_s - from_s) / (to_s - from_s) } else { 1.0 };
        users += (to - from) * share;
    }
    (users, last_s)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(load: &str, lasted_s: f64) -> Option<(f64, f64, u64)> {
        let text = format!(r#"{{"schema": 1, "target": "http://a/", "duration_s": 100, "load": {{{load}}}}}"#);
        let found = ramp(&Plan::from_json(&text).unwrap(), lasted_s);
        found.map(|ramp| (ramp.users, ramp.within_s, ramp.loops))
    }

    #[test]
    fn a_ramp_is_its_users_in_its_time() {
        let load = r#""closed": {"users": [[0, 0], [50, 2000], [60, 2000]], "loops": 5}"#;
        assert_eq!(of(load, 61.0), Some((2000.0, 50.0, 5)));
        // A load that ends earlier has those who came until then.
        assert_eq!(of(load, 10.0), Some((400.0, 10.0, 5)));
    }

    #[test]
    fn who_is_there_at_the_start_and_who_comes_later_count() {
        let load = r#""closed": {"users": [[0, 100], [10, 50], [20, 80], [20, 90]], "loops": 2}"#;
        assert_eq!(of(load, 30.0), Some((140.0, 20.0, 2)));
        assert_eq!(of(load, 10.0), None, "nobody has come");
        assert_eq!(of(load, 15.0), Some((115.0, 15.0, 2)));
    }

    #[test]
    fn users_who_stay_or_come_at_once_and_arrivals_are_no_ramp() {
        let no_ramps = [
            r#""closed": {"users": [[0, 0], [50, 2000]]}"#,
            r#""closed": {"users": 10, "loops": 5}"#,
            r#""closed": {"users": [[0, 0], [0, 10]], "loops": 5}"#,
            r#""open": {"rate_rps": [[0, 0], [50, 10]], "connections": 5}"#,
        ];
        for load in no_ramps {
            assert_eq!(of(load, 60.0), None, "{load}");
        }
    }
}

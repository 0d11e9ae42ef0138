#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn moments(curve: &Curve, count: u64) -> Vec<u64> {
    let mut segment = 0;
    (0..count).map(|index| curve.inverse_integral_ns(index as f64, &mut segment)).collect()
}

#[test]
fn constant_does_not_drift() {
    let third = Curve::new(&[(0.0, 3.0)]).unwrap();
    assert_eq!(third.inverse_integral_ns(1.0, &mut 0), 333_333_333);
    // A day later the moment is still exact, though a third of a second has no exact length in nanoseconds.
    assert_eq!(third.inverse_integral_ns(3.0 * 86_400.0, &mut 0), 86_400_000_000_000);
    let fast = Curve::new(&[(0.0, 10_000.0)]).unwrap();
    assert_eq!(fast.inverse_integral_ns(36_000_001.0, &mut 0), 3_600_000_100_000);
}

#[test]
fn ramp_follows_the_square_root() {
    // 0 to 100 a second in 10 s: the integral is 5 t², so that number i comes at sqrt(i / 5).
    let curve = Curve::new(&[(0.0, 0.0), (10.0, 100.0)]).unwrap();
    for (index, moment) in moments(&curve, 500).into_iter().enumerate() {
        let exact = (index as f64 / 5.0).sqrt() * 1e9;
        assert!((moment as f64 - exact).abs() <= 2.0, "{index}");
    }
    assert_eq!(curve.integral(10.0), 500.0);
    assert_eq!(curve.integral(12.0), 700.0);
    assert_eq!(moments(&curve, 701)[700], 12_000_000_000);
}

#[test]
fn steps_and_pauses_are_exact() {
    let curve = Curve::new(&[(1.0, 10.0), (1.0, 0.0), (2.0, 0.0), (2.0, 20.0)]).unwrap();
    let moments = moments(&curve, 12);
    assert_eq!(moments[9], 900_000_000);
    // Ten came before the pause; the next is the first after it.
    assert_eq!(moments[10], 2_000_000_000);
    assert_eq!(moments[11], 2_050_000_000);
}

#[test]
fn curve_that_ends_at_zero_ends() {
    let curve = Curve::new(&[(0.0, 10.0), (2.0, 0.0)]).unwrap();
    let moments = moments(&curve, 11);
    assert!(moments[9] < 2_000_000_000);
    assert_eq!(moments[10], u64::MAX);
    let late = Curve::new(&[(5.0, 0.0), (10.0, 100.0)]).unwrap();
    assert_eq!(late.inverse_integral_ns(0.0, &mut 0), 5_000_000_000);
}

#[test]
fn ramped_users_arrive_evenly() {
    // 2,000 users in 50 s: user k at k · 50 / 2000.
    let curve = Curve::new(&[(0.0, 0.0), (50.0, 2000.0)]).unwrap();
    for k in 0..2000u64 {
        assert_eq!(curve.next_above(k as f64, 0), Some((k * 25_000_000, u64::MAX)));
    }
    assert_eq!(curve.next_above(2000.0, 0), None);
}

#[test]
fn users_arrive_and_leave_in_stages() {
    let curve = Curve::new(&[(0.0, 0.0), (10.0, 10.0), (20.0, 10.0), (30.0, 0.0), (40.0, 0.0), (40.0, 5.0)]).unwrap();
    let s = |seconds: u64| seconds * 1_000_000_000;
    assert_eq!(curve.next_above(4.0, 0), Some((s(4), s(26))));
    assert_eq!(curve.next_above(4.0, s(26)), Some((s(40), u64::MAX)));
    assert_eq!(curve.next_above(4.0, s(10)), Some((s(10), s(26))));
    assert_eq!(curve.next_above(9.0, s(21)), None);
    // Whose level the plateau only touches is not above it.
    assert_eq!(curve.next_above(10.0, 0), None);
}

#[test]
fn invalid_curve_is_refused() {
    for points in [
        &[][..],
        &[(0.0, -1.0)],
        &[(0.0, f64::NAN)],
        &[(-1.0, 1.0)],
        &[(0.0, f64::INFINITY)],
        &[(2.0, 1.0), (1.0, 1.0)],
    ] {
        assert!(Curve::new(points).is_none(), "{points:?}");
    }
}

/// Up to six points in the order of their times.
fn curves() -> impl Strategy<Value = Vec<(f64, f64)>> {
    proptest::collection::vec((0.0f64..20.0, 0.0f64..1000.0), 1..6).prop_map(|mut points| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    })
}

proptest! {
    #[test]
    fn constant_is_exact_within_a_nanosecond(rate in 1u32..1_000_000, index in 0u64..10_000_000_000) {
        let exact = u128::from(index) * 1_000_000_000 / u128::from(rate);
        // A plan lasts a week at most. From 100 days on, a float of nanoseconds has no digits behind the point.
        prop_assume!(exact < 7 * 86_400 * 1_000_000_000);
        let curve = Curve::new(&[(0.0, f64::from(rate))]).unwrap();
        let due = u128::from(curve.inverse_integral_ns(index as f64, &mut 0));
        prop_assert!(due.abs_diff(exact) <= 1);
    }

    #[test]
    fn inverse_undoes_the_integral(points in curves(), area in 0.0f64..30_000.0) {
        let curve = Curve::new(&points).unwrap();
        let moment = curve.inverse_integral_ns(area, &mut 0);
        prop_assume!(moment < u64::MAX);
        let back = curve.integral(moment as f64 / 1e9);
        // A nanosecond at the highest value, and what a sum of large numbers rounds.
        prop_assert!((back - area).abs() <= 1e-5, "{back} {area}");
    }

    #[test]
    fn times_never_decrease(points in curves()) {
        let curve = Curve::new(&points).unwrap();
        let moments = moments(&curve, 2000);
        prop_assert!(moments.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn number_of_periods_matches_the_value(points in curves(), at in 0.0f64..25.0) {
        let curve = Curve::new(&points).unwrap();
        // The value by its own definition, from the points.
        let value = match points.iter().rposition(|point| point.0 <= at) {
            None => points[0].1,
            Some(last) if last + 1 == points.len() => points[last].1,
            Some(last) => {
                let (a, b) = (points[last], points[last + 1]);
                a.1 + (b.1 - a.1) * (at - a.0) / (b.0 - a.0)
            }
        };
        let at_ns = (at * 1e9) as u64;
        let covered = (0..1000u32)
            .filter(|&k| {
                curve
                    .next_above(f64::from(k), at_ns)
                    .is_some_and(|(start_ns, _)| start_ns == at_ns)
            })
            .count() as f64;
        prop_assert!((covered - value.ceil()).abs() <= 1.0, "{covered} {value}");
    }
}

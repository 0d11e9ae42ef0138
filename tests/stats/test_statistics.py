"""Compares statistics with simulated truth and with scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from tests.support.tiers import cases
from weir import stats
from weir.model.hdr import Hdr
from weir.model.hdr_batch import samples_of

POSITIVE = st.floats(min_value=1e-3, max_value=1e6)
PAIRS = st.lists(st.tuples(POSITIVE, POSITIVE), min_size=2, max_size=20)


@given(PAIRS)
def test_a_paired_ratio_is_scipys_t_interval_of_the_log_ratios(pairs: list[tuple[float, float]]) -> None:
    numerators, denominators = zip(*pairs, strict=True)
    logs = [math.log(one) - math.log(other) for one, other in pairs]
    ratio = stats.paired_ratio(numerators, denominators)
    assert ratio.value == pytest.approx(reference.gmean(numerators) / reference.gmean(denominators))
    if max(logs) - min(logs) < 1e-9:
        return
    low, high = reference.t.interval(0.95, len(logs) - 1, np.mean(logs), reference.sem(logs))
    assert ratio.low is not None
    assert ratio.high is not None
    assert math.log(ratio.low) == pytest.approx(low, rel=1e-6, abs=1e-9)
    assert math.log(ratio.high) == pytest.approx(high, rel=1e-6, abs=1e-9)
    assert ratio.p_value == pytest.approx(reference.ttest_1samp(logs, 0).pvalue, rel=1e-6, abs=1e-9)


@given(PAIRS)
def test_turning_a_ratio_around_turns_its_interval_around(pairs: list[tuple[float, float]]) -> None:
    numerators, denominators = zip(*pairs, strict=True)
    there, back = stats.paired_ratio(numerators, denominators), stats.paired_ratio(denominators, numerators)
    assert there.value == pytest.approx(1 / back.value)
    assert (there.low is None) == (back.high is None)
    if there.low is not None and back.high is not None and there.low > 1e-100:
        assert math.log(there.low) == pytest.approx(-math.log(back.high), abs=1e-9)


@given(POSITIVE, POSITIVE)
def test_one_pair_has_a_ratio_and_no_interval(one: float, other: float) -> None:
    ratio = stats.paired_ratio([one], [other])
    assert (ratio.low, ratio.high, ratio.p_value, ratio.spread) == (None, None, None, None)


def test_pairs_without_spread_have_no_interval() -> None:
    assert stats.paired_ratio([2.0, 2.0], [1.0, 1.0]).low is None


@pytest.mark.parametrize(
    ("numerators", "denominators"),
    [([], []), ([1.0], [0.0]), ([math.nan], [1.0]), ([-1.0], [1.0]), ([1.0], [math.inf])],
)
def test_what_has_no_logarithm_is_refused(numerators: list[float], denominators: list[float]) -> None:
    with pytest.raises(ValueError, match="expected at least one pair of positive numbers"):
        stats.paired_ratio(numerators, denominators)


@pytest.mark.parametrize("blocks", [3, 10, 20])
def test_intervals_of_ratios_cover_the_truth_in_95_percent_of_studies(blocks: int) -> None:
    """In 2,000 studies a true coverage of 95 % stays within 93.5–96.5 % with a probability above 99.7 %."""
    random = np.random.default_rng(20_250_101)
    truth, studies, covered = 4.0, 2000, 0
    for _ in range(studies):
        block = random.lognormal(0, 0.2, blocks)
        one = truth * block * random.lognormal(0, 0.05, blocks)
        other = block * random.lognormal(0, 0.03, blocks)
        ratio = stats.paired_ratio(list(one), list(other))
        assert ratio.low is not None
        assert ratio.high is not None
        covered += ratio.low <= truth <= ratio.high
    assert 0.935 <= covered / studies <= 0.965


@pytest.mark.parametrize("blocks", [10, 20])
@pytest.mark.parametrize("kind", ["plain", "heavy", "drifting"])
def test_two_copies_of_one_system_are_called_different_in_3_to_7_percent_of_studies(blocks: int, kind: str) -> None:
    random = np.random.default_rng(5)
    different = 0
    for _ in range(1000):
        block = random.lognormal(0, 0.1, blocks)
        if kind == "drifting":
            block = block * np.linspace(1, 1.3, blocks)
        noise = random.lognormal(0, 0.03, (2, blocks))
        if kind == "heavy":
            # A few trials are much slower than the others.
            noise = noise * np.where(random.random((2, blocks)) < 0.03, 0.8, 1.0)
        ratio = stats.paired_ratio(list(block * noise[0]), list(block * noise[1]))
        assert ratio.low is not None
        assert ratio.high is not None
        different += not ratio.low <= 1 <= ratio.high
    assert 30 <= different <= 70, different


def test_intervals_of_means_cover_the_truth_in_95_percent_of_studies() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(2000):
        estimate = stats.mean_interval(list(random.normal(100, 5, 6)))
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 100 <= estimate.high
    assert 0.935 <= covered / 2000 <= 0.965


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=12))
def test_holm_never_makes_a_p_value_smaller_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = stats.holm(p_values)
    assert all(after >= before and after <= 1 for before, after in zip(p_values, adjusted, strict=True))
    assert [adjusted[index] for index in np.argsort(p_values, kind="stable")] == sorted(adjusted)
    assert min(adjusted) == pytest.approx(min(1.0, len(p_values) * min(p_values)))


def test_holm_calls_a_family_of_equal_systems_different_in_at_most_5_percent_of_studies() -> None:
    random = np.random.default_rng(11)
    wrong = sum(min(stats.holm(list(random.uniform(size=5)))) < 0.05 for _ in range(4000))
    assert 0.035 <= wrong / 4000 <= 0.062


def test_equal_systems_are_shown_to_be_equal_and_different_ones_never_are() -> None:
    random = np.random.default_rng(3)
    base = random.lognormal(5, 0.1, 10)
    assert stats.tost_equivalent(list(base * random.lognormal(0, 0.005, 10)), list(base))
    assert not stats.tost_equivalent(list(base * 1.03), list(base * random.lognormal(0, 0.005, 10)))
    assert not stats.tost_equivalent(list(base * random.lognormal(0, 0.1, 10)), list(base))


def test_systems_exactly_at_the_margin_are_called_equal_in_at_most_5_percent_of_studies() -> None:
    random = np.random.default_rng(5)
    called = sum(
        stats.tost_equivalent(list(1.02 * random.lognormal(0, 0.01, 10)), list(np.ones(10))) for _ in range(2000)
    )
    assert called / 2000 <= 0.065


def test_the_spread_of_copies_is_recovered_with_its_interval() -> None:
    random = np.random.default_rng(13)
    covered = 0
    for _ in range(2000):
        spread = stats.rms_log_ratio(list(random.normal(0, 0.03, 8)))
        assert spread.low is not None
        assert spread.high is not None
        covered += spread.low <= 0.03 <= spread.high
    assert 0.935 <= covered / 2000 <= 0.965


@given(st.floats(min_value=0.001, max_value=0.5), st.floats(min_value=0.01, max_value=0.5))
def test_needed_blocks_is_the_smallest_number_that_is_enough(variation: float, half_width: float) -> None:
    blocks = stats.blocks_for_precision(variation, half_width)

    def reached(count: int) -> float:
        return float(reference.t.ppf(0.975, count - 1)) * variation / math.sqrt(count)

    assert reached(blocks) <= half_width
    assert blocks == 2 or reached(blocks - 1) > half_width


def test_drift_is_the_slope_over_the_window() -> None:
    moved = stats.drift([0.0, 1.0, 2.0, 3.0, 4.0], [90.0, 95.0, 100.0, 105.0, 110.0])
    assert moved is not None
    assert moved.value == pytest.approx(0.2)
    assert stats.drift([0.0, 1.0], [1.0, 2.0]) is None
    assert stats.drift([0.0, 1.0, 2.0], [0.0, 0.0, 0.0]) is None


@given(PAIRS.filter(lambda pairs: len({value for value, _ in pairs}) > 2))
def test_drift_is_scipys_least_squares_line(pairs: list[tuple[float, float]]) -> None:
    times = [float(number) for number in range(len(pairs))]
    values = [value for value, _ in pairs]
    moved = stats.drift(times, values)
    line = reference.linregress(times, values)
    over_window = times[-1] / np.mean(values)
    assert moved is not None
    assert moved.low is not None
    assert moved.high is not None
    assert moved.value == pytest.approx(line.slope * over_window, rel=1e-6, abs=1e-9)
    half_width = reference.t.ppf(0.975, len(times) - 2) * line.stderr * over_window
    assert (moved.high - moved.low) / 2 == pytest.approx(half_width, rel=1e-4, abs=1e-6)


def test_a_steady_series_is_called_drifting_in_few_cases() -> None:
    random = np.random.default_rng(17)
    times = list(np.arange(80) / 10)
    called = 0
    for _ in range(500):
        moved = stats.drift(times, list(random.normal(1000, 30, 80)))
        assert moved is not None
        assert moved.low is not None
        assert moved.high is not None
        called += moved.low > 0 or moved.high < 0
    assert 0.02 <= called / 500 <= 0.08


def recorded(values: list[int]) -> bytes:
    one = Hdr()
    for value in values:
        one.add(value)
    return one.encode()


@given(st.lists(st.lists(st.integers(min_value=1, max_value=10**10), min_size=1, max_size=30), min_size=1, max_size=4))
def test_merged_quantiles_are_those_of_all_values_together(parts: list[list[int]]) -> None:
    everything = sorted(value for part in parts for value in part)
    (median,) = stats.merge_quantiles([recorded(part) for part in parts], [0.5])
    assert median.samples == len(everything)
    expected = everything[math.ceil(len(everything) * 0.5) - 1]
    assert median.value == pytest.approx(expected, rel=2e-3, abs=1)


def test_no_samples_give_no_quantile() -> None:
    (median,) = stats.merge_quantiles([], [0.5])
    assert median.value is None
    assert not median.supported


@given(st.lists(st.lists(st.integers(1, 10**9), max_size=30), min_size=1, max_size=5))
def test_quantiles_of_groups_are_those_of_each_alone(groups: list[list[int]]) -> None:
    found = samples_of([recorded(group) for group in groups])
    samples, quantiles = stats.quantiles_by_group(found.part, found.bucket, found.often, len(groups), [0.0, 0.5, 0.99])
    assert samples.tolist() == [len(group) for group in groups]
    for index, group in enumerate(groups):
        if group:
            _, half, most = stats.merge_quantiles([recorded(group)], [0.0, 0.5, 0.99])
            assert quantiles[1:, index].tolist() == [half.value, most.value]
            # The lowest quantile is the first sample, to the histogram's three digits.
            assert quantiles[0, index] == pytest.approx(min(group), rel=1e-3)
        else:
            assert np.isnan(quantiles[:, index]).all()


@pytest.mark.parametrize(
    ("samples", "probability", "supported"),
    [(200, 0.5, True), (199, 0.5, False), (10_000, 0.99, True), (9_999, 0.99, False), (100_000, 0.999, True)],
)
def test_a_quantile_needs_a_hundred_samples_beyond_it(samples: int, probability: float, supported: bool) -> None:
    assert stats.is_supported(samples, probability) is supported


@pytest.mark.parametrize(("blocks", "comparisons"), cases([(3, 1), (10, 1), (10, 6), (20, 3)], kept=2))
def test_a_detectable_ratio_is_detected_in_80_percent_of_studies(blocks: int, comparisons: int) -> None:
    """In 4,000 studies a true share of 80 % stays within 78.1–81.9 % with a probability above 99.7 %. With several
    comparisons only one has a difference, so Holm's correction nearly always stays at its strictest step."""
    random = np.random.default_rng(blocks + 100 * comparisons)
    spread, studies, detected = 0.07, 4000, 0
    ratio = stats.minimum_detectable_ratio(spread, blocks, comparisons)
    assert ratio is not None
    for _ in range(studies):
        logs = random.normal(0, spread, (comparisons, blocks))
        logs[0] += math.log(ratio)
        p_values = [float(reference.ttest_1samp(pairs, 0.0).pvalue) for pairs in logs]
        detected += stats.holm(p_values)[0] < 0.05
    assert 0.781 <= detected / studies <= 0.819 + (0.01 if comparisons > 1 else 0)


def test_what_can_be_detected_shrinks_with_blocks_and_grows_with_comparisons_and_spread() -> None:
    def found(spread: float, blocks: int, comparisons: int = 1) -> float:
        ratio = stats.minimum_detectable_ratio(spread, blocks, comparisons)
        assert ratio is not None
        return ratio

    assert found(0.05, 2) > found(0.05, 3) > found(0.05, 10) > found(0.05, 100) > 1
    assert found(0.05, 10, 20) > found(0.05, 10, 2) > found(0.05, 10)
    assert found(0.1, 10) > found(0.05, 10)
    assert found(0.05, 2, 500) > 1
    assert stats.minimum_detectable_ratio(0.05, 1) is None


@given(st.floats(min_value=0.005, max_value=0.3), st.floats(min_value=1.02, max_value=2.0), st.integers(1, 10))
def test_the_blocks_for_a_difference_are_the_fewest_that_detect_it(
    spread: float, ratio: float, comparisons: int
) -> None:
    blocks = stats.blocks_to_detect(ratio, spread, comparisons)
    reached = stats.minimum_detectable_ratio(spread, blocks, comparisons)
    assert reached is not None
    assert reached <= ratio
    fewer = stats.minimum_detectable_ratio(spread, blocks - 1, comparisons)
    assert fewer is None or fewer > ratio


def test_equal_ratios_of_small_counts_have_the_interval_of_their_rounding() -> None:
    # Rates of 8 and of 50 requests, which three blocks repeat exactly.
    rounding = math.sqrt((1 / 8**2 + 1 / 50**2) / 12)
    found = stats.paired_ratio([8.0] * 3, [50.0] * 3, rounding=rounding)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 7.5 / 50.5
    assert 8.5 / 49.5 < found.high < 0.2
    assert found.p_value is not None
    assert found.p_value < 0.01


def test_rounding_does_not_narrow_an_interval() -> None:
    values = [100.0, 110.0, 95.0], [100.0, 100.0, 100.0]
    assert stats.paired_ratio(*values, rounding=0.001) == stats.paired_ratio(*values)

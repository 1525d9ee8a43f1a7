import numpy as np
import pytest
from scipy import stats

from manyheads.reporting.statistics import student


def test_it_agrees_with_scipy():
    values = np.random.default_rng(0).normal(size=7)
    mean = student(values)
    reference = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean.interval == pytest.approx((reference.low, reference.high))
    assert mean.n_seeds == 7


def test_five_seeds_cover_at_the_nominal_rate():
    samples = np.random.default_rng(1).normal(size=(4000, 5))
    covered = np.mean([m.low <= 0 <= m.high for m in map(student, samples)])
    assert abs(covered - 0.95) < 0.012  # three standard errors of 4000 trials


def test_equal_values_give_an_interval_of_no_width():
    assert student([2.0, 2.0, 2.0]).interval == (2.0, 2.0)


@pytest.mark.parametrize("bad", [[1.0], [[1.0, 2.0]], [1.0, float("nan")]])
def test_bad_values_are_refused(bad):
    with pytest.raises(ValueError, match="values"):
        student(bad)


def test_a_bad_confidence_is_refused():
    with pytest.raises(ValueError, match="confidence=95"):
        student([1.0, 2.0], confidence=95)

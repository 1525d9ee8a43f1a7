"""Every experiment, run once in a small size for all tests that look at it."""

from functools import cache

import pytest

from manyheads.experiments import sweep
from tests.experiments.small import SMALL


@pytest.fixture(scope="session")
def measured():
    """Return the small grid of an experiment."""
    return cache(lambda experiment: sweep.run(experiment, SMALL[experiment]))


@pytest.fixture(autouse=True)
def every_test_on_one_thread(one_thread):
    pass

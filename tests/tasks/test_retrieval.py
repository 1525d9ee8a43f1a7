import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.models.seeds import generator
from manyheads.tasks import retrieval


@given(st.integers(1, 12), st.data())
@settings(deadline=None, max_examples=30)
def test_exactly_k_minus_one_tokens_are_larger(n_tokens, data):
    k = data.draw(st.integers(1, n_tokens))
    x, y = retrieval.kth_largest(generator(data.draw(st.integers(0, 99)), "test"), 50, n_tokens, k)
    assert x.shape == (50, n_tokens, 1)
    assert y.shape == (50, 1)
    assert ((x[..., 0] > y).sum(-1) == k - 1).all()
    assert (x[..., 0] == y).any(-1).all()


def test_the_same_name_gives_the_same_data():
    draws = [retrieval.kth_largest(generator(0, "a"), 4, 3, 2) for _ in range(2)]
    assert torch.equal(draws[0][0], draws[1][0])


@pytest.mark.parametrize(("n_tokens", "k"), [(1, 1), (4, 1), (8, 3), (8, 8)])
def test_the_variance_is_that_of_the_data(n_tokens, k):
    _, y = retrieval.kth_largest(generator(0, "variance"), 200_000, n_tokens, k)
    assert float(y.var()) == pytest.approx(retrieval.kth_largest_variance(n_tokens, k), rel=0.02)


@pytest.mark.parametrize("k", [0, 5])
def test_a_rank_that_does_not_exist_is_refused(k):
    with pytest.raises(ValueError, match=f"k={k} must lie between 1 and n_tokens=4; nearest: {min(max(k, 1), 4)}"):
        retrieval.kth_largest(generator(0, "x"), 2, 4, k)
    with pytest.raises(ValueError, match=f"k={k} must lie between 1 and n_tokens=4"):
        retrieval.kth_largest_variance(4, k)

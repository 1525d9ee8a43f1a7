import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.models.seeds import generator
from manyheads.tasks import pairs


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_it_is_the_largest_of_all_pairs(n_tokens, d, seed):
    matrix = torch.randn(d, d, generator=generator(seed, "matrix"), dtype=torch.float64)
    x, y = pairs.draw(generator(seed, "tokens"), 3, n_tokens, matrix)
    assert x.shape == (3, n_tokens, d)
    assert (x.abs() <= 1).all()
    for tokens, value in zip(x, y, strict=True):
        largest = max(float(s @ matrix @ t) for s in tokens for t in tokens)
        assert value.item() == pytest.approx(largest, rel=1e-12)


def test_order_does_not_matter():
    x, y = pairs.draw(generator(0, "tokens"), 2, 6, torch.eye(2))
    assert torch.equal(pairs.max_pair(x.flip(1), torch.eye(2)), y)

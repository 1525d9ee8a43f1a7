import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.models.positions import alibi_bias, alibi_slopes, rotate

sizes = st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(0, 3)).map(lambda s: (s[0], 2 * s[1], s[2]))


@settings(deadline=None, max_examples=30)
@given(sizes, st.integers(0, 2**31))
def test_rotation_is_the_textbook_one_and_leaves_the_rest_alone(size, seed):
    n_tokens, rotary_dim, rest = size
    x = torch.randn(n_tokens, rotary_dim + rest, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    expected = x.clone()
    for t in range(n_tokens):
        for i in range(rotary_dim // 2):
            angle = t * 10_000 ** (-2 * i / rotary_dim)
            turned = complex(x[t, 2 * i], x[t, 2 * i + 1]) * complex(math.cos(angle), math.sin(angle))
            expected[t, 2 * i], expected[t, 2 * i + 1] = turned.real, turned.imag
    torch.testing.assert_close(rotate(x, rotary_dim), expected, rtol=0, atol=1e-12)
    assert torch.equal(rotate(x, rotary_dim)[:, rotary_dim:], x[:, rotary_dim:])


@settings(deadline=None, max_examples=30)
@given(sizes, st.integers(0, 2**31))
def test_inner_products_of_rotated_vectors_depend_on_the_offset_alone(size, seed):
    n_tokens, rotary_dim, rest = size
    q, k = torch.randn(2, 1, rotary_dim + rest, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    scores = rotate(q.expand(n_tokens, -1), rotary_dim) @ rotate(k.expand(n_tokens, -1), rotary_dim).T
    torch.testing.assert_close(scores[1:, 1:], scores[:-1, :-1], rtol=0, atol=1e-11)


def test_rotation_keeps_lengths_and_the_first_token():
    x = torch.randn(2, 3, 7, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(rotate(x, 8).norm(dim=-1), x.norm(dim=-1), rtol=1e-12, atol=0)
    assert torch.equal(rotate(x, 8)[..., 0, :], x[..., 0, :])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_rotation_keeps_the_type_and_computes_angles_in_float32(dtype):
    x = torch.ones(300, 4, dtype=dtype)
    turned = rotate(x, 4)
    assert turned.dtype == dtype
    # Position 299 itself has no bfloat16: angles of that type would be off by up to half a radian.
    exact = rotate(x.double(), 4)
    torch.testing.assert_close(turned.double(), exact, rtol=0, atol=max(torch.finfo(dtype).eps, 1e-4))


@pytest.mark.parametrize("n_heads", [1, 2, 3, 8, 12])
def test_slopes_are_geometric(n_heads):
    slopes = alibi_slopes(n_heads, dtype=torch.float64)
    assert slopes.tolist() == pytest.approx([2 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)], rel=1e-14)


def test_slopes_of_eight_heads_are_those_of_the_paper():
    assert alibi_slopes(8).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_bias_falls_with_distance_on_both_sides():
    bias = alibi_bias(2, 3, dtype=torch.float64)
    distance = torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]], dtype=torch.float64)
    torch.testing.assert_close(bias, torch.stack([-distance / 16, -distance / 256]), rtol=0, atol=0)


def test_everything_stays_on_its_device():
    assert rotate(torch.empty(5, 4, device="meta"), 4).is_meta
    assert alibi_bias(2, 5, device="meta").is_meta

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.models.checks import divisors
from manyheads.models.schedules import SCHEDULES, by_name, geometric, linear, prism, reverse, shuffled, uniform

widths = st.integers(1, 2000)


@st.composite
def ends(draw):
    d_model = draw(widths)
    head_counts = st.sampled_from(divisors(d_model))
    return draw(st.integers(1, 30)), d_model, draw(head_counts), draw(head_counts)


@given(ends())
def test_every_entry_divides_d_model(arguments):
    n_layers, d_model, first, last = arguments
    wide, narrow = d_model // min(first, last), d_model // max(first, last)
    for heads in (
        uniform(n_layers, d_model, first),
        prism(n_layers, d_model, wide, narrow),
        linear(n_layers, d_model, first, last),
        geometric(n_layers, d_model, first, last),
    ):
        assert isinstance(heads, tuple)
        assert len(heads) == n_layers
        assert all(type(count) is int and d_model % count == 0 for count in heads)


@pytest.mark.parametrize("interpolated", [linear, geometric])
@given(arguments=ends())
def test_interpolation_runs_from_end_to_end_without_turning_back(interpolated, arguments):
    n_layers, d_model, first, last = arguments
    heads = interpolated(n_layers, d_model, first, last)
    assert heads[0] == first
    assert heads[-1] == (last if n_layers > 1 else first)
    assert list(heads) == sorted(heads, reverse=first > last)


@pytest.mark.parametrize("interpolated", [linear, geometric])
@given(arguments=ends())
def test_interpolation_backwards_is_the_reverse(interpolated, arguments):
    n_layers, d_model, first, last = arguments
    if n_layers > 1:
        assert interpolated(n_layers, d_model, last, first) == reverse(interpolated(n_layers, d_model, first, last))


def test_interpolation_takes_the_nearest_divisor_and_the_smaller_of_two():
    assert linear(3, 8, 2, 4) == (2, 2, 4)  # 3 lies between 2 and 4
    assert linear(5, 12, 1, 12) == (1, 4, 6, 12, 12)  # from 1, 3.75, 6.5, 9.25, 12
    assert linear(11, 54, 54, 9)[7] == 18  # 54 - 0.7 * 45 = 22.5 lies between 18 and 27, but not in floating point
    assert geometric(5, 768, 1, 16) == (1, 2, 4, 8, 16)
    assert geometric(3, 12, 1, 12) == (1, 3, 12)  # sqrt(12) = 3.46


def test_prism_at_the_sizes_of_the_paper():
    assert prism(12, 768) == (3,) * 6 + (6,) * 6
    assert prism(24, 1024) == (4,) * 12 + (8,) * 12
    assert prism(24, 1536) == (6,) * 12 + (12,) * 12


@pytest.mark.parametrize(("switch", "n_wide"), [(0, 0), (0.25, 1), (0.5, 2), (0.6, 2), (1, 4), (0.375, 2)])
def test_prism_switches_where_it_is_told(switch, n_wide):
    assert prism(4, 512, switch=switch) == (2,) * n_wide + (4,) * (4 - n_wide)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(0, 5))
def test_reverse_and_shuffle_keep_the_layers(heads, seed):
    assert reverse(reverse(heads)) == tuple(heads)
    assert Counter(shuffled(heads, seed)) == Counter(heads)
    assert shuffled(heads, seed) == shuffled(tuple(heads), seed)


def test_shuffles_differ_between_seeds():
    heads = prism(12, 768)
    assert len({shuffled(heads, seed) for seed in range(5)}) == 5


@pytest.mark.parametrize("heads", [(), 3, "336", None, (3, 0), (3, 2.0)])
def test_reverse_and_shuffle_want_head_counts(heads):
    with pytest.raises(ValueError, match="heads"):
        reverse(heads)
    with pytest.raises(ValueError, match="heads"):
        shuffled(heads, 0)


ARGUMENTS = {
    "uniform": {"n_heads": 12},
    "prism": {},
    "linear": {"first": 3, "last": 12},
    "geometric": {"first": 3, "last": 12},
}


def test_every_schedule_is_reached_by_name():
    assert set(ARGUMENTS) == set(SCHEDULES)
    for name, schedule in SCHEDULES.items():
        arguments = {"n_layers": 6, "d_model": 768, **ARGUMENTS[name]}
        assert by_name(name, **arguments) == schedule(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uniform(12, 768, 5), "n_heads=5 does not divide d_model=768; nearest divisors: 4, 6"),
        (lambda: uniform(0, 768, 6), "n_layers=0 must be a positive integer; nearest: 1"),
        (lambda: uniform(12, 768.0, 6), "d_model=768.0 must be a positive integer; nearest: 768"),
        (lambda: prism(12, 1023), "d_wide=256 does not divide d_model=1023; nearest divisors: 93, 341"),
        (lambda: prism(12, 256, d_narrow=100), "d_narrow=100 does not divide d_model=256; nearest divisors: 64, 128"),
        (lambda: prism(12, 768, 128, 256), "d_narrow=256 must not exceed d_wide=128"),
        (lambda: prism(12, 768, switch=1.5), "switch=1.5 must be a share of the layers from 0 to 1; nearest: 1.0"),
        (lambda: prism(12, 768, switch=-1), "switch=-1 must be a share of the layers from 0 to 1; nearest: 0.0"),
        (lambda: prism(12, 768, switch=float("nan")), "nearest: 0.5"),
        (lambda: prism(12, 768, switch="late"), "nearest: 0.5"),
        (lambda: by_name(["prism"]), "unknown schedule ['prism']"),
        (lambda: linear(12, 768, 5, 12), "first=5 does not divide d_model=768; nearest divisors: 4, 6"),
        (lambda: geometric(12, 768, 3, 13), "last=13 does not divide d_model=768; nearest divisors: 12, 16"),
        (
            lambda: by_name("prims", n_layers=12),
            "unknown schedule 'prims'; did you mean 'prism'? known: uniform, prism, linear, geometric",
        ),
        (
            lambda: by_name("prism", n_layer=12),
            "unknown argument of schedule 'prism' 'n_layer'; did you mean 'n_layers'? "
            "known: n_layers, d_model, d_wide, d_narrow, switch",
        ),
        (
            lambda: by_name("linear", n_layers=12, d_model=768),
            "schedule 'linear' also needs first, last; its arguments: n_layers, d_model, first, last",
        ),
    ],
)
def test_bad_arguments_are_named_with_their_nearest_valid_choice(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()

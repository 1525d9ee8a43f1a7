import pytest

from manyheads.experiments import kth_largest
from tests.experiments.small import SMALL


def test_the_maximum_is_learned_and_easier_than_the_second(measured):
    grid = measured(kth_largest)
    assert (grid.at(k=1)["nmse"] < 0.2).all()
    assert (grid.at(k=2)["nmse"] > grid.at(k=1)["nmse"]).all()


def test_only_the_numbers_handed_over_change_between_widths():
    narrow, wide = (kth_largest.spec(SMALL[kth_largest], n) for n in (1, 8))
    assert narrow.attention(0).d_value == 1
    assert wide.attention(0).d_value == 8
    assert (narrow.d_model, narrow.d_ff) == (wide.d_model, wide.d_ff)


def test_a_rank_beyond_the_tokens_is_refused():
    with pytest.raises(ValueError, match=r"ks=\(4,\) asks for more"):
        kth_largest.Config(n_tokens=(3,), ks=(4,))

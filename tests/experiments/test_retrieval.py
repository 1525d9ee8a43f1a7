import numpy as np
import pytest

from manyheads.experiments import retrieval
from manyheads.reporting import recordings

SMALL = retrieval.Config(n_tokens=(4,), ks=(1, 2), d_heads=(2,), n_seeds=2, n_steps=200, eval_size=1024)


@pytest.fixture(scope="module")
def result():
    return retrieval.run(SMALL)


def test_the_maximum_is_learned_and_easier_than_the_second(result):
    assert result.nmse.shape == (1, 2, 1, 2)
    assert (result.nmse[0, 0] < 0.2).all()
    assert (result.nmse[0, 1] > result.nmse[0, 0]).all()


def test_the_same_seed_gives_the_same_bits(result):
    assert np.array_equal(retrieval.run(SMALL).nmse, result.nmse)


def test_first_losses_are_those_of_the_whole_run():
    first = retrieval.first_losses(SMALL, 7)
    whole = retrieval.train(SMALL, 4, 1, 2)
    assert first == np.mean([member.losses[:7] for member in whole], axis=0).tolist()


def test_only_the_numbers_handed_over_change_between_widths():
    narrow, wide = (retrieval.spec(SMALL, n) for n in (1, 8))
    assert narrow.attention(0).d_value == 1
    assert wide.attention(0).d_value == 8
    assert (narrow.d_model, narrow.d_ff) == (wide.d_model, wide.d_ff)


def test_a_config_survives_json():
    assert retrieval.Config(**recordings.plain(SMALL)) == SMALL


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profile": "ful"}, "unknown profile 'ful'; did you mean 'full'"),
        ({"n_tokens": (3,), "ks": (4,)}, r"ks=\(4,\) asks for more"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        retrieval.Config(**arguments)

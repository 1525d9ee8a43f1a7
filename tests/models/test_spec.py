import dataclasses
import json
import re
from itertools import product

import numpy as np
import pytest

from manyheads.models import AttentionSpec

# What a row or column label of the docstring's table asks for, at E = 16, H = 4.
ROWS = {
    "d_head, any size": {"d_head": 6},
    "d_value, any size": {"d_value": 3},
    "n_kv_heads < n_heads": {"n_kv_heads": 2},
    "rotary_dim": {"rotary_dim": 2},
    "qk_norm": {"qk_norm": True},
    "qk_norm with qk_gain": {"qk_norm": True, "qk_gain": True},
    "qk_gain without qk_norm": {"qk_gain": True},
    "latent_dim": {"latent_dim": 5},
    "bias": {"bias": True},
    "causal": {"causal": True},
}
COLUMNS = {
    "none": {},
    "rope": {"position": "rope"},
    "alibi": {"position": "alibi"},
    "latent_dim": {"latent_dim": 5},
}


def table() -> dict[tuple[str, str], bool]:
    """The legal combinations as the docstring shows them."""
    lines = [line.strip() for line in AttentionSpec.__doc__.splitlines()]
    rules = [number for number, line in enumerate(lines) if line and set(line) == {"=", " "}]
    header, body = lines[rules[0] + 1], lines[rules[1] + 1 : rules[2]]
    columns = header.split()[1:]
    cells = {}
    for line in body:
        *words, last_columns = line.rsplit(maxsplit=len(columns))[0], line.rsplit(maxsplit=len(columns))[1:]
        cells |= {
            (words[0], column): {"yes": True, "no": False}[cell]
            for column, cell in zip(columns, last_columns, strict=True)
        }
    return cells


def is_legal(**options) -> bool:
    try:
        AttentionSpec(d_model=16, n_heads=4, **options)
    except ValueError:
        return False
    return True


def test_the_table_has_the_rows_and_columns_tested_here():
    assert set(table()) == set(product(ROWS, COLUMNS))


@pytest.mark.parametrize(("row", "column"), list(product(ROWS, COLUMNS)))
def test_the_table_says_what_the_code_does(row, column):
    assert is_legal(**ROWS[row] | COLUMNS[column]) == table()[row, column]


def test_the_table_decides_every_combination_of_more_than_two_options():
    cells = table()
    norms = [(), ("qk_norm",), ("qk_norm with qk_gain",), ("qk_gain without qk_norm",)]
    switches = [((), (row,)) for row in ROWS if not row.startswith("qk_")]
    counted = 0
    for position, norm, *rest in product(("none", "rope", "alibi"), norms, *switches):
        rows = [*norm, *(row for switch in rest for row in switch)]
        columns = [position, *(["latent_dim"] if "latent_dim" in rows else [])]
        options = COLUMNS[position].copy()
        for row in rows:
            options |= ROWS[row]
        assert is_legal(**options) == all(cells[row, column] for row in rows for column in columns), (position, rows)
        counted += 1
    assert counted == 3 * 4 * 2**7


def test_sizes_are_filled_in():
    spec = AttentionSpec(64, 4, position="rope")
    assert (spec.d_head, spec.d_value, spec.n_kv_heads, spec.rotary_dim) == (16, 16, 4, 16)
    assert spec == AttentionSpec(64, 4, d_head=16, d_value=16, n_kv_heads=4, position="rope", rotary_dim=16)
    assert hash(spec) == hash(dataclasses.replace(spec))
    assert AttentionSpec(64, 4).rotary_dim is None


def test_d_model_need_not_be_a_multiple_of_n_heads_when_d_head_is_given():
    spec = AttentionSpec(d_model=1023, n_heads=8, d_head=25)
    assert (spec.d_head, spec.d_value) == (25, 25)


def test_d_value_follows_a_given_d_head():
    assert AttentionSpec(64, 4, d_head=6).d_value == 6


def test_replace_keeps_filled_in_sizes_as_documented():
    spec = dataclasses.replace(AttentionSpec(64, 4), n_heads=8)
    assert (spec.d_head, spec.n_kv_heads) == (16, 4)
    again = dataclasses.replace(spec, n_heads=8, d_head=None, d_value=None, n_kv_heads=None, rotary_dim=None)
    assert again == AttentionSpec(64, 8)


def test_a_spec_is_frozen_and_survives_json():
    spec = AttentionSpec(64, 4, position="rope", qk_norm=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.n_heads = 8
    assert AttentionSpec(**json.loads(json.dumps(dataclasses.asdict(spec)))) == spec
    numpys = AttentionSpec(np.int64(64), np.int32(4), qk_norm=True, qk_eps=np.float32(0.5))
    assert AttentionSpec(**json.loads(json.dumps(dataclasses.asdict(numpys)))) == numpys


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_heads": 5}, "n_heads=5 does not divide d_model=768; nearest divisors: 4, 6; or give d_head"),
        ({"n_heads": 769}, "n_heads=769 does not divide d_model=768; nearest divisors: 768; or give d_head"),
        ({"n_heads": 0}, "n_heads=0 must be a positive integer; nearest: 1"),
        ({"d_model": True}, "d_model=True must be a positive integer"),
        ({"d_model": None}, "d_model=None must be a positive integer"),
        ({"d_head": 2.5}, "d_head=2.5 must be a positive integer; nearest: 2"),
        ({"d_value": -1}, "d_value=-1 must be a positive integer; nearest: 1"),
        ({"latent_dim": 0}, "latent_dim=0 must be a positive integer; nearest: 1"),
        ({"n_kv_heads": 5}, "n_kv_heads=5 does not divide n_heads=12; nearest divisors: 4, 6"),
        ({"n_kv_heads": 24}, "n_kv_heads=24 does not divide n_heads=12; nearest divisors: 12"),
        ({"position": "ropes"}, "unknown position 'ropes'; did you mean 'rope'? known: none, rope, alibi"),
        ({"position": None}, "unknown position None"),
        ({"rotary_dim": 8}, "rotary_dim=8 needs position='rope', not 'none'; or leave it None"),
        ({"position": "rope", "rotary_dim": 7}, "rotary_dim=7 must be even and at most d_head=64; nearest: 6, 8"),
        ({"position": "rope", "rotary_dim": 1}, "rotary_dim=1 must be even and at most d_head=64; nearest: 2"),
        ({"position": "rope", "rotary_dim": 66}, "rotary_dim=66 must be even and at most d_head=64; nearest: 64"),
        (
            {"position": "rope", "d_head": 25},
            "rotary_dim=25 (from d_head) must be even and at most d_head=25; nearest: 24",
        ),
        (
            {"position": "rope", "d_head": 1},
            "position='rope' turns pairs of dimensions, d_head=1 has none; nearest d_head: 2",
        ),
        ({"qk_gain": True}, "qk_gain=True needs qk_norm=True"),
        ({"qk_norm": 1}, "qk_norm=1 must be True or False"),
        ({"causal": "yes"}, "causal='yes' must be True or False"),
        ({"qk_eps": -1e-6}, "qk_eps=-1e-06 must be a finite number of at least 0; nearest: 0"),
        ({"qk_eps": float("nan")}, "qk_eps=nan must be a finite number"),
        ({"qk_eps": float("inf")}, "qk_eps=inf must be a finite number"),
        ({"latent_dim": 8, "n_kv_heads": 4}, "n_kv_heads=4 shares them between n_heads=12; nearest: n_kv_heads=12"),
        ({"latent_dim": 8, "position": "rope"}, "keys read from a latent would need a decoupled rotary part"),
    ],
)
def test_bad_arguments_are_named_with_their_nearest_valid_choice(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        AttentionSpec(**{"d_model": 768, "n_heads": 12} | options)

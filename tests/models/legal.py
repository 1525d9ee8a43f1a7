"""Every legal kind of attention layer at a small size, for the tests of this folder."""

from itertools import product

from manyheads.models import AttentionSpec

POSITIONS = {
    "none": {},
    "rope": {"position": "rope"},
    "partial-rope": {"position": "rope", "rotary_dim": 2},
    "alibi": {"position": "alibi"},
}
KEYS = {
    "plain": {},
    "grouped": {"n_kv_heads": 2},
    "one-key": {"n_kv_heads": 1},
    "latent": {"latent_dim": 5},
}
NORMS = {"": {}, "norm": {"qk_norm": True}, "gain": {"qk_norm": True, "qk_gain": True}}
VALUES = {"": {}, "d_value": {"d_value": 3}}


def specs() -> dict[str, AttentionSpec]:
    """All combinations by a readable name: E = 10, H = 4, D = 6."""
    found = {}
    for position, keys, norm, value, bias, causal in product(
        POSITIONS, KEYS, NORMS, VALUES, (False, True), (False, True)
    ):
        if keys == "latent" and "rope" in position:
            continue
        name = "-".join(filter(None, [position, keys, norm, value, "bias" * bias, "causal" * causal]))
        options = POSITIONS[position] | KEYS[keys] | NORMS[norm] | VALUES[value]
        found[name] = AttentionSpec(d_model=10, n_heads=4, d_head=6, bias=bias, causal=causal, **options)
    return found

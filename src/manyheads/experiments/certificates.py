"""Chapter 3: pairs of inputs that one random attention layer confuses.

Tokens lie in [-1, 1]^2. How wide a gap of the target, max over s, t of -x(s)' x(t), is found between two inputs of the
same state, against the state's dimension E, for a nonlinear and for a linear embedding?
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manyheads.experiments import depth, sweep
from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.tasks import pairs
from manyheads.theory import collisions, states

TARGET_LIPSCHITZ = 2 * math.sqrt(2)
"""Of the target over the box: 2 sqrt(2) ||A||, with A = -I and tokens of length at most sqrt(2)."""


@dataclass(frozen=True, kw_only=True)
class Config(sweep.Config):
    """What to search.

    Attributes
    ----------
    embeddings, n_tokens, widths
        Kinds of embedding, lengths T, and state dimensions E of the layers (two heads, E even).
    n_seeds
        Random layers per setting.
    n_starts, walk
        Starts and steps of the search for a pair.
    """

    PROFILES: ClassVar = {
        "gpu": {"n_tokens": (4, 8), "widths": (4, 8, 16, 32), "n_seeds": 5},
        "full": {"n_tokens": (4, 8, 16), "widths": (4, 8, 16, 24, 32), "n_seeds": 5},
    }
    AXES: ClassVar = {"embedding": "embeddings", "n_tokens": "n_tokens", "width": "widths"}

    embeddings: tuple[str, ...] = ("mlp", "linear")
    n_tokens: tuple[int, ...] = (4,)
    widths: tuple[int, ...] = (4, 8)
    n_seeds: int = 2
    n_starts: int = 6
    walk: int = 80


def target(x: Tensor) -> Tensor:
    """Largest score of a pair of tokens ``[T, 2]``."""
    return pairs.max_pair(x, depth.matrix(2).to(x))[0]


def random_layer(width: int, embedding: str, seed: int, device: str = "cpu") -> Encoder:
    """A one-layer encoder with two heads and weights drawn by name, in float64."""
    spec = EncoderSpec(d_in=2, d_out=1, d_model=width, heads=(2,), d_ff=64, embedding=embedding)
    return seeds.initialise(Encoder(spec, device=device, dtype=torch.float64), seed)


def certify(config, encoder: Encoder, n_tokens: int, seed: int, prove: bool = False) -> collisions.Certificate:
    """Search for a pair of inputs that a one-layer encoder's attention map confuses; ``prove`` an exact collision."""
    constants = {"jacobian_lipschitz": states.jacobian_lipschitz(encoder, -1.0, 1.0)} if prove else {}
    start = 2 * torch.rand(n_tokens, 2, generator=seeds.generator(seed, "collisions", "x0"), dtype=torch.float64) - 1
    return collisions.certify(
        states.encoder_state(encoder, reduced=True),
        target,
        start.to(config.device),
        -1.0,
        1.0,
        n_starts=config.n_starts,
        n_steps=config.walk,
        seed=seed,
        target_lipschitz=TARGET_LIPSCHITZ,
        **constants,
    )


def found(config: Config, embedding: str, n_tokens: int, width: int) -> list[collisions.Certificate]:
    """Search one setting: a certificate a layer."""
    layers = {seed: random_layer(width, embedding, seed, config.device) for seed in _seeds(config)}
    return [certify(config, layer, n_tokens, seed, prove=True) for seed, layer in layers.items()]


def measure(config: Config, embedding: str, n_tokens: int, width: int) -> dict[str, list[float]]:
    """Of the best pair of every layer, ``half_gap``: half the gap of its targets; ``distance``: that of its states.

    ``bound``: the error of every decoder of that layer, 0 where no exact collision is proved.
    """
    certificates = found(config, embedding, n_tokens, width)
    return {
        "half_gap": [certificate.target_gap / 2 for certificate in certificates],
        "distance": [certificate.state_distance for certificate in certificates],
        "bound": [certificate.exact_bound or 0.0 for certificate in certificates],
    }


def replay(config: Config, recorded=None) -> dict[str, list]:
    """Pairs of the first setting, and what is true of them: ``distance`` of their states and ``gap`` of their targets.

    A search amplifies rounding step by step, so another machine walks elsewhere; what it found stays a collision.
    """
    setting = {axis: values[0] for axis, values in config.axes.items()}
    if recorded is None:
        pairs_ = torch.stack([torch.stack([c.x, c.x_other]) for c in found(config, **setting)]).cpu()
    else:
        pairs_ = torch.tensor(recorded["pairs"], dtype=torch.float64)
    distances, gaps = [], []
    for seed, pair in zip(_seeds(config), pairs_, strict=True):
        layer = random_layer(setting["width"], setting["embedding"], seed)
        state = states.encoder_state(layer, reduced=True)
        with torch.no_grad():
            distances.append(float(torch.dist(*map(state, pair))))
        gaps.append(float(target(pair[0]) - target(pair[1])))
    return {"pairs": pairs_.tolist(), "distance": distances, "gap": gaps}


def _seeds(config: Config) -> range:
    return range(config.seed, config.seed + config.n_seeds)

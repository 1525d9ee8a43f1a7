"""Chapter 3: pairs of inputs that one random attention layer confuses.

Tokens lie in [-1, 1]^2. How wide a gap of the target, max over s, t of -x(s)' x(t), is found between two inputs of the
same state, against the state's dimension E, for a nonlinear and for a linear embedding?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from manyheads.experiments import depth, sweep
from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.tasks import pairs
from manyheads.theory import collisions, rigorous, states


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


def certify(config: Config, encoder: Encoder, n_tokens: int, seed: int) -> collisions.Certificate:
    """Search for a pair of inputs that a one-layer encoder's attention map confuses."""
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
    )


def found(config: Config, embedding: str, n_tokens: int, width: int) -> dict[Encoder, collisions.Certificate]:
    """Search one setting: layers and the best pair of each."""
    layers = [(seed, random_layer(width, embedding, seed, config.device)) for seed in _seeds(config)]
    return {layer: certify(config, layer, n_tokens, seed) for seed, layer in layers}


def measure(config: Config, embedding: str, n_tokens: int, width: int) -> dict[str, list[float]]:
    """Of the best pair of every layer, ``half_gap``: half the gap of its targets; ``distance``: that of its states.

    ``bound``: the error of every decoder of that layer, by :func:`manyheads.theory.rigorous.prove`; 0 where no exact
    collision is proved.
    """
    pairs_ = found(config, embedding, n_tokens, width)
    proofs = [rigorous.prove(layer, c.x, c.x_other, depth.matrix(2)) for layer, c in pairs_.items()]
    return {
        "half_gap": [c.target_gap / 2 for c in pairs_.values()],
        "distance": [c.state_distance for c in pairs_.values()],
        "bound": [proof.error_at_least if proof else 0.0 for proof in proofs],
    }


def replay(config: Config, recorded: Mapping[str, Any] | None = None) -> dict[str, list]:
    """Pairs of the first setting, and what is true of them: ``distance`` of their states and ``gap`` of their targets.

    A search amplifies rounding step by step, so another machine walks elsewhere; what it found stays a collision.
    """
    setting = {axis: values[0] for axis, values in config.axes.items()}
    if recorded is None:
        pairs_ = torch.stack([torch.stack([c.x, c.x_other]) for c in found(config, **setting).values()]).cpu()
    else:
        pairs_ = torch.tensor(recorded["pairs"], dtype=torch.float64)
    distances, gaps = [], []
    for seed, pair in zip(_seeds(config), pairs_, strict=True):
        layer = random_layer(setting["width"], setting["embedding"], seed)
        state = states.encoder_state(layer, reduced=True)
        with torch.no_grad():
            distances.append(float(torch.dist(state(pair[0]), state(pair[1]))))
        gaps.append(float(target(pair[0]) - target(pair[1])))
    return {"pairs": pairs_.tolist(), "distance": distances, "gap": gaps}


def _seeds(config: Config) -> range:
    return range(config.seed, config.seed + config.n_seeds)

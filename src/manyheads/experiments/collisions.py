"""Chapter 3: certificates that one attention layer confuses inputs, for random layers and for trained ones.

Random layers, tokens in [-1, 1]^2: how wide a gap of the target max over s, t of -x(s)' x(t) can be certified, against
the state's dimension E, for a nonlinear and for a linear embedding. Trained layers: what the certificate says of their
map, next to the error that the trained network in fact makes on the certified pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from manyheads.experiments import common, depth
from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.tasks import pairs
from manyheads.theory import collisions, states

_PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"n_tokens": (4,), "widths": (4, 8), "n_seeds": 2, "n_trained": 2, "n_steps": 200},
    "gpu": {"n_tokens": (4, 8), "widths": (4, 8, 16, 32), "n_seeds": 5, "n_trained": 4, "n_steps": 2000},
    "full": {"n_tokens": (4, 8, 16), "widths": (4, 8, 16, 24, 32), "n_seeds": 5, "n_trained": 6, "n_steps": 2000},
}
EMBEDDINGS = ("mlp", "linear")


@dataclass(frozen=True)
class Config:
    """What to certify. Fields left out come from the profile.

    Attributes
    ----------
    profile
        ``quick`` (seconds on a laptop), ``gpu`` or ``full``.
    n_tokens, widths
        Lengths T, and state dimensions E of the random layers (two heads, E even).
    n_seeds
        Random layers per setting.
    n_trained, n_steps
        Trained layers at the longest length, and their training steps.
    n_starts, walk
        Starts and steps of the search for a pair.
    seed, device
        Base seed, and where to run.
    """

    profile: str = "quick"
    n_tokens: tuple[int, ...] | None = None
    widths: tuple[int, ...] | None = None
    n_seeds: int | None = None
    n_trained: int | None = None
    n_steps: int | None = None
    n_starts: int = 6
    walk: int = 80
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        common.fill(self, _PRESETS)


@dataclass(frozen=True)
class Result:
    """Certified errors, in the unit of the target.

    ``half_gap`` has shape [embedding, len(n_tokens), len(widths), n_seeds]: half the target gap of the best pair found
    whose states agree to ``distance`` (same shape). ``trained_bound`` and ``trained_error``, [n_trained]: the same for
    the map of a trained layer, and the larger of its network's errors on that pair.
    """

    n_tokens: tuple[int, ...]
    widths: tuple[int, ...]
    half_gap: np.ndarray
    distance: np.ndarray
    trained_bound: np.ndarray
    trained_error: np.ndarray


def certify(config: Config, encoder: Encoder, n_tokens: int, matrix: torch.Tensor, seed: int) -> collisions.Certificate:
    """Search for a pair of inputs that a one-layer encoder's attention map confuses."""

    def target(x):
        return pairs.max_pair(x, matrix)[0]

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


def random_layer(config: Config, width: int, embedding: str, seed: int) -> Encoder:
    """A one-layer encoder with two heads and weights drawn by name, in float64."""
    spec = EncoderSpec(d_in=2, d_out=1, d_model=width, heads=(2,), d_ff=64, embedding=embedding)
    return seeds.initialise(Encoder(spec, device=config.device, dtype=torch.float64), seed)


def shards(config: Config) -> list[tuple[str, int, int]]:
    """Independent parts of the work: an (embedding, T, E), and at the end the trained layers."""
    random = [(e, t, width) for e in EMBEDDINGS for t in config.n_tokens for width in config.widths]
    return [*random, ("trained", config.n_tokens[-1], 0)]


def run_shard(config: Config, shard: tuple[str, int, int]) -> list[list[float]]:
    """Certify one setting; a row (half gap, distance), or for trained layers (bound, error), a layer."""
    kind, n_tokens, width = shard
    matrix = depth.matrix(2).double().to(config.device)
    if kind == "trained":
        return [_trained(config, model, n_tokens, matrix, i) for i, model in enumerate(_layers(config, n_tokens))]
    rows = []
    for seed in range(config.seed, config.seed + config.n_seeds):
        found = certify(config, random_layer(config, width, kind, seed), n_tokens, matrix, seed)
        rows.append([found.target_gap / 2, found.state_distance])
    return rows


def _layers(config: Config, n_tokens: int) -> list[Encoder]:
    """Trained one-layer networks of the chapter's comparison."""
    settings = depth.Config(
        n_tokens=(n_tokens,),
        n_seeds=config.n_trained,
        n_steps=config.n_steps,
        d_in=2,
        seed=config.seed,
        device=config.device,
    )
    return [trained.model for trained in depth.train(settings, n_tokens, "one layer, E = 16")]


def _trained(config: Config, model: Encoder, n_tokens: int, matrix: torch.Tensor, seed: int) -> list[float]:
    model = model.double().requires_grad_(False)
    found = certify(config, model, n_tokens, matrix, seed)
    errors = [model(x[None])[0, 0] - pairs.max_pair(x, matrix)[0] for x in (found.x, found.x_other)]
    return [found.target_gap / 2, float(torch.stack(errors).abs().max())]


def combine(config: Config, parts: list[list[list[float]]]) -> Result:
    """Put the shards, in the order of :func:`shards`, into one result."""
    shape = (len(EMBEDDINGS), len(config.n_tokens), len(config.widths), config.n_seeds, 2)
    *random, trained = parts
    table = np.array(random).reshape(shape)
    bound, error = np.array(trained).T
    return Result(config.n_tokens, config.widths, table[..., 0], table[..., 1], bound, error)


def run(config: Config) -> Result:
    """Certify every setting of ``config``."""
    return combine(config, [run_shard(config, shard) for shard in shards(config)])


def first_losses(config: Config, n_steps: int) -> list[float]:
    """Half gaps of the first random layers: a search has no training losses, so these stand in for the replay."""
    kind, n_tokens, width = shards(config)[0]
    return [row[0] for row in run_shard(config, (kind, n_tokens, width))][:n_steps]


RECORDINGS = {"collisions": Config(profile="full")}

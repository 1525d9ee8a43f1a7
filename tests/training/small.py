"""A small task and a small model for the tests of this folder: the second largest of four numbers."""

import torch
import torch.nn.functional as F

from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.training import TrainConfig

SPEC = EncoderSpec(1, 1, 6, (2,), d_ff=8, norm=True, bias=True)


def batch(generator, n):
    x = torch.rand(n, 4, 1, generator=generator)
    return x, x.sort(dim=1, descending=True).values[:, 1]


def loss(model, batch):
    x, y = batch
    return F.mse_loss(model(x), y)


def model(seed=0, spec=SPEC, dtype=torch.float32) -> Encoder:
    return seeds.initialise(Encoder(spec, dtype=dtype), seed)


def config(**options) -> TrainConfig:
    return TrainConfig(**{"n_steps": 12, "batch_size": 8, "eval_size": 16, "learning_rate": 1e-2} | options)


def parameters(model) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])

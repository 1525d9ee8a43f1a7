"""Torch's optimisers, as configs describe them, and their memory as named tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.training.config import TrainConfig


def optimizer(config: TrainConfig, groups: list[dict], device: torch.device) -> torch.optim.Optimizer:
    """Torch's optimiser over parameter groups that :func:`group` made, in one kernel where there is one."""
    kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return kinds[config.optimizer](groups, lr=config.learning_rate, fused=device.type in ("cpu", "cuda"))


def group(config: TrainConfig, parameters: Sequence[Tensor]) -> dict:
    """Describe how ``parameters`` are updated, as torch's optimisers take it."""
    own = {"betas": config.betas} if config.optimizer == "adamw" else {"momentum": config.momentum}
    return {"params": parameters, "lr": config.learning_rate, "weight_decay": config.weight_decay, **own}


def state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's tensors by name."""
    memory = optimizer.state_dict()["state"]
    return {
        f"optimizer.{index}.{key}": value
        for index, values in memory.items()
        for key, value in values.items()
        if value is not None
    }


def load_state(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimiser the tensors that :func:`state` returned."""
    memory: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimizer":
            index, _, key = rest.partition(".")
            memory.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})

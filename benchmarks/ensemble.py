"""The ensemble against the loop over its members, and against two other ways to batch them.

Run ``python benchmarks/ensemble.py``; it takes about a minute. What is timed is one training step of all models, from
drawing the samples to the optimiser, with clipping: 16 one-layer encoders that learn the second largest of eight
numbers. Contestants take turns as in ``benchmarks/attention.py``; shown are medians of ratios with their quartiles. On
a machine that does other work too, trust the table for one thread: threads that wait for each other hurt the loop most.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import nullcontext
from dataclasses import replace

import torch
import torch.nn.functional as F
from attention import interleaved, ratio, table
from torch.func import grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from tqdm import tqdm

from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.training import TrainConfig, ensemble, loop

SIZES = ((8, 32), (8, 64), (16, 64), (16, 128), (32, 64), (64, 256))  # width E, samples in a batch
N_TOKENS = 8


def batch(generator, n):
    """Draw eight numbers and the second largest."""
    x = torch.rand(n, N_TOKENS, 1, generator=generator)
    return x, x.topk(2, dim=1).values[:, 1]


def loss(model, batch):
    """Mean squared error."""
    x, y = batch
    return F.mse_loss(model(x), y)


class GradientInside(ensemble.Stacked):
    """Vectorise the gradient, ``vmap(grad(...))``, instead of differentiating the vectorised loss."""

    def gradients(self, step):
        """Compute losses and gradients in one call for all."""

        def one(row, samples):
            def call(*args):
                return torch.func.functional_call(self.template, self._unflattened(row), args)

            return loss(call, samples)

        samples = self._draw(self.batch, f"batch {step}", self.configs[0].batch_size)
        with sdpa_kernel(SDPBackend.MATH), ensemble.ShortRows():
            self.gradient, values = vmap(grad_and_value(one))(self.flat.detach(), samples)
        return values


class TorchAttention(ensemble.Stacked):
    """The ensemble with torch's own unfused attention."""

    def _losses(self, *arguments):
        ours, ensemble.ShortRows = ensemble.ShortRows, nullcontext
        try:
            return super()._losses(*arguments)
        finally:
            ensemble.ShortRows = ours


def contestants(d_model: int, batch_size: int, n_models: int, device: str):
    """One step of all models, by name."""
    spec = EncoderSpec(1, 1, d_model, (1,), embedding="mlp")
    config = TrainConfig(n_steps=1000, batch_size=batch_size, clip_norm=1.0, device=device)
    configs = [replace(config, seed=seed) for seed in range(n_models)]

    def models():
        return [seeds.initialise(Encoder(spec), config.seed) for config in configs]

    def step(*trainees):
        def run():
            for trainee in trainees:
                trainee.gradients(0)
                trainee.update(0)

        return run

    def stacked(kind):
        return kind(models(), batch, loss, configs, batch, loss)

    singles = [loop.Single(m, batch, loss, c, batch, loss) for m, c in zip(models(), configs, strict=True)]
    kinds = {"ensemble": ensemble.Stacked, "vmap(grad)": GradientInside, "torch attention": TorchAttention}
    return {"loop": step(*singles)} | {name: step(stacked(kind)) for name, kind in kinds.items()}


def main() -> None:
    """Measure and print a table for two threads and one for one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", type=int, default=16, help="number of models (default 16)")
    parser.add_argument("--seconds", type=float, default=4.0, help="time per row (default 4)")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1], help="CPU threads (default 2, then 1)")
    arguments = parser.parse_args()
    synchronise = torch.cuda.synchronize if arguments.device.startswith("cuda") else lambda: None

    print(
        f"torch {torch.__version__} on {arguments.device}, {arguments.models} one-layer encoders, {N_TOKENS} tokens, "
        "float32; median ratio [quartiles], above 1: faster than the loop"
    )
    progress = tqdm(total=len(SIZES) * len(arguments.threads), unit="row", disable=None, leave=False)
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        rows = []
        for d_model, batch_size in SIZES:
            runs = contestants(d_model, batch_size, arguments.models, arguments.device)
            times = interleaved(runs, arguments.seconds, synchronise)
            progress.update()
            slowest = f"{1e3 * statistics.median(times['loop']):.1f}"
            row = [str(d_model), str(batch_size), slowest]
            rows.append(row + [ratio(times["loop"], times[name]) for name in list(runs)[1:]])
        header = ["d_model", "batch", "loop, ms a step", *(f"loop / {name}" for name in list(runs)[1:])]
        progress.clear()
        print(table(f"{threads} CPU thread(s)", header, rows))
    progress.close()


if __name__ == "__main__":
    main()

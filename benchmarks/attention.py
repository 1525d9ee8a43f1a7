"""Attention side by side: the fast path, the readable path and torch's own module; and the time a head count costs.

Run ``python benchmarks/attention.py``; it takes about half a minute. Contestants take turns within one process, in a
new random order each round, and every round gives one ratio: what slows the machine down slows all of them down. Shown
are the median of the ratios and, in brackets, their quartiles. Ratios travel between machines better than times; they
are measured, not asserted.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from tqdm import tqdm

from manyheads.models import Attention, AttentionSpec
from manyheads.models.checks import positive_int
from manyheads.models.seeds import generator

D_MODEL = 256
TOKENS = (128, 512)
HEADS = (1, 4, 16)
HEADS_AT_FIXED_WIDTH = (1, 2, 4, 8, 16, 32, 64)


def interleaved(contestants: dict[str, Callable[[], object]], seconds: float, synchronise) -> dict[str, list[float]]:
    """Time every contestant once a round, for ``seconds`` in all and at least five rounds."""
    for run in contestants.values():
        run()
    synchronise()
    times = {name: [] for name in contestants}
    order = list(contestants)
    shuffle = random.Random(0).shuffle
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[order[0]]) < 5:
        shuffle(order)
        for name in order:
            start = time.perf_counter()
            contestants[name]()
            synchronise()
            times[name].append(time.perf_counter() - start)
    return times


def ratio(times: list[float], to: list[float]) -> str:
    """Median and quartiles of the ratios, round by round."""
    low, middle, high = statistics.quantiles([a / b for a, b in zip(times, to, strict=True)], n=4)
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def steps(module: nn.Module, x: torch.Tensor, backward: bool, **arguments) -> Callable[[], object]:
    """One forward pass without gradients, or one forward and backward pass."""

    def forward():
        with torch.inference_mode():
            return module(x, **arguments)

    def forward_backward():
        module.zero_grad()
        y = module(x, **arguments)
        y.sum().backward()

    return forward_backward if backward else forward


class TorchAttention(nn.MultiheadAttention):
    """Torch's module, asked for what ours gives: self-attention, no weights."""

    def forward(self, x):
        """Return y alone."""
        return super().forward(x, x, x, need_weights=False)[0]


def count(text: str) -> int:
    """Read a number of at least 1 from the command line."""
    return positive_int("count", int(text))


def table(title: str, header: list[str], rows: list[list[str]]) -> str:
    """Lay out a Markdown table."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    padded = [
        "| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    return "\n".join([f"\n{title}\n", *padded])


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=count, default=4, help="sequences per pass (default 4)")
    parser.add_argument("--seconds", type=float, default=1.2, help="time per row (default 1.2)")
    parser.add_argument("--threads", type=count, default=1, help="CPU threads (default 1: least disturbed by others)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    try:
        device = torch.empty(0, device=arguments.device).device
    except (RuntimeError, AssertionError) as error:
        parser.error(f"argument --device: {arguments.device!r} cannot be used: {str(error).splitlines()[0]}")
    synchronise = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    n_rows = 2 * len(TOKENS) * len(HEADS) + 2 * len(TOKENS)
    progress = tqdm(total=n_rows, unit="row", disable=None, leave=False)  # None: quiet unless a person is watching

    def tokens(n_tokens):
        shape = (arguments.batch, n_tokens, D_MODEL)
        return torch.randn(shape, generator=generator(0, "benchmark", "tokens")).to(device)

    def measure(contestants):
        times = interleaved(contestants, arguments.seconds, synchronise)
        progress.update()
        return times

    peers, heads = [], []
    for backward in (False, True):
        kind = "forward + backward" if backward else "forward"
        for n_tokens in TOKENS:
            x = tokens(n_tokens)
            for n_heads in HEADS:
                ours = Attention(AttentionSpec(D_MODEL, n_heads), device=device)
                torchs = TorchAttention(D_MODEL, n_heads, bias=False, batch_first=True, device=device)
                ours.train(backward)
                torchs.train(backward)
                times = measure(
                    {
                        "fast": steps(ours, x, backward),
                        "reference": steps(ours, x, backward, reference=True),
                        "torch": steps(torchs, x, backward),
                    }
                )
                row = [kind, str(n_tokens), str(n_heads), f"{1e3 * statistics.median(times['fast']):.2f}"]
                peers.append(row + [ratio(times[name], times["fast"]) for name in ("reference", "torch")])
            layers = {n: Attention(AttentionSpec(D_MODEL, n), device=device) for n in HEADS_AT_FIXED_WIDTH}
            times = measure({str(n): steps(layer, x, backward) for n, layer in layers.items()})
            one = times[str(HEADS_AT_FIXED_WIDTH[0])]
            heads.append([kind, str(n_tokens), *(ratio(times[str(n)], one) for n in HEADS_AT_FIXED_WIDTH[1:])])
    progress.close()

    print(
        f"torch {torch.__version__} on {device}, {torch.get_num_threads()} CPU thread(s), float32, "
        f"d_model {D_MODEL}, batch {arguments.batch}; median ratio [quartiles]"
    )
    header = ["pass", "tokens", "heads", "fast, ms", "reference / fast", "torch.nn.MultiheadAttention / fast"]
    print(table("Fast path against its peers (above 1: the fast path is faster)", header, peers))
    header = ["pass", "tokens", *(f"H = {n}" for n in HEADS_AT_FIXED_WIDTH[1:])]
    print(table(f"Fast path with H heads of dimension {D_MODEL}/H against one head", header, heads))


if __name__ == "__main__":
    main()

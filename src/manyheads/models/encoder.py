"""An encoder that reads a sequence into one vector, at a class token: the model of the retrieval chapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch.types import Device

from manyheads.models.attention import Attention
from manyheads.models.checks import divisor, flag, positive_int
from manyheads.models.feedforward import KINDS, FeedForward
from manyheads.models.spec import POSITIONS, AttentionSpec
from manyheads.names import unknown

EMBEDDINGS = ("linear", "mlp")


@dataclass(frozen=True)
class EncoderSpec:
    """Sizes and options of an encoder. :class:`manyheads.models.Encoder` gives the equations.

    Parameters
    ----------
    d_in, d_out
        Dimension d of a token, and of the answer.
    d_model
        Width E of the stream.
    heads
        Number of heads of every layer, first to last: ``(2, 2)`` is two layers of two heads. Lists become tuples.
    d_head
        Dimension D of a query and a key, in every layer. Left out, a layer of H heads has D = E / H, and only then
        must H divide E.
    d_value
        Dimension C of a value. Left out, it is D.
    d_ff
        Hidden width of the feed-forward networks, and of the embedding ``"mlp"``. Left out, it is 4 E.
    ffn
        ``"gelu"``, ``"relu"``, ``"bilinear"`` or ``"swiglu"``: see :class:`manyheads.models.FeedForward`.
    norm
        Layer normalisation before every attention and feed-forward layer and before the output.
    embedding
        From token to stream: ``"linear"`` with bias, or ``"mlp"``, a ``gelu`` network with one hidden layer.
    position
        ``"none"``, ``"rope"`` or ``"alibi"``: see :class:`manyheads.models.AttentionSpec`.
    bias
        Learned biases in attention. All other linear maps have one.

    Raises
    ------
    ValueError
        For a size that is not a positive integer or does not fit the others, and for an unknown option. The message
        names the argument, the values and the nearest valid choices.

    Examples
    --------
    >>> EncoderSpec(d_in=2, d_out=1, d_model=32, heads=(2, 4)).attention(1).d_head
    8
    """

    d_in: int
    d_out: int
    d_model: int
    heads: tuple[int, ...]
    d_head: int | None = None
    d_value: int | None = None
    d_ff: int = None  # type: ignore[assignment] # filled in below
    ffn: str = "gelu"
    norm: bool = False
    embedding: str = "linear"
    position: str = "none"
    bias: bool = False

    def __post_init__(self) -> None:
        resolve = partial(object.__setattr__, self)  # the one moment in which a frozen dataclass may be written
        for name in ("d_in", "d_out", "d_model", "d_head", "d_value", "d_ff"):
            value = getattr(self, name)
            if value is not None or name in ("d_in", "d_out", "d_model"):
                resolve(name, positive_int(name, value))
        if self.d_ff is None:
            resolve("d_ff", 4 * self.d_model)
        for name, known in (("ffn", KINDS), ("embedding", EMBEDDINGS), ("position", POSITIONS)):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise ValueError(unknown(name, getattr(self, name), known))
        for name in ("norm", "bias"):
            flag(name, getattr(self, name))
        resolve("heads", self._heads())

    @property
    def n_layers(self) -> int:
        """Number of layers L: one per entry of ``heads``."""
        return len(self.heads)

    def attention(self, layer: int) -> AttentionSpec:
        """Describe the attention of layer 0, …, L - 1."""
        return AttentionSpec(
            d_model=self.d_model,
            n_heads=self.heads[layer],
            d_head=self.d_head,  # type: ignore[arg-type] # filled in there
            d_value=self.d_value,  # type: ignore[arg-type]
            position=self.position,
            bias=self.bias,
        )

    def _heads(self) -> tuple[int, ...]:
        if isinstance(self.heads, str) or not isinstance(self.heads, Sequence) or not self.heads:
            raise ValueError(
                f"heads={self.heads!r} must be a sequence of head counts, one per layer; nearest: {self._nearest()}"
            )
        heads = []
        for layer, count in enumerate(self.heads):
            name = f"heads[{layer}]"
            count = positive_int(name, count)
            if self.d_head is None:
                divisor(name, count, "d_model", self.d_model, otherwise="or give d_head")
            d_head = self.d_head or self.d_model // count
            if self.position == "rope" and d_head % 2:
                nearest = ", ".join(str(d) for d in (d_head - 1, d_head + 1) if d)
                raise ValueError(
                    f"position='rope' turns pairs of dimensions, {name}={count} has d_head={d_head}; "
                    f"nearest d_head: {nearest}"
                )
            heads.append(count)
        return tuple(heads)

    def _nearest(self) -> str:
        one_layer = isinstance(self.heads, int) and not isinstance(self.heads, bool) and self.heads > 0
        return repr((self.heads,)) if one_layer else "(1,)"


class Layer(nn.Module):
    """Attention, then a feed-forward network, each added to the stream it reads."""

    attention: Attention
    feedforward: FeedForward

    def __init__(self, spec: EncoderSpec, layer: int, device: Device = None, dtype: torch.dtype | None = None):
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.norm_1 = _norm(spec, **place)
        self.attention = Attention(spec.attention(layer), **place)
        self.norm_2 = _norm(spec, **place)
        self.feedforward = FeedForward(spec.d_model, spec.d_ff, spec.d_model, spec.ffn, **place)

    @overload
    def mix(
        self, x: Tensor, mask: Tensor | None = None, return_weights: Literal[False] = False, reference: bool = False
    ) -> Tensor: ...

    @overload
    def mix(
        self, x: Tensor, mask: Tensor | None, return_weights: Literal[True], reference: bool = False
    ) -> tuple[Tensor, Tensor]: ...

    def mix(
        self, x: Tensor, mask: Tensor | None = None, return_weights: bool = False, reference: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let the tokens of the stream read each other: ``[B, T, E]`` to the same, or with the weights."""
        read = self.attention(self.norm_1(x), mask, return_weights, reference)
        return (x + read[0], read[1]) if return_weights else x + read

    def feed(self, x: Tensor) -> Tensor:
        """Pass every token through the feed-forward network: ``[..., E]`` to the same."""
        return x + self.feedforward(self.norm_2(x))

    def forward(self, x: Tensor, mask: Tensor | None = None, reference: bool = False) -> Tensor:
        """Both, one after the other."""
        return self.feed(self.mix(x, mask, reference=reference))


class Encoder(nn.Module):
    r"""A residual encoder, read at a class token.

    Tokens :math:`x_1, \ldots, x_T` are embedded and the class token :math:`c` is appended as token T + 1, which attends
    and is attended to like any other. Every layer adds to the stream, and the class token's last state is the answer:

    .. math:: z^0 = (P(x_1), \ldots, P(x_T), c), \qquad u^l = z^{l-1} + \mathrm{Attention}_l(N(z^{l-1})),
        \qquad z^l = u^l + F_l(N(u^l)), \qquad y = W N(z^L_{T+1}) + b

    with :math:`P` the embedding, :math:`F_l` feed-forward networks, and :math:`N` layer normalisation (each its own),
    or the identity without ``norm``. Without positions the answer does not depend on the order of the tokens.

    Parameters
    ----------
    spec
        Sizes and options.
    device, dtype
        Where the parameters live and their type, as in torch's own modules; ``"meta"`` works.

    Attributes
    ----------
    embedding
        ``nn.Linear`` d to E, or a :class:`~manyheads.models.FeedForward`.
    class_token
        c, a vector ``[E]``.
    layers
        With ``norm_1``, ``attention``, ``norm_2`` and ``feedforward`` each.
    norm, head
        Before the output, and the output: ``nn.Linear`` E to d_out.

    Notes
    -----
    Torch's fused attention, which ``forward`` takes by default, has first derivatives in backward mode and no others.
    For the rest (``torch.func.jvp``, ``jacfwd`` and ``hessian``, a gradient of a gradient) ask for ``reference=True``.

    Weights start as torch starts any ``nn.Linear``, drawn from the global generator, and the class token like a row
    of one. For a start that no change of code can move, call :func:`manyheads.models.seeds.initialise`.

    Source: Vaswani et al. 2017, arXiv 1706.03762; class token, Devlin et al. 2018, arXiv 1810.04805; normalisation
    inside the residual branch, Xiong et al. 2020, arXiv 2002.04745.
    """

    spec: EncoderSpec
    embedding: Any  # an nn.Linear or a FeedForward, as the spec says
    class_token: nn.Parameter
    layers: Sequence[Layer]
    head: nn.Linear

    def __init__(self, spec: EncoderSpec, device: Device = None, dtype: torch.dtype | None = None):
        super().__init__()
        self.spec = spec
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        if spec.embedding == "linear":
            self.embedding = nn.Linear(spec.d_in, spec.d_model, **place)
        else:
            self.embedding = FeedForward(spec.d_in, spec.d_ff, spec.d_model, "gelu", **place)
        self.class_token = nn.Parameter(torch.empty(spec.d_model, **place))
        nn.init.uniform_(self.class_token, -(spec.d_model**-0.5), spec.d_model**-0.5)
        layers = nn.ModuleList(Layer(spec, layer, **place) for layer in range(spec.n_layers))
        self.layers = layers  # type: ignore[assignment] # a list of layers is what it is to everybody
        self.norm = _norm(spec, **place)
        self.head = nn.Linear(spec.d_model, spec.d_out, **place)

    def forward(self, x: Tensor, mask: Tensor | None = None, reference: bool = False) -> Tensor:
        """Read sequences into answers.

        Parameters
        ----------
        x
            ``[B, T, d_in]``.
        mask
            As in :class:`~manyheads.models.Attention`, True = may attend, over T + 1 positions of which the class token
            is the last: ``[T+1, T+1]`` or ``[B, T+1, T+1]``. All layers share it.
        reference
            Take the readable path of every :class:`~manyheads.models.Attention`: the same answers to rounding, slower,
            with derivatives of every order.

        Returns
        -------
        Tensor
            ``[B, d_out]``.

        Raises
        ------
        ValueError
            For a wrong shape of ``x``, or a wrong shape, type or device of ``mask``.
        """
        z = self.embed(x)
        *early, last = self.layers
        for layer in early:
            z = layer(z, mask, reference)
        # Only the class token is read, so the last feed-forward network is spared the others.
        return self.read(last.feed(last.mix(z, mask, reference=reference)[:, -1]))

    def embed(self, x: Tensor) -> Tensor:
        """Return the stream before the first layer, ``[B, T+1, E]``, the class token last."""
        if x.ndim != 3 or x.shape[-1] != self.spec.d_in:
            raise ValueError(f"x must have shape [B, T, d_in={self.spec.d_in}], not {list(x.shape)}")
        z = self.embedding(x)
        return torch.cat([z, self.class_token.expand(z.shape[0], 1, -1)], dim=1)

    def read(self, state: Tensor) -> Tensor:
        """Turn the class token's last state ``[B, E]`` into the answer ``[B, d_out]``."""
        return self.head(self.norm(state))

    def states(self, x: Tensor, mask: Tensor | None = None) -> tuple[list[Tensor], list[Tensor]]:
        """Return the stream before the first and after every layer, and the attention weights of every layer.

        L + 1 tensors ``[B, T+1, E]`` and L tensors ``[B, H, T+1, T+1]``; ``read`` of the last stream's last token is
        what ``forward`` returns. Both come from the readable path.
        """
        streams, weights = [self.embed(x)], []
        for layer in self.layers:
            mixed, weights_bhtt = layer.mix(streams[-1], mask, return_weights=True)
            streams.append(layer.feed(mixed))
            weights.append(weights_bhtt)
        return streams, weights

    def extra_repr(self) -> str:
        """Show the spec when the module is printed."""
        return str(self.spec)


def _norm(spec: EncoderSpec, **place: Any) -> nn.Module:
    return nn.LayerNorm(spec.d_model, **place) if spec.norm else nn.Identity()

"""What an attention layer is made of: one frozen, validated description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from manyheads.models.checks import at_least_zero, divisor, flag, positive_int
from manyheads.names import unknown

POSITIONS = ("none", "rope", "alibi")


@dataclass(frozen=True)
class AttentionSpec:
    """Sizes and options of one attention layer. :class:`manyheads.models.Attention` gives the equations.

    After construction every size holds a number: ``AttentionSpec(64, 4).d_head == 16``. Two descriptions of the same
    layer are therefore equal, whether a size was given or filled in.

    Parameters
    ----------
    d_model
        Width E of the stream of tokens.
    n_heads
        Number of heads H.
    d_head
        Dimension D of a query and a key. Left out, it is E / H, and only then must H divide E.
    d_value
        Dimension C of a value. Left out, it is D.
    n_kv_heads
        Number of groups G; the H / G query heads of a group share one key and one value head. Must divide H. Left
        out, it is H: plain multi-head attention. G = 1 is multi-query attention.
    position
        ``"none"``; ``"rope"``, which turns queries and keys by an angle that grows with their position; or
        ``"alibi"``, which lowers a score in proportion to the distance.
    rotary_dim
        With rope only: how many of the D dimensions turn, an even number. Left out, all of them.
    qk_norm
        Divide each query and each key of a head by its root mean square over the D dimensions, before rope.
    qk_gain
        With ``qk_norm`` only: multiply the result by a learned gain per head and dimension, 1 at the start.
    qk_eps
        Added to the mean square in ``qk_norm``. At 0 the query of a zero token is undefined (0/0).
    latent_dim
        Size c of one latent vector per token from which the keys and values of all heads are read: multi-head latent
        attention. It has one key and one value head per query head, and refuses rope: a rotation would stand between
        the latent and its up-projection, so rotary keys need a second, decoupled part, which this layer does not have.
    bias
        Learned biases on queries, keys, values and the output. The down-projection to a latent has none: it would
        merge with the biases of the up-projections.
    causal
        A token sees itself and the tokens before it, never those after it.

    Raises
    ------
    ValueError
        For a size that is not a positive integer or does not fit the others, and for options that exclude each other.
        The message names the argument, the values and the nearest valid choices.

    Notes
    -----
    Legal combinations (every option of a row with every option of a column; tested):

    =========================  =====  =====  =====  ==========
    option                     none   rope   alibi  latent_dim
    =========================  =====  =====  =====  ==========
    d_head, any size           yes    yes    yes    yes
    d_value, any size          yes    yes    yes    yes
    n_kv_heads < n_heads       yes    yes    yes    no
    rotary_dim                 no     yes    no     no
    qk_norm                    yes    yes    yes    yes
    qk_norm with qk_gain       yes    yes    yes    yes
    qk_gain without qk_norm    no     no     no     no
    latent_dim                 yes    no     yes    yes
    bias                       yes    yes    yes    yes
    causal                     yes    yes    yes    yes
    =========================  =====  =====  =====  ==========

    With rope, D must be even unless an even ``rotary_dim`` is given.

    ``dataclasses.replace`` starts from the numbers that were filled in, so a size you do not name stays as it is:
    ``replace(AttentionSpec(64, 4), n_heads=8)`` asks for 8 heads of dimension 16 in 4 groups. To have sizes filled in
    anew, say so: ``replace(spec, n_heads=8, d_head=None, d_value=None, n_kv_heads=None, rotary_dim=None)``.

    Sources: heads, Vaswani et al. 2017 (arXiv 1706.03762); groups, Ainslie et al. 2023 (arXiv 2305.13245); rope,
    Su et al. 2021 (arXiv 2104.09864); alibi, Press et al. 2022 (arXiv 2108.12409); normalised queries and keys,
    Henry et al. 2020 (arXiv 2010.04245); latent attention, DeepSeek-AI 2024 (arXiv 2405.04434).
    """

    d_model: int
    n_heads: int
    # Left out, these are filled in below, so that whoever reads a spec finds a number.
    d_head: int = None  # type: ignore[assignment]
    d_value: int = None  # type: ignore[assignment]
    n_kv_heads: int = None  # type: ignore[assignment]
    position: str = "none"
    rotary_dim: int | None = None
    qk_norm: bool = False
    qk_gain: bool = False
    qk_eps: float = 1e-6
    latent_dim: int | None = None
    bias: bool = False
    causal: bool = False

    def __post_init__(self) -> None:
        resolve = partial(object.__setattr__, self)  # the one moment in which a frozen dataclass may be written
        for name in ("d_model", "n_heads", "d_head", "d_value", "n_kv_heads", "rotary_dim", "latent_dim"):
            value = getattr(self, name)
            if value is not None or name in ("d_model", "n_heads"):
                resolve(name, positive_int(name, value))
        for name in ("qk_norm", "qk_gain", "bias", "causal"):
            flag(name, getattr(self, name))

        if self.d_head is None:
            divisor("n_heads", self.n_heads, "d_model", self.d_model, otherwise="or give d_head")
            resolve("d_head", self.d_model // self.n_heads)
        if self.d_value is None:
            resolve("d_value", self.d_head)
        if self.n_kv_heads is None:
            resolve("n_kv_heads", self.n_heads)
        divisor("n_kv_heads", self.n_kv_heads, "n_heads", self.n_heads)

        resolve("rotary_dim", self._rotary_dim())
        resolve("qk_eps", at_least_zero("qk_eps", self.qk_eps))
        self._check_norm()
        if self.latent_dim is not None:
            self._check_latent()

    def _rotary_dim(self) -> int | None:
        if not isinstance(self.position, str) or self.position not in POSITIONS:
            raise ValueError(unknown("position", self.position, POSITIONS))
        if self.position != "rope":
            if self.rotary_dim is not None:
                raise ValueError(
                    f"rotary_dim={self.rotary_dim} needs position='rope', not {self.position!r}; or leave it None"
                )
            return None
        largest = self.d_head - self.d_head % 2
        if largest == 0:
            raise ValueError("position='rope' turns pairs of dimensions, d_head=1 has none; nearest d_head: 2")
        turned = self.d_head if self.rotary_dim is None else self.rotary_dim
        if turned > largest or turned % 2:
            origin = " (from d_head)" if self.rotary_dim is None else ""
            valid = sorted({min(max(2, turned - turned % 2), largest), min(turned + turned % 2, largest)})
            raise ValueError(
                f"rotary_dim={turned}{origin} must be even and at most d_head={self.d_head}; "
                f"nearest: {', '.join(map(str, valid))}"
            )
        return turned

    def _check_norm(self) -> None:
        if self.qk_gain and not self.qk_norm:
            raise ValueError("qk_gain=True needs qk_norm=True (qk_norm=False was given)")

    def _check_latent(self) -> None:
        if self.n_kv_heads != self.n_heads:
            raise ValueError(
                f"latent_dim={self.latent_dim} gives every head its own keys and values, n_kv_heads={self.n_kv_heads} "
                f"shares them between n_heads={self.n_heads}; nearest: n_kv_heads={self.n_heads}"
            )
        if self.position == "rope":
            raise ValueError(
                f"latent_dim={self.latent_dim} refuses position='rope': keys read from a latent would need a decoupled "
                "rotary part, which this layer does not have; nearest: position='alibi' or 'none'"
            )

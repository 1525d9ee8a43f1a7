"""Compare texts that hold figures, on machines that round the last digits of a measured coordinate differently."""

import re

FIGURE = re.compile(r"(<figure class=.{0,3}mh-figure.*?</figure>)", flags=re.S)
NUMBER = re.compile(r"(-?\d+\.?\d*)")
POINTS = 0.05  # a fifteenth of a pixel


def same_up_to_rounding(one: str, other: str) -> bool:
    """Whether two texts are equal outside figures, and inside them but for numbers that differ by a hair."""
    ours, theirs = FIGURE.split(one), FIGURE.split(other)
    if len(ours) != len(theirs) or ours[::2] != theirs[::2]:
        return False
    return all(map(_same_figure, ours[1::2], theirs[1::2]))


def _same_figure(one: str, other: str) -> bool:
    ours, theirs = NUMBER.split(one), NUMBER.split(other)
    return (
        len(ours) == len(theirs)
        and ours[::2] == theirs[::2]
        and all(abs(float(a) - float(b)) <= POINTS for a, b in zip(ours[1::2], theirs[1::2], strict=True))
    )

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.reporting.numbers import number, power

LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.333333, "0.333"),
        (-0.25, "−0.25"),
        (1e-9, "10⁻⁹"),
        (-1e-9, "−10⁻⁹"),
        (1.23e-5, "1.23×10⁻⁵"),
        (1234567, "1.23×10⁶"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_reads_as_in_print(value, words):
    assert number(value) == words


def test_a_base_of_ones_own():
    assert power(12, base=2) == "2¹²"


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 17))
def test_the_words_mean_the_rounded_number(value, digits):
    words = number(value, digits).translate(LOWERED).replace("−", "-")
    assert not set(words) - set("-.0123456789×")
    mantissa, _, exponent = words.partition("×10")
    if not exponent and words.lstrip("-").startswith("10") and "e" in f"{value:.{digits}g}":
        mantissa, exponent = ("-1" if words[0] == "-" else "1"), words.lstrip("-")[2:]
    assert float(f"{mantissa}e{exponent or 0}") == float(f"{value:.{digits}g}")

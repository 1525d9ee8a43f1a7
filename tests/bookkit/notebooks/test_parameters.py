import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkit.errors import ParameterError
from bookkit.notebooks import parameters
from tests.bookkit.small_book import PARAMETERS, chapter_one, chapter_two, code, markdown, notebook


def test_values_are_converted():
    assert parameters.parse([("seed", "7"), ("profile", "gpu")]) == {"seed": 7, "profile": "gpu"}
    assert parameters.parse({}) == {}


@given(st.integers())
def test_seeds_are_the_integers_from_zero(seed):
    if seed >= 0:
        assert parameters.parse({"seed": str(seed)}) == {"seed": seed}
    else:
        with pytest.raises(ParameterError, match="nearest valid value is 0"):
            parameters.parse({"seed": str(seed)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("sed", "1")], "unknown parameter 'sed'; did you mean 'seed'"),
        ([("profile", "quik")], "parameter profile: unknown profile 'quik'; did you mean 'quick'.*gpu, full"),
        ([("seed", "1.5")], "seed='1.5' is not an integer"),
        ([("seed", "1"), ("seed", "2")], "given twice: 1 and 2"),
    ],
)
def test_bad_values_name_the_parameter_and_the_nearest_choice(given, message):
    with pytest.raises(ParameterError, match=message):
        parameters.parse(given)


def test_an_error_is_a_value_error():
    assert issubclass(ParameterError, ValueError)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([code("profile = 'quick'")], "exactly one code cell tagged 'parameters', it has 0"),
        ([code(PARAMETERS, "parameters")] * 2, "it has 2"),
        ([code("n_heads = 8", "parameters")], "assigns an unknown parameter 'n_heads'"),
        ([code("profile, widht = 1, 2", "parameters")], "unknown parameter 'widht'"),
        ([code("profile =", "parameters")], "is not Python"),
    ],
)
def test_a_chapter_declares_its_parameters_once(cells, message):
    with pytest.raises(ParameterError, match=message):
        parameters.assigned(notebook(markdown("# T"), *map(dict_copy, cells)), "chapter 1")


def dict_copy(cell):
    return code(cell.source, *cell.metadata.get("tags", []))


def test_a_parameter_that_the_chapter_lacks_is_refused():
    assert parameters.resolve(chapter_one(), "one", {"seed": 3}) == {"profile": "quick", "seed": 3}
    with pytest.raises(ParameterError, match=r"two does not assign it: unknown parameter 'seed'.*known: profile"):
        parameters.resolve(chapter_two(), "two", {"seed": 3})

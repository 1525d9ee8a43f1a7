import pytest

from tests.book.rounding import same_up_to_rounding

TEXT = 'before 1.00 <figure class="mh-figure" aria-label="a"><path d="M 10.01 5"/></figure> after'


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("10.01", "10.02", True),
        ("10.01", "10.2", False),  # a line that moved
        ("M", "L", False),
        ('"a"', '"b"', False),
        ("<path", "<path/><path", False),
        ("1.00", "1.01", False),  # outside a figure every digit counts
        ("after", "later", False),
    ],
)
def test_only_a_hair_inside_a_figure_is_rounding(old, new, same):
    assert same_up_to_rounding(TEXT, TEXT.replace(old, new)) == same

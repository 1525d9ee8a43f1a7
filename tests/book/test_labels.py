"""The Colab copies of the chapters refer to theorems, equations, exercises and figures as the site does."""

import pytest

from bookkit.notebooks import toc
from bookkit.project import Project
from tests.bookkit.colab.test_labels import differences, labels_of, shifted

CHAPTERS = toc.chapters(Project.find())
LABELS = labels_of(CHAPTERS)


def test_the_copies_name_everything_as_the_site_does(site):
    assert differences(site, CHAPTERS, LABELS) == []


@pytest.mark.parametrize("kind", ["thm-", "eq-", "ex-"])
def test_a_shifted_number_is_found(site, kind):
    """The planted fault."""
    label = next(label for label in LABELS.names if label.startswith(kind))
    found = differences(site, CHAPTERS, shifted(LABELS, label))
    assert found
    assert all(label in difference for difference in found)

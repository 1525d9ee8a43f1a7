import pytest
import torch

from manyheads.reporting import exercise


def is_seven(answer):
    return 49 % answer == 0 and answer > 1


def said(capsys, *arguments, hint="try a square root"):
    exercise(*arguments, hint=hint)
    return capsys.readouterr().out


def test_nothing_is_said_before_an_answer(capsys):
    assert said(capsys, is_seven, None) == ""
    assert said(capsys, max, None, None) == ""


def test_right_and_not_yet(capsys):
    assert said(capsys, is_seven, 7) == "right\n"
    assert said(capsys, is_seven, 8) == "not yet: try a square root\n"


def test_the_truth_of_a_tensor_counts(capsys):
    assert said(capsys, lambda x: (x > 0).all(), torch.ones(3)) == "right\n"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (0, "ZeroDivisionError: "),
        ("seven", "TypeError: "),
        (torch.ones(2, 3), "RuntimeError: Boolean value of Tensor with more than one value"),
    ],
)
def test_a_malformed_answer_gets_a_line_and_no_traceback(capsys, answer, problem):
    line = said(capsys, is_seven, answer)
    assert line.startswith(f"not yet: this answer cannot be checked ({problem}")
    assert line.endswith("). try a square root\n")
    assert line.count("\n") == 1


def test_an_answer_in_two_parts_waits_for_both(capsys):
    assert said(capsys, lambda a, b: a == b, 1, None) == "not yet: 1 of 2 answers are still None\n"
    assert said(capsys, lambda a, b: a == b, 1, 1) == "right\n"


def test_an_exercise_needs_an_answer_and_a_hint():
    with pytest.raises(ValueError, match="needs the answers"):
        exercise(is_seven, hint="x")
    with pytest.raises(ValueError, match="hint=' ' is empty"):
        exercise(is_seven, 7, hint=" ")

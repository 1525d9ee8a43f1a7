from manyheads.names import unknown


def test_the_message_names_the_value_the_nearest_and_all():
    assert (
        unknown("profile", "quik", ["gpu", "quick"])
        == "unknown profile 'quik'; did you mean 'quick'? known: gpu, quick"
    )


def test_nothing_near_is_no_guess():
    assert unknown("profile", "zzz", ["gpu", "quick"]) == "unknown profile 'zzz'; known: gpu, quick"
    assert unknown("recording", 7, []) == "unknown recording 7; known: (none)"

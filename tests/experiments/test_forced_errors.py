from manyheads.experiments import forced_errors


def test_no_trained_network_beats_the_certificate_of_its_own_map(measured):
    grid = measured(forced_errors)
    assert (grid["bound"] > 0).all()
    assert (grid["error"] >= grid["bound"] - 1e-6).all()

import pytest


@pytest.fixture(autouse=True)
def every_test_on_one_thread(one_thread):
    pass

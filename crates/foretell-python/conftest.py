import os

import pytest


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path):
    """Examples write files: each in a folder of its own."""
    before = os.getcwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)

"""The folder of a conftest.py is on the path: what stands here is found by the tests in the folders below."""

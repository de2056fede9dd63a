"""Devices, libraries and programs that make races certain, for the tests of order."""

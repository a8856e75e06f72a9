"""Support for tests: tiny programs, strategies, contract tests."""

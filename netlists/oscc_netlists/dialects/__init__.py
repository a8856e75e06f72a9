"""Dialect writers, one file a simulator."""

"""Command line: options and printing around the verbs."""

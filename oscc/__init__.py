"""Compiler and simulator for oscillator hardware."""

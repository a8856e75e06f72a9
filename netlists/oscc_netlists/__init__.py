"""SPICE as data: elements, circuits, dialect writers, reader."""

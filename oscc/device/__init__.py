"""Device cards, with what follows from them in closed form."""

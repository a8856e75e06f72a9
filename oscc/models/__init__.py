"""Phase-coupled layers in torch, with their training."""

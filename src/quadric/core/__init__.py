"""The mathematics of a layer: activations, losses, layers, initial values, packed triangles."""

"""A package, so that the Ray cluster which its tests share ends with the last of them: idle it takes a tenth of a
CPU."""

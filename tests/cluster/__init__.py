"""A package, so that the shared Ray cluster ends after the last of these tests: an idle cluster takes a tenth of a
CPU."""

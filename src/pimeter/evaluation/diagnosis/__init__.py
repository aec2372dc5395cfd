"""What the errors of a model say about it: cross-fitted coverage, and findings with advice."""

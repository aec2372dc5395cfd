"""Kernels: the neuron's formula for one kind of array each. They know nothing of levels' meaning or of bad input."""

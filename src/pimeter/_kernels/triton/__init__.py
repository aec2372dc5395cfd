"""Quantiles of rows on a GPU; the README of this folder says how."""

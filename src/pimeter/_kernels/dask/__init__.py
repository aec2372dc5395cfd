"""Quantiles of dask collections; the README of this folder says how."""

"""The paper's experiments, repeated: `python -m experiments list | run NAME | report`."""

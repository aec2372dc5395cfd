"""How good a model, its intervals or its classes are: measurements, their checks, findings and advice."""

"""What the errors of a model say about it: cross-fitted coverage, and findings with advice."""

from pimeter.diagnosis.findings import Diagnosis, Finding, Part, diagnose
from pimeter.diagnosis.spread import WhiteTest, power_spectral_entropy, white_test

__all__ = ["Diagnosis", "Finding", "Part", "WhiteTest", "diagnose", "power_spectral_entropy", "white_test"]

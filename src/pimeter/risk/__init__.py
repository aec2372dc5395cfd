"""Decisions with a guarantee: thresholds, abstention and orders whose risk is bounded."""

from pimeter.risk.controller import RiskController

__all__ = ["RiskController"]

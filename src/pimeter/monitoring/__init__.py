"""Monitoring: do intervals go on holding? Alarms with a bound on how often they are false, however often one looks."""

from pimeter.monitoring.monitor import CoverageMonitor

__all__ = ["CoverageMonitor"]

"""Intervals around forecasts: cones of one or several series in arrays."""

from pimeter.forecast.cones import ForecastIntervals as ForecastIntervals

__all__ = ["ForecastIntervals"]

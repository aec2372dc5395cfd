"""Intervals around forecasts: cones of series in arrays, and panels of series in long frames."""

from pimeter.forecast.cones import ForecastIntervals as ForecastIntervals
from pimeter.forecast.panels import PanelIntervals as PanelIntervals

__all__ = ["ForecastIntervals", "PanelIntervals"]

"""The conformal core: calibration scores become bounds with a guarantee; README.md in this folder is the guide."""
